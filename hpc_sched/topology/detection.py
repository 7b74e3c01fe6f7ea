"""Which driver reads a text, seen from its content."""

import re

from hpc_sched import exceptions

# What the text must hold, in the order in which it is looked for. Matched against its first part:
# what tells them apart stands at the beginning, after comments.
_LOOKED_AT = 1 << 20
_SIGNS = (
    ("ibnetdiscover", re.compile(rb'^(?:Switch|Ca|Rt)\s+\d+\s+"[A-Z]-', re.MULTILINE)),
    ("slurm", re.compile(rb"^\s*(?:SwitchName|BlockName)\s*=", re.MULTILINE | re.IGNORECASE)),
    ("slurm", re.compile(rb"^\s*(?:-\s+)?[\"']?topology[\"']?\s*:", re.MULTILINE)),
    ("yaml", re.compile(rb"^[\"']?(?:switches|levels)[\"']?\s*:", re.MULTILINE)),
)


def driver_of(content: bytes, name: str) -> str:
    """Return the name of the driver that reads a text.

    :param name: what errors call the text
    :raises exceptions.TopologyError: where no driver of ours would
    """
    start = content[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf")
    for driver, sign in _SIGNS:
        if sign.search(start):
            return driver
    known = ", ".join(sorted({driver for driver, _ in _SIGNS}))
    raise exceptions.TopologyError(
        f"{name}: expected a topology that one of the drivers {known} reads; put a driver's name "
        "in front of the file, as in yaml:FILE, to see what is wrong with it"
    )
