"""What a fabric can be written as."""

import importlib
from dataclasses import dataclass
from typing import Any

from hpc_sched.topology.model import Topology

# Format to the module that writes it, by text_of(topology): the text, or the text and warnings.
_WRITERS = {
    "yaml": "hpc_sched.topology.writers.yaml_writer",
    "slurm": "hpc_sched.topology.writers.slurm_writer",
    "dot": "hpc_sched.topology.writers.dot",
    "svg": "hpc_sched.topology.writers.svg",
}
NAMES = tuple(_WRITERS)


@dataclass(frozen=True, slots=True)
class Written:
    """A fabric as text, and what the format could not say of it."""

    text: str
    warnings: tuple[str, ...] = ()


def written(topology: Topology, name: str, **options: Any) -> Written:
    """Return a fabric in a format.

    :param name: one of ``NAMES``
    :param options: what the format's own ``text_of`` takes beside the topology
    """
    # Imported here, so that a command that writes nothing does not wait for four writers.
    answer = importlib.import_module(_WRITERS[name]).text_of(topology, **options)
    return Written(answer) if isinstance(answer, str) else Written(*answer)
