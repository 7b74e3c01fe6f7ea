"""What ranks do and send: patterns, programs, cases."""
