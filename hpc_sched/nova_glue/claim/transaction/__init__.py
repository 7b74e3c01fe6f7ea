"""The allocations of a request, made in transactions of Placement; knows nothing of groups."""
