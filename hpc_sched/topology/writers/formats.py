"""Formats in which a topology can be written."""

import importlib
from dataclasses import dataclass
from typing import Any

from hpc_sched.topology.model import Topology

# Format to the module with its text_of(topology), which returns a text, or a text and warnings.
_WRITERS = {
    "yaml": "hpc_sched.topology.writers.yaml_writer",
    "slurm": "hpc_sched.topology.writers.slurm_writer",
    "dot": "hpc_sched.topology.writers.dot",
    "svg": "hpc_sched.topology.writers.svg",
}
NAMES = tuple(_WRITERS)


@dataclass(frozen=True, slots=True)
class Written:
    """A topology as text, and a warning for everything that the format cannot hold."""

    text: str
    warnings: tuple[str, ...] = ()


def written(topology: Topology, name: str, **options: Any) -> Written:
    """Return a topology in a format.

    :param name: one of ``NAMES``
    :param options: further arguments of the format's ``text_of``
    """
    # Imported late: only one writer is needed, and often none.
    answer = importlib.import_module(_WRITERS[name]).text_of(topology, **options)
    return Written(answer) if isinstance(answer, str) else Written(*answer)
