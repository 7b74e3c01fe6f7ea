"""What the plan of a recorded decision would have cost without one of its constraints."""
