"""Databases, Placement, watched files, and the bounds on waiting for them."""
