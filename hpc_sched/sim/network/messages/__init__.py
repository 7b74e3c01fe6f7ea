"""What ranks do: iterations of patterns, programs, cases."""
