"""Gupta2013: two tables, the case study, and the trace simulation, repeated."""
