"""Formats in which a topology can be written."""

import importlib
from dataclasses import dataclass
from typing import Any

from hpc_sched.topology.model import Topology

# Format to the module with its text_of(topology), which returns a text, or a text and warnings.
_WRITERS = {"yaml": "yaml_writer", "slurm": "slurm_writer", "dot": "dot", "svg": "svg"}
NAMES = tuple(_WRITERS)


@dataclass(frozen=True, slots=True)
class Written:
    """A topology as text, and a warning for everything that the format cannot hold."""

    text: str
    warnings: tuple[str, ...] = ()


def written(topology: Topology, name: str, **options: Any) -> Written:
    """Return a topology in one of ``NAMES``; ``options`` are of the format's ``text_of``."""
    # Imported late: only one writer is needed, and often none.
    module = importlib.import_module(f"hpc_sched.topology.writers.{_WRITERS[name]}")
    answer = module.text_of(topology, **options)
    return Written(answer) if isinstance(answer, str) else Written(*answer)
