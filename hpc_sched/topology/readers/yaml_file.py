"""The ``yaml`` driver: a topology file written by hand.

The file is read as a tree of YAML nodes rather than of values, so that every error can name
the line that is wrong; a switch or host that is wrong does not hide what is wrong after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from hpc_sched import exceptions, yaml_nodes
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import MAX_PROBLEMS, shortened
from hpc_sched.topology.readers.text_driver import TextDriver
from hpc_sched.topology.tree import MAX_LEVELS
from hpc_sched.yaml_nodes import is_null, kind_of, line_of

# A level of switches nests a list and its keys.
MAX_NESTING = 4 * MAX_LEVELS
_TOP_KEYS = ("levels", "switches")
_SWITCH_KEYS = ("name", "switches", "hosts", "processor")
_HOST_KEYS = ("name", "processor")


class YamlFileDriver(TextDriver):
    """Reads a file of nested switches with folded host names."""

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the fabric that a file describes; linear in its length.

        :raises exceptions.TopologyError: with every problem: file, line and what was expected
        """
        root = yaml_nodes.compose(content, name, exceptions.TopologyError, MAX_NESTING)
        if root is None:
            raise exceptions.TopologyError(f"{name}: the file is empty")
        return _Reader(name).read(root)


@dataclass
class _Reader:
    """Walks the YAML nodes of one file."""

    path: str
    switch_line: dict[str, int] = field(default_factory=dict)
    host_leaf: dict[str, str] = field(default_factory=dict)
    processors: dict[str, str] = field(default_factory=dict)
    host_processors: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def read(self, root: yaml.Node) -> Topology:
        items = self._mapping(root, "the file", _TOP_KEYS)
        if "switches" not in items:
            raise self._error(root, "key 'switches' is missing")
        tree = self._switches(items["switches"], ())
        levels: list[str] = []
        if "levels" in items:
            node = items["levels"]
            levels = [self._text(item, "a level's name") for item in self._list(node, "levels")]
            if not levels:
                raise self._error(node, "levels: expected a name for every level, found none")
        if self.problems:
            raise exceptions.TopologyError(*self.problems)
        try:
            return Topology.from_tree(
                tree,
                levels=levels,
                processors=self.processors,
                host_processors=self.host_processors,
            )
        except exceptions.TopologyError as error:
            raise self._error(items.get("levels", root), str(error)) from error

    def _switches(self, node: yaml.Node, above: tuple[str, ...]) -> dict[str, Any]:
        """Return the tree of a list of switches; ``above`` are the names on the way down."""
        if len(above) >= MAX_LEVELS:
            raise self._error(node, f"more than {MAX_LEVELS} levels of switches")
        owner = f"switch {above[-1]!r}" if above else "the file"
        tree: dict[str, Any] = {}
        items = self._list(node, "switches")
        if not items:
            raise self._error(node, f"{owner} has no switches")
        for item in items:
            with self._going_on():
                keys = self._mapping(item, f"a switch of {owner}", _SWITCH_KEYS)
                if "name" not in keys:
                    raise self._error(item, f"a switch of {owner} has no name")
                name = self._text(keys["name"], "a switch's name")
                self._check_parent(name, keys["name"], above)
                self.switch_line[name] = line_of(keys["name"])
                tree[name] = self._below(item, keys, (*above, name))
        return tree

    def _below(
        self, item: yaml.Node, keys: Mapping[str, yaml.Node], path: tuple[str, ...]
    ) -> Mapping[str, Any] | list[str]:
        """Return what stands below a switch, the last of the names on the way down."""
        name = path[-1]
        if "processor" in keys:
            self.processors[name] = self._text(keys["processor"], "processor")
        if "hosts" in keys and "switches" in keys:
            raise self._error(item, f"switch {name!r} has both 'hosts' and 'switches'")
        if "hosts" in keys:
            return self._hosts(keys["hosts"], name)
        if "switches" in keys:
            return self._switches(keys["switches"], path)
        raise self._error(item, f"switch {name!r} has neither 'hosts' nor 'switches'")

    def _check_parent(self, name: str, node: yaml.Node, above: tuple[str, ...]) -> None:
        if name in above:
            chain = " > ".join((*above[above.index(name) :], name))
            raise self._error(node, f"cycle: switch {name!r} is below itself ({chain})")
        if name in self.switch_line:
            raise self._error(
                node,
                f"switch {name!r} stands twice, first on line {self.switch_line[name]}: "
                "a switch has one parent",
            )

    def _hosts(self, node: yaml.Node, leaf: str) -> list[str]:
        items: Sequence[yaml.Node]
        if isinstance(node, yaml.ScalarNode) and not is_null(node):
            items = [node]
        else:
            items = self._list(node, f"hosts of leaf {leaf!r}")
        if not items:
            raise self._error(node, f"leaf {leaf!r} has no hosts")
        hosts: list[str] = []
        for item in items:
            with self._going_on():
                hosts += self._named_hosts(item, leaf)
            if len(self.host_leaf) > hostlist.MAX_HOSTS:
                raise self._error(item, f"more than {hostlist.MAX_HOSTS} hosts")
        return hosts

    def _named_hosts(self, item: yaml.Node, leaf: str) -> list[str]:
        name, processor = self._host(item, leaf)
        text = self._text(name, "a host's name")
        try:
            hosts = hostlist.expand(text)
        except ValueError as error:
            raise self._error(name, f"leaf {leaf!r}: {error}") from error
        for host in hosts:
            if host in self.host_leaf:
                raise self._error(name, self._twice(host, leaf))
            self.host_leaf[host] = leaf
            if processor is not None:
                self.host_processors[host] = processor
        return hosts

    def _host(self, item: yaml.Node, leaf: str) -> tuple[yaml.Node, str | None]:
        """Return the node that names the hosts of an item, and their own processor type."""
        if not isinstance(item, yaml.MappingNode):
            return item, None
        what = f"a host of leaf {leaf!r}"
        keys = self._mapping(item, what, _HOST_KEYS)
        if "name" not in keys:
            raise self._error(item, f"{what} has no name")
        processor = keys.get("processor")
        return keys["name"], None if processor is None else self._text(processor, "processor")

    def _twice(self, host: str, leaf: str) -> str:
        if self.host_leaf[host] == leaf:
            return f"host {host!r} stands twice under leaf {leaf!r}"
        return f"host {host!r} is under leaf {self.host_leaf[host]!r} and leaf {leaf!r}"

    def _mapping(self, node: yaml.Node, what: str, known: tuple[str, ...]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._error(
                node, f"{what}: expected keys ({', '.join(known)}), found {kind_of(node)}"
            )
        found: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else kind_of(key_node)
            if key not in known:
                raise self._error(
                    key_node, f"unknown key {key!r} in {what}; known: {', '.join(known)}"
                )
            if key in found:
                raise self._error(key_node, f"key {key!r} stands twice in {what}")
            found[key] = value
        return found

    def _list(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, f"{what}: expected a list, found {kind_of(node)}")
        items: list[yaml.Node] = node.value
        return items

    def _text(self, node: yaml.Node, what: str) -> str:
        """Return a name as it is written: YAML would read a host called 0123 as a number."""
        if not isinstance(node, yaml.ScalarNode) or is_null(node):
            raise self._error(node, f"{what}: expected text, found {kind_of(node)}")
        text = str(node.value).strip()
        if not text:
            raise self._error(node, f"{what} is empty")
        return text

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Note what is wrong with one item, so that the next one is read too."""
        try:
            yield
        except exceptions.TopologyError as error:
            if len(self.problems) >= MAX_PROBLEMS:
                raise
            self.problems += error.problems

    def _error(self, node: yaml.Node, text: str) -> exceptions.TopologyError:
        return exceptions.TopologyError(f"{self.path}:{line_of(node)}: {shortened(text)}")
