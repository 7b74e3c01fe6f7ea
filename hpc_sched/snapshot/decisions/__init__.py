"""The decision log, read and explained."""
