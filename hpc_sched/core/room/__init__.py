"""What fits on one host: its providers' free amounts and the claims that they take."""
