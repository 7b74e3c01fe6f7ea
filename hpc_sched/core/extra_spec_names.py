"""The words and limits of the ``hpc:`` namespace; nova-api imports them and nothing heavier.

Flavors are the operator's, but hints and the rules of server groups are written by tenants: what
they say is read up to these limits, whatever Nova lets through.
"""

import re

APP_CLASSES = ("extreme", "sync", "async", "none")
HOMOGENEOUS = ("true", "prefer", "false")

# A cache score: float() would take nan, inf, signs and exponents. As many digits as a value may
# have are finite.
DECIMAL = r"[0-9]+(\.[0-9]+)?"

# The longest value that is read, Nova's own limit for an extra spec; hints have none.
MAX_VALUE = 255
# How much of a value that cannot be read is told back, as it is written in the text.
MAX_SHOWN = 80
# A single VM makes the planner look for the places of a whole group of this size: the cost
# grows with it, to seconds on 10,000 hosts that take a thousand VMs each.
MAX_GROUP_SIZE = 4096
# More leaf switches than any fabric has; beyond those that there are the number costs nothing.
MAX_LEAVES = 999_999


PATTERN = r"[A-Za-z0-9._+-]{1,255}"
EXPECTED = "an application's name of 1 to 255 letters, digits and . _ + -"

_NAME = re.compile(PATTERN)


def is_name(text: str) -> bool:
    """Tell whether an application can be called so."""
    return _NAME.fullmatch(text) is not None
