"""What the ranks of a group send: steps of patterns, their sums, matrices from files."""
