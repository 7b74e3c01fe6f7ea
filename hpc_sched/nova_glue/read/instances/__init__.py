"""Instances that hold a place: members of the group, in flight, colocated."""
