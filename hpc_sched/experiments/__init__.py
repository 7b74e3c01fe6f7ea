"""Experiments of the papers, repeated on models, beside the published figures."""
