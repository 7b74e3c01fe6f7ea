"""The fourth phase of a request: the hosts that pass, and their order."""
