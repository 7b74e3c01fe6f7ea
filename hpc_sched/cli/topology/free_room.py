"""What a cloud could take now: whole free leaves, and the largest groups by flavor and level."""

from collections.abc import Sequence

from hpc_sched.cli.common import output
from hpc_sched.cli.common.base_command import Table
from hpc_sched.snapshot.cloud_room import FlavorRoom
from hpc_sched.topology import hostlist, plurals

FORMULA = "1 - largest / min(slots, empty)"
MEANING = f"""\
--free shows the leaves whose hosts all take VMs and have none, and for each flavor and level:

  largest        VMs of the largest group that fits under one switch, as hpc-sched fits
  empty          the same if there were no VMs
  slots          VMs that all hosts take now, each counted alone
  fragmentation  {FORMULA}: the part of the best possible group that does not
                 fit; 0 if all that is free is under one switch, near 1 if it is scattered
"""


def lines_of(rooms: Sequence[FlavorRoom], free: Sequence[str], leaves: int) -> list[str]:
    """Return the whole free leaves, and a table of flavors and levels."""
    names = f": {hostlist.fold_cut(free)}" if free else ""
    first = f"{len(free)} of {plurals.text(leaves, 'leaf')} free as a whole{names}"
    if not rooms:
        return [first]
    table = [("flavor", "level", "largest", "empty", "slots", "fragmentation")]
    table += [
        (room.flavor, level, str(vms), str(room.empty[level]), str(room.slots), f"{part:.2f}")
        for room in rooms
        for level, vms in room.largest.items()
        for part in [room.fragmentation(level)]
    ]
    return [first, "", *output.aligned(table, range(2, 6)), "", f"fragmentation: {FORMULA}"]


def rows(rooms: Sequence[FlavorRoom], free: Sequence[str], leaves: int, formatter: str) -> Table:
    """Return names of columns, and a row for each flavor and level in a format."""
    names = ("Flavor", "Level", "Largest", "Empty", "Slots", "Fragmentation")
    return (*names, "Free leaves", "Leaves"), [
        (
            *(room.flavor, level, vms, room.empty[level], room.slots),
            *(output.cell(room.fragmentation(level), formatter), len(free), leaves),
        )
        for room in rooms
        for level, vms in room.largest.items()
    ]
