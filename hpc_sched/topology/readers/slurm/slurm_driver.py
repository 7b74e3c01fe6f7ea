"""The ``slurm`` driver: Slurm's own description of a fabric, topology.conf or topology.yaml.

Each describes switches (topology/tree) or blocks of nodes (topology/block).
"""

import re
from collections.abc import Mapping
from typing import Any

from hpc_sched import exceptions, files
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_options
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm import blocks, graph_tree, topology_conf, topology_yaml
from hpc_sched.topology.readers.text_driver import TextDriver

# A byte order mark of UTF-16; or, after comments, YAML's indicators or a key with a colon.
_YAML = re.compile(
    rb"\xff\xfe|\xfe\xff|(?:\xef\xbb\xbf)?+(?:\s|#[^\n]*(?:\n|\Z))*+"
    rb"(?:---|%YAML|%TAG|-\s|-\Z|[\[{!&*|>~?]|[\"']?[A-Za-z0-9_.]+[\"']?\s*:(?:\s|\Z))"
)


class SlurmDriver(TextDriver):
    """Reads topology.conf, the output of ``scontrol show topology``, or one of a topology.yaml.

    ``tree`` is the name of that one, which may have blocks; without it see ``topology_yaml.read``.
    """

    options = driver_options.of_text("tree")
    rank = 5
    patterns = (
        re.compile(rb"^[ \t]*(?:SwitchName|BlockName)[ \t]*=", re.MULTILINE | re.IGNORECASE),
        re.compile(rb"^[ \t]*(?:-[ \t]+)?[\"']?topology[\"']?[ \t]*:", re.MULTILINE),
    )

    def __init__(self, *, tree: str | None = None, **source: Any) -> None:
        super().__init__(**source)
        self.tree = tree

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology in the format of the first line; TopologyError has every problem."""
        problems = Problems(name)
        if is_yaml(content):
            found = topology_yaml.read(content, self.tree, problems)
        else:
            found = topology_conf.read(
                files.decode(content, name, exceptions.TopologyError), problems
            )
            if self.tree is not None:
                problems.remark(
                    None, f"topology {self.tree!r} is asked for, but topology.conf has no names"
                )
        if isinstance(found, blocks.BlockList):
            return blocks.topology_of(found, problems)
        return graph_tree.topology_of(found, problems)


def is_yaml(content: bytes) -> bool:
    """True if a text is a topology.yaml rather than a topology.conf."""
    return _YAML.match(content) is not None
