"""The placement policies that the simulator compares."""
