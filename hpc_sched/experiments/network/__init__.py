"""What a placement is worth in seconds, in the network model."""
