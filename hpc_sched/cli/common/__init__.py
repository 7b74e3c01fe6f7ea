"""Shared by the commands: base classes, sources of data, output, argument types."""
