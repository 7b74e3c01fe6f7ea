"""The real SimGrid as an independent reference of a network model.

SimGrid is imported by Debian's own Python alone (package python3-simgrid); tests hand the text of a
case to a process of it, see ``witness.py``.
"""
