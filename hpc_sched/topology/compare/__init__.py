"""Differences between topologies, and lint of one."""
