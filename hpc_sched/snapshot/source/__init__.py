"""Where a snapshot comes from: the APIs of a cloud, or a file."""
