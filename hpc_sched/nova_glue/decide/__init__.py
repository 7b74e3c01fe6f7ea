"""The second phase of a request: the plan of its group, or a Rejection."""
