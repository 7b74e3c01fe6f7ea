"""Record the golden set, or compare what there is now with the record."""

import argparse
import importlib
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden import record
from tests.golden.record import Case

PARTS = ("requests", "fits", "simulated", "explained")
_MOST_SHOWN = 10


def cases(part: str, folder: Path) -> Iterator[Case]:
    """Return all cases of a part as they are now."""
    if part == "requests":
        # First of what uses Nova: it chooses native threads.
        import hpc_sched.demo.nova_cloud

        assert hpc_sched.demo.nova_cloud
        for name in ("nova", "hpc_sched"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    found: Iterator[Case] = importlib.import_module(f"tests.golden.{part}").cases(folder)
    return found


def compare(part: str, folder: Path) -> list[str]:
    """Return what differs from the record, a text for each of the first cases that do."""
    recorded = record.read(part)
    found = []
    number = 0
    for number, now in enumerate(cases(part, folder), 1):
        before = recorded[number - 1] if number <= len(recorded) else {"case": now["case"]}
        text = record.report(part, before, now)
        if text:
            found.append(text)
    if number < len(recorded):
        found.append(f"{part}: {len(recorded)} cases are recorded, there are {number} now")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", action="store_true", help="write the record anew")
    what.add_argument("--compare", action="store_true", help="print the first cases that differ")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    args = parser.parse_args(argv)
    unknown = set(args.part) - set(PARTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}")
    if len(args.part) != 1:
        # Each part has a process of its own: Nova's way of logging is not that of the commands.
        how = "--record" if args.record else "--compare"
        command = [sys.executable, "-m", "tests.golden", how]
        return max(subprocess.call([*command, part]) for part in args.part or PARTS)
    [part] = args.part
    began, found = time.monotonic(), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        if args.record:
            record.write(part, cases(part, Path(folder)))
            said = f"{record.path_of(part).stat().st_size} bytes"
        else:
            found = compare(part, Path(folder))
            said = f"{len(found)} cases differ"
    for text in found[:_MOST_SHOWN]:
        print(text)
    print(f"{part}: {said}; {time.monotonic() - began:.0f} s", flush=True)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
