"""The state of a cloud at one moment, so that questions can be asked of it.

Read from the APIs of Nova and Placement or from a saved file. Imports nothing of Nova.
"""
