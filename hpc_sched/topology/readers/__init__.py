"""Readers of fabric descriptions, one module per driver or format."""
