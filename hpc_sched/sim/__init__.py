"""Discrete-event simulation of a cloud with the algorithms of ``core``; imports no Nova."""
