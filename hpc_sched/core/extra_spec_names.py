"""The values and limits of the ``hpc:`` namespace. nova-api imports them: no numpy here.

Tenants write hints and the rules of server groups. These limits hold for them even where Nova
accepts more.
"""

import re

APP_CLASSES = ("extreme", "sync", "async", "none")
HOMOGENEOUS = ("true", "prefer", "false")

# A cache score. float() alone would accept nan, inf, signs and exponents.
# Finite for every text of at most MAX_VALUE characters.
DECIMAL = r"[0-9]+(\.[0-9]+)?"

# The longest accepted value: Nova's own limit for an extra spec. Nova does not limit hints.
MAX_VALUE = 255
# The longest quotation of an invalid value in an error text.
MAX_SHOWN = 80
# A single VM makes the planner place a whole group of this size. The time grows with it, to
# seconds on 10,000 hosts that take a thousand VMs each.
MAX_GROUP_SIZE = 4096
# More leaf switches than any fabric has. Larger numbers do not take longer.
MAX_LEAVES = 999_999


PATTERN = r"[A-Za-z0-9._+-]{1,255}"
EXPECTED = "an application's name of 1 to 255 letters, digits and . _ + -"

_NAME = re.compile(PATTERN)


def is_name(text: str) -> bool:
    """True if a text is a valid name of an application."""
    return _NAME.fullmatch(text) is not None
