"""Drawn histories of groups on a whole Nova, through its API."""
