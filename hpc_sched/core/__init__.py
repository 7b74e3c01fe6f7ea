"""The algorithms, on plain values. Imports nothing of Nova."""
