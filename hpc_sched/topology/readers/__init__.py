"""Readers of fabric descriptions, one driver or format a module."""
