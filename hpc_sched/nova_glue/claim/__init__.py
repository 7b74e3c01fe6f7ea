"""The third phase of a request: its plan is claimed in Placement, ahead of Nova's claims."""
