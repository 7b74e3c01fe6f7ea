"""The options of hpc-sched simulate that some queue disciplines read."""

import argparse

from hpc_sched import exceptions
from hpc_sched.sim.installed import QUEUES
from hpc_sched.sim.queues.queue_discipline import Queue, QueueOptions

# The fields of QueueOptions, and the options of the command that set them.
_NAMES = {"depth": "backfill_depth", "half_life": "fair_share_half_life"}


def options_of(args: argparse.Namespace, queue: Queue) -> QueueOptions:
    """Return the options of a discipline.

    :raises exceptions.SimulationError: for a half-life that the discipline does not read
    """
    stated = {field: getattr(args, name) for field, name in _NAMES.items()}
    found = {field: value for field, value in stated.items() if value is not None}
    # The depth goes with any queue, so that a command can be repeated with another one.
    if "half_life" in found and "half_life" not in queue.options:
        names = [name for name in QUEUES.names() if "half_life" in QUEUES.load(name).options]
        raise exceptions.SimulationError(
            f"--fair-share-half-life does not go with --queue {queue.name}: expected one of "
            f"{', '.join(names)}"
        )
    return QueueOptions(**found)


def applied(queue: Queue, options: QueueOptions) -> dict[str, float | None]:
    """Return the value of each option, None for one that the discipline does not read."""
    return {
        name: getattr(options, field) if field in queue.options else None
        for field, name in _NAMES.items()
    }
