"""Detection of the driver of a text by its content."""

import re

from hpc_sched import exceptions

# Patterns by driver, in the order of the search, for the first part of a text. Blanks are those of
# one line: the search would start again at each of many empty lines.
_MAX_BYTES = 1 << 20
_PATTERNS = (
    ("ibnetdiscover", re.compile(rb'^[ \t]*(?:Switch|Ca|Rt)[ \t]+\d+[ \t]+"[A-Z]-', re.MULTILINE)),
    ("slurm", re.compile(rb"^[ \t]*(?:SwitchName|BlockName)[ \t]*=", re.MULTILINE | re.IGNORECASE)),
    ("slurm", re.compile(rb"^[ \t]*(?:-[ \t]+)?[\"']?topology[\"']?[ \t]*:", re.MULTILINE)),
    ("yaml", re.compile(rb"^[\"']?(?:switches|levels)[\"']?[ \t]*:", re.MULTILINE)),
)


def driver_of(content: bytes, name: str) -> str:
    """Return the name of the driver for a text.

    :param name: what errors call the text
    :raises exceptions.TopologyError: where no known driver reads it
    """
    start = content[:_MAX_BYTES].removeprefix(b"\xef\xbb\xbf")
    for driver, pattern in _PATTERNS:
        if pattern.search(start):
            return driver
    known = ", ".join(sorted({driver for driver, _ in _PATTERNS}))
    raise exceptions.TopologyError(
        f"{name}: expected a topology that one of the drivers {known} reads; put a driver's name "
        "in front of the file, as in yaml:FILE, to see what is wrong with it"
    )
