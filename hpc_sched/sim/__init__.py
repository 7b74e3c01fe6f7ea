"""Discrete-event simulation of a cloud on the algorithms of ``core``; imports no Nova."""
