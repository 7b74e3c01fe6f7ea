"""Leaves with room for a group as nodes: single ones, and those that save alike together."""
