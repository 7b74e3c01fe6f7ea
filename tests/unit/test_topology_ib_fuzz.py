"""Dumps that were damaged at random: a fabric or a TopologyError, and soon.

``HPC_SCHED_FUZZ`` says how many; the same number gives the same dumps.
"""

import os
import random
import time

from hpc_sched import exceptions
from tests.ib_dumps import rails, read, three_levels

COUNT = int(os.environ.get("HPC_SCHED_FUZZ", "1000"))
# Small dumps take some ms; the machine may be busy.
SECONDS = 5.0

_PIECES = [
    '"', "#", "[", "]", "(", ")", "\\", "\n", "\r", "\x00", "\ufeff", "\u2028", ";", ":", "/",
    "Switch\t1 ", "Ca\t2 ", "Rt ", '"S-', '"H-0', "[1]", "[99999]", "9" * 5000, " " * 500, "4xNDR",
    "HCA-1", "vendid=", "x" * 300, "\u0661", "-1", "MF0;", "n[1-999999999]", "\udcff",
]  # fmt: skip


def damaged(text: str, draw: random.Random) -> bytes:
    """Return a dump with some places changed."""
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(text) + 1)
        to = min(at + int(draw.expovariate(1 / 20)), len(text))
        kind = draw.randrange(6)
        if kind == 0:
            text = text[:at] + draw.choice(_PIECES) + text[to:]
        elif kind == 1:
            text = text[:at] + text[to:]
        elif kind == 2:
            text = text[:at] + text[at:to] * draw.randint(2, 9) + text[to:]
        elif kind == 3:
            other = draw.randrange(len(text) + 1)
            text = text[:other] + text[at:to] + text[other:]
        elif kind == 4:
            lines = text.split("\n")
            a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            text = "\n".join(lines)
        else:
            text = text[:at] + chr(draw.randrange(0x110000)) + text[at + 1 :]
    return text.encode("utf-8", "surrogatepass")


def test_damaged_dumps_give_a_fabric_or_an_error_that_names_the_dump():
    draw = random.Random("ibnetdiscover")
    sound = [rails(2, 2, 2).text(), three_levels(2, 2, 1).text(draw)]
    good = 0
    for number in range(COUNT):
        content = damaged(draw.choice(sound), draw)
        if draw.random() < 0.05:
            at = draw.randrange(len(content))
            content = content[:at] + draw.randbytes(50) + content[at + 50 :]
        start = time.perf_counter()
        refused = ""
        try:
            read(content).check()
        except exceptions.TopologyError as error:
            refused = str(error)
        except BaseException:
            print(f"dump {number}: {content!r}")
            raise
        assert not refused or refused.startswith("dump: "), number
        good += not refused
        assert time.perf_counter() - start < SECONDS, number
    # A place that is wrong does not cost the fabric.
    assert good > COUNT * 0.9
