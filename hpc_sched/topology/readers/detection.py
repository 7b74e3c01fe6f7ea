"""Which driver reads a text, seen from its content."""

import re

from hpc_sched import exceptions

# What the text must hold, in the order in which it is looked for. Matched against its first part:
# what tells them apart stands at the beginning, after comments. Blanks are those of one line: the
# search would begin anew at each of many empty lines.
_LOOKED_AT = 1 << 20
_SIGNS = (
    ("ibnetdiscover", re.compile(rb'^[ \t]*(?:Switch|Ca|Rt)[ \t]+\d+[ \t]+"[A-Z]-', re.MULTILINE)),
    ("slurm", re.compile(rb"^[ \t]*(?:SwitchName|BlockName)[ \t]*=", re.MULTILINE | re.IGNORECASE)),
    ("slurm", re.compile(rb"^[ \t]*(?:-[ \t]+)?[\"']?topology[\"']?[ \t]*:", re.MULTILINE)),
    ("yaml", re.compile(rb"^[\"']?(?:switches|levels)[\"']?[ \t]*:", re.MULTILINE)),
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
