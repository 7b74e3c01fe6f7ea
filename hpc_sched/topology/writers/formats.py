"""Formats in which a topology can be written."""

import importlib
from typing import Any

from hpc_sched.topology.model import Topology

# Format to the module with its text_of(topology), which returns a text, or a text and warnings.
_WRITERS = {"yaml": "yaml_writer", "slurm": "slurm_writer", "dot": "dot", "svg": "svg"}
NAMES = tuple(_WRITERS)


def written(topology: Topology, name: str, **options: Any) -> tuple[str, tuple[str, ...]]:
    """Return a topology in one of ``NAMES``, with ``options`` of its ``text_of``; and warnings."""
    # Imported late: only one writer is needed, and often none.
    module = importlib.import_module(f"hpc_sched.topology.writers.{_WRITERS[name]}")
    answer = module.text_of(topology, **options)
    return (answer, ()) if isinstance(answer, str) else answer
