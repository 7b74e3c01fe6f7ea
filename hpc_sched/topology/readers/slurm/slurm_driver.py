"""The ``slurm`` driver: Slurm's own description of a fabric, topology.conf or topology.yaml."""

import re
from collections.abc import Mapping
from typing import Any

from hpc_sched import exceptions, files
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm import graph_tree, topology_conf, topology_yaml
from hpc_sched.topology.readers.text_driver import TextDriver

# The first line after comments: YAML's indicators, or a key with a colon.
_COMMENTS = re.compile(rb"(?:\s|#[^\n]*(?:\n|\Z))*")
_YAML = re.compile(rb"---|%YAML|%TAG|-\s|-\Z|[\[{!&*|>~?]|[\"']?[A-Za-z0-9_.]+[\"']?\s*:(?:\s|\Z)")
_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")


class SlurmDriver(TextDriver):
    """Reads topology.conf, the output of ``scontrol show topology``, or a tree of topology.yaml."""

    def __init__(self, *, tree: str | None = None, **source: Any) -> None:
        """Set the source and the tree to read.

        :param tree: the name of a topology in topology.yaml; by default the first with
            ``cluster_default``, or the only tree
        :raises exceptions.TopologyError: where there is neither a file nor a command, or both
        """
        super().__init__(**source)
        self.tree = tree

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a text; its first line determines the format.

        :raises exceptions.TopologyError: with every problem: file, line and what was expected
        """
        problems = Problems(name)
        if is_yaml(content):
            lines = topology_yaml.switches_of(content, self.tree, problems)
        else:
            text = files.decode(content, name, exceptions.TopologyError)
            lines = topology_conf.switches_of(text, problems)
            if self.tree is not None:
                problems.remark(
                    None, f"topology {self.tree!r} is asked for, but topology.conf has no names"
                )
        return graph_tree.topology_of(lines, problems)


def is_yaml(content: bytes) -> bool:
    """True if a text is a topology.yaml rather than a topology.conf."""
    if content.startswith(_WIDE_BOMS):
        return True
    start = len(_BOM) if content.startswith(_BOM) else 0
    begin = _COMMENTS.match(content, start)
    return bool(_YAML.match(content, begin.end() if begin else start))
