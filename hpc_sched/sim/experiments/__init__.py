"""Experiments of the papers, repeated on models, beside what was published."""
