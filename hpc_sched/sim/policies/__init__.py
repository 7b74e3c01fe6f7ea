"""The rules that the simulator compares, a file each."""
