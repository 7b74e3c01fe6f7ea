"""A demonstration on a real Nova in one process."""
