"""A folder with the output of lldpcli of each host and switch, as one text."""

import json
import os
import re
from pathlib import Path
from typing import Any

from hpc_sched import exceptions, files
from hpc_sched.topology import plurals
from hpc_sched.topology.readers.compression import decompressed
from hpc_sched.topology.readers.lldp.reports import SWITCHES

# More than hosts and switches of any fabric that is read.
MAX_FILES = 100_000
# Of files, after the name of the host or switch.
_SUFFIXES = re.compile(r"(?:\.json0)?(?:\.json)?(?:\.bz2)?(?:\.xz)?(?:\.gz)?\Z")


def read(path: str, max_bytes: int) -> bytes:
    """Return the content of a folder as one object of outputs by name, see ``lldp.reports``.

    Files are called NAME or NAME.json, also compressed; those of switches may be in a subfolder
    ``switches``. Hidden files and other folders are left out.

    :raises exceptions.TopologyError: if a file cannot be read, one name has two files, or there is
        too much to read
    """
    outputs: dict[str, Any] = _outputs(Path(path), max_bytes)
    switches = Path(path, SWITCHES)
    if switches.is_dir():
        below = _outputs(switches, max_bytes - sum(map(len, outputs.values())))
        if both := sorted(outputs.keys() & {*below, SWITCHES}):
            raise exceptions.TopologyError(
                f"{path}: expected one file for {both[0]!r}, found two, in the folder and in "
                f"{SWITCHES!r}"
            )
        outputs[SWITCHES] = below
    return json.dumps(outputs).encode()


def _outputs(folder: Path, max_bytes: int) -> dict[str, str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_file()
            )
    except OSError as failure:
        raise exceptions.TopologyError(
            f"{folder}: cannot be read: {failure.strerror or str(failure)}"
        ) from failure
    if len(names) > MAX_FILES:
        raise exceptions.TopologyError(
            f"{folder}: expected at most {plurals.text(MAX_FILES, 'file')}, found {len(names)}"
        )
    outputs: dict[str, str] = {}
    left = max_bytes
    for name in names:
        path = folder / name
        packed = files.read_bytes(path, exceptions.TopologyError, left)
        content = decompressed(packed, str(path), left)
        left -= len(content)
        reporter = _SUFFIXES.sub("", name, count=1)
        if reporter in outputs:
            raise exceptions.TopologyError(f"{path}: expected one file for {reporter!r}, found two")
        # What is no UTF-8 is an error of this file, not of all.
        outputs[reporter] = content.decode("utf-8-sig", "replace")
    return outputs
