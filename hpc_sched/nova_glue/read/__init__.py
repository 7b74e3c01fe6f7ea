"""The first phase of a request: what it is decided from, read into one ``Inputs``."""
