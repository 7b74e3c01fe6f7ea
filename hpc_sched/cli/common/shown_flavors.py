"""The flavors for which a command shows what a cloud could take."""

from collections.abc import Sequence

from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import repeated
from hpc_sched.snapshot import cloud_room
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Flavor

# Each is a number for every level, and takes the time of hpc-sched fits.
MAX_FLAVORS = 50
ARGUMENT = repeated(
    "--flavor", f"flavor to show; may be given up to {MAX_FLAVORS} times", metavar="NAME"
)


def fault(wanted: Sequence[str]) -> tuple[object, str]:
    """Return whether too many flavors are named, and the text that says so."""
    return len(set(wanted)) > MAX_FLAVORS, f"expected at most {MAX_FLAVORS} times --flavor"


def of(cloud: Cloud, wanted: Sequence[str]) -> list[Flavor]:
    """Return the flavors of these names, else those of HPC; by name. Notes those left out.

    :raises exceptions.SnapshotError: if there is no such flavor
    """
    if not wanted:
        found = cloud_room.hpc_flavors(cloud)
        if len(found) > MAX_FLAVORS:
            output.note(f"{MAX_FLAVORS} of {len(found)} flavors: choose them with --flavor")
        return found[:MAX_FLAVORS]
    flavors = {name: cloud.flavor(name) for name in wanted}
    return [flavors[name] for name in sorted(flavors)]
