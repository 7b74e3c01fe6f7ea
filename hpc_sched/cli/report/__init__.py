"""Commands that report on decision logs."""
