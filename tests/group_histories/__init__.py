"""Histories of groups in memory, against an oracle."""
