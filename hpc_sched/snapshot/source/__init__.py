"""Sources of a snapshot: the APIs of a cloud, or a file."""
