"""A fabric of cables between switches and hosts, made into a tree."""
