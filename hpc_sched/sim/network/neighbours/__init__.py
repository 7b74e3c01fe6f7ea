"""Running jobs next to each other on one network."""
