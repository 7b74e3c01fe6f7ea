"""The state of a cloud at one moment, from its APIs or a saved file, and the commands' answers.

Imports nothing of Nova.
"""
