"""What a flavor states that the plan of its groups is best by."""
