"""Bare-metal fabrics, from the nodes and ports of Ironic."""
