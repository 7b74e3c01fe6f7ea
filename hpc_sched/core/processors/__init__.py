"""Processor types: their names, their order, and the types of the hosts of one request."""
