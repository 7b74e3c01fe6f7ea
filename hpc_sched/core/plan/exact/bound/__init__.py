"""The best plan on no more than a number of leaves."""
