"""What hosts and switches report of their neighbours: outputs of lldpcli, by the reporter's name.

The text is an object of outputs. Each is lldpcli's own object, or a text of it, or the result of
an Ansible task, which has it as ``stdout``::

    {"node0001": {"lldp": {...}}, "node0002": {"stdout": "{...}"}, "switches": {"leaf1": {...}}}
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from hpc_sched import exceptions
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.readers import json_text
from hpc_sched.topology.readers.lldp.neighbours import Neighbour, neighbours_of
from hpc_sched.topology.readers.reader_errors import MAX_PROBLEMS, Problems

# The outputs of what is a switch, whatever it announces.
SWITCHES = "switches"
MAX_NEIGHBOURS = 1_000_000
# A switch with a thousand ports prints less than two.
MAX_OUTPUT = 8 * 1024 * 1024
_LLDP, _STDOUT = "lldp", "stdout"
_EXPECTED = "expected the output of 'lldpcli show neighbors -f json'"


@dataclass(frozen=True, slots=True)
class Report:
    """The neighbours of one device."""

    name: str  # by which the output is filed
    is_switch: bool  # filed as a switch
    neighbours: tuple[Neighbour, ...]


def read(content: bytes, name: str) -> tuple[list[Report], list[str]]:
    """Return the reports of a text, sorted by name, and sentences on damaged ones. Linear.

    An empty output is a device without neighbours, and so is one that is damaged.

    :raises exceptions.TopologyError: for what is no object of outputs, if none can be read, and
        for more than ``MAX_NEIGHBOURS`` neighbours
    """
    reports: dict[str, Report] = {}
    faults: list[str] = []
    count = good = 0
    for given, is_switch, found in _outputs(content, name):
        key = hostlist.printable(given)
        where = f"{name}: {key}"
        if not key:
            faults.append(f"{name}: expected the name of a host or switch, found {given[:9]!r}")
            continue
        try:
            if key in reports:
                raise exceptions.TopologyError(f"{where}: expected one output, found two")
            neighbours = _neighbours(found, where)
            good += 1
        except exceptions.TopologyError as error:
            faults += error.problems
            # The device is known by its name; others may have seen it.
            neighbours = list(reports[key].neighbours) if key in reports else []
        reports[key] = Report(key, is_switch, tuple(neighbours))
        count += len(neighbours)
        Problems(name).check_number(count, MAX_NEIGHBOURS, "neighbours")
    if len(faults) > MAX_PROBLEMS:
        more = plurals.text(len(faults) - MAX_PROBLEMS, "more damaged output")
        faults[MAX_PROBLEMS:] = [f"{name}: and {more}"]
    if not good:
        raise exceptions.TopologyError(*faults or [f"{name}: {_EXPECTED} by host, found none"])
    return [reports[key] for key in sorted(reports)], faults


def _outputs(content: bytes, name: str) -> Iterator[tuple[str, bool, bytes]]:
    """Yield the name of each reporter, whether it is filed as a switch, and its output."""
    # Decoded one after the other: as a whole they would take many times the memory.
    for document in json_text.documents_of(msgspec.Raw, content, name):
        outputs = _raw_values(document, name)
        if outputs is None or _LLDP in outputs:
            found = "an object with 'lldp'" if outputs else "another value"
            raise exceptions.TopologyError(
                f"{name}: {_EXPECTED} of several hosts, in a folder with a file NAME.json for each "
                f'or as {{"NAME": OUTPUT, ...}}, found {found}'
            )
        for key, output in outputs.items():
            below = _raw_values(output, name) if key == SWITCHES else None
            if below is not None and below.keys().isdisjoint((_LLDP, _STDOUT)):
                yield from ((switch, True, bytes(one)) for switch, one in below.items())
            else:
                yield key, False, bytes(output)


def _raw_values(document: msgspec.Raw, name: str) -> dict[str, msgspec.Raw] | None:
    """Return the values of an object as they are; None for another value."""
    content = bytes(document)
    if not content.lstrip().startswith(b"{"):
        return None
    [found] = json_text.documents_of(dict[str, msgspec.Raw], content, name)
    return found


def _neighbours(output: bytes, where: str) -> list[Neighbour]:
    Problems(where).check_number(len(output), MAX_OUTPUT, "bytes", found=len(output))
    [found, *_] = json_text.documents(output, where)
    if isinstance(found, dict) and _STDOUT in found and _LLDP not in found:
        found = found[_STDOUT]
    if isinstance(found, str):
        if not found.strip():
            return []
        [found, *_] = json_text.documents(found.encode(errors="replace"), where)
        if isinstance(found, dict) and isinstance(found.get(_STDOUT), str):
            return _neighbours(json.dumps(found[_STDOUT]).encode(), where)
    neighbours = neighbours_of(found)
    if neighbours is None:
        raise exceptions.TopologyError(f"{where}: {_EXPECTED}, found {_kind(found)}")
    return neighbours


def _kind(found: object) -> str:
    if isinstance(found, dict):
        return json_text.keys_of(found)
    return {list: "a list", str: "a text", type(None): "null"}.get(type(found), "a number")
