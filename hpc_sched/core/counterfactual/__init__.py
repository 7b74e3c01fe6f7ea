"""What would be otherwise: without a constraint of a decision, or after one live migration."""
