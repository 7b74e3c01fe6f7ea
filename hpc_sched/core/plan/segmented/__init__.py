"""Plans of groups in parts, each below one switch of a level, and of balanced groups."""
