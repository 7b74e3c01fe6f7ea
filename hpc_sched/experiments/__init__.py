"""Experiments of the papers, repeated on models and compared with the published figures."""
