"""The words and numbers of the ``hpc:`` namespace; nova-api imports them and nothing heavier."""

APP_CLASSES = ("extreme", "sync", "async", "none")
HOMOGENEOUS = ("true", "prefer", "false")

# A cache score: float() would take nan, inf, signs and exponents. 255 digits, Nova's limit for
# an extra spec, are finite.
DECIMAL = r"[0-9]+(\.[0-9]+)?"
MAX_DIGITS = 255
