"""The ``yaml`` driver: a topology file written by hand.

The file is read as a tree of YAML nodes rather than of values, so that every error names its
line; a wrong switch or host does not hide the errors after it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import yaml

from hpc_sched import exceptions, yaml_nodes
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.text_driver import TextDriver
from hpc_sched.topology.readers.yaml_items import invalid, items, mapping, text
from hpc_sched.topology.tree import MAX_LEVELS, Details
from hpc_sched.yaml_nodes import is_null, line_of

# A level of switches nests a list and its keys.
MAX_NESTING = 4 * MAX_LEVELS
_LINKS = ("uplinks", "host_links")
_SWITCH_KEYS = ("name", "switches", "hosts", "processor", "members", "ids", *_LINKS)


class YamlFileDriver(TextDriver):
    """Reads a file of nested switches with folded host names."""

    rank = 6  # after JSON, which is YAML, too
    patterns = (re.compile(rb"^[\"']?(?:switches|levels)[\"']?[ \t]*:", re.MULTILINE),)

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a file; TopologyError has every problem. Linear in its length."""
        root = yaml_nodes.compose(content, name, exceptions.TopologyError, MAX_NESTING)
        if root is None:
            raise exceptions.TopologyError(f"{name}: the file is empty")
        return _TreeReader(Problems(name)).read(root)


@dataclass
class _TreeReader:
    problems: Problems
    switch_line: dict[str, int] = field(default_factory=dict)
    host_leaf: dict[str, str] = field(default_factory=dict)
    processors: dict[str, str] = field(default_factory=dict)
    host_processors: dict[str, str] = field(default_factory=dict)
    host_ids: dict[str, str] = field(default_factory=dict)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    links: dict[str, dict[str, yaml.Node]] = field(default_factory=dict)  # by switch and key
    host_links: dict[str, yaml.Node] = field(default_factory=dict)
    names: hostlist.Expansion = field(default_factory=hostlist.Expansion)
    switch_names: hostlist.Expansion = field(
        default_factory=lambda: hostlist.Expansion("switch name or id")
    )

    def read(self, root: yaml.Node) -> Topology:
        tree: dict[str, Any] = {}
        levels: list[str] = []
        top = root
        with self.problems.collecting():
            fields = mapping(
                *(root, "the file", ("levels", "oversubscription", "switches", *_LINKS)),
                *("switches", "key 'switches' is missing"),
            )
            tree = self._switches(fields["switches"], ())
            if "levels" in fields:
                top = fields["levels"]
                levels = [text(item, "a level's name") for item in items(top, "levels")]
                if not levels:
                    raise invalid(top, "levels: expected a name for every level, found none")
        self.problems.stop()
        try:
            found = Topology.from_tree(
                tree,
                levels,
                host_processors=self.host_processors,
                details=Details(self.processors, self.members, ids=self.ids),
                host_ids=self.host_ids,
            )
        except exceptions.TopologyError as error:
            raise self.problems.error(line_of(top), str(error)) from error
        stated = {key: fields[key] for key in ("oversubscription", *_LINKS) if key in fields}
        if stated or any(self.links.values()) or self.host_links:
            # Few files have them.
            from hpc_sched.topology.readers import yaml_links

            found = yaml_links.with_links(found, stated, self.links, self.host_links, self.problems)
        return found

    def _switches(self, node: yaml.Node, above: tuple[str, ...]) -> dict[str, Any]:
        """Return the nested tree of a list of switches; ``above`` names those above, root first."""
        if len(above) >= MAX_LEVELS:
            raise invalid(node, f"more than {MAX_LEVELS} levels of switches")
        owner = f"switch {above[-1]!r}" if above else "the file"
        switches = items(node, "switches")
        if not switches:
            raise invalid(node, f"{owner} has no switches")
        tree: dict[str, Any] = {}
        for item in switches:
            with self.problems.collecting():
                what = f"a switch of {owner}"
                fields = mapping(item, what, _SWITCH_KEYS, "name", f"{what} has no name")
                name = text(fields["name"], "a switch's name")
                if name in above:
                    chain = " > ".join((*above[above.index(name) :], name))
                    raise invalid(
                        fields["name"], f"cycle: switch {name!r} is below itself ({chain})"
                    )
                if name in self.switch_line:
                    raise invalid(
                        fields["name"],
                        f"switch {name!r} stands twice, first on line {self.switch_line[name]}: a "
                        "switch has one parent",
                    )
                self.switch_line[name] = line_of(fields["name"])
                tree[name] = self._below(item, fields, (*above, name))
        return tree

    def _below(
        self, item: yaml.Node, fields: Mapping[str, yaml.Node], path: tuple[str, ...]
    ) -> Mapping[str, Any] | list[str]:
        name = path[-1]
        if "processor" in fields:
            self.processors[name] = text(fields["processor"], "processor")
        for key, found in (("members", self.members), ("ids", self.ids)):
            if key in fields:
                found[name] = self._listed(fields[key], f"{key} of switch {name!r}")
        self.links[name] = {key: fields[key] for key in _LINKS if key in fields}
        if "hosts" in fields and "switches" in fields:
            raise invalid(item, f"switch {name!r} has both 'hosts' and 'switches'")
        if "hosts" in fields:
            return self._hosts(fields["hosts"], name)
        if "switches" not in fields:
            raise invalid(item, f"switch {name!r} has neither 'hosts' nor 'switches'")
        return self._switches(fields["switches"], path)

    def _listed(self, node: yaml.Node, what: str) -> tuple[str, ...]:
        """Return other names of a switch: folded ones, or any text in quotes."""
        names: list[str] = []
        for item in _lists(node, what):
            listed = text(item, what)
            try:
                names += self.switch_names.expand(listed)
            except hostlist.TooManyNamesError as error:
                raise self.problems.error(line_of(item), f"{what}: {error}") from error
            except ValueError:
                # A switch's own name may have any characters.
                names.append(listed)
        return tuple(names)

    def _hosts(self, node: yaml.Node, leaf: str) -> list[str]:
        lists = _lists(node, f"hosts of leaf {leaf!r}")
        if not lists:
            raise invalid(node, f"leaf {leaf!r} has no hosts")
        found = self.problems.of_each(lists, lambda item: self._named_hosts(item, leaf))
        return list(chain.from_iterable(found))

    def _named_hosts(self, item: yaml.Node, leaf: str) -> list[str]:
        fields = {"name": item}
        if isinstance(item, yaml.MappingNode):
            what, known = f"a host of leaf {leaf!r}", ("name", "processor", "id", "links")
            fields = mapping(item, what, known, "name", f"{what} has no name")
        name = fields["name"]
        stated = {key: text(fields[key], key) for key in ("processor", "id") if key in fields}
        folded = text(name, "a host's name")
        try:
            hosts = self.names.expand(folded)
        except hostlist.TooManyNamesError as error:
            raise self.problems.error(line_of(name), f"leaf {leaf!r}: {error}") from error
        except ValueError as error:
            raise invalid(name, f"leaf {leaf!r}: {error}") from error
        for host in hosts:
            other = self.host_leaf.get(host)
            if other == leaf:
                raise invalid(name, f"host {host!r} stands twice under leaf {leaf!r}")
            if other is not None:
                raise invalid(name, f"host {host!r} is under leaf {other!r} and leaf {leaf!r}")
            self.host_leaf[host] = leaf
        if "processor" in stated:
            self.host_processors |= dict.fromkeys(hosts, stated["processor"])
        if "links" in fields:
            self.host_links |= dict.fromkeys(hosts, fields["links"])
        if "id" in stated:
            if len(hosts) != 1:
                raise invalid(name, f"id {stated['id']!r}: expected one host, found {len(hosts)}")
            self.host_ids[hosts[0]] = stated["id"]
        return hosts


def _lists(node: yaml.Node, what: str) -> list[yaml.Node]:
    """Return the items of a list, or the only one, given as a text."""
    is_text = isinstance(node, yaml.ScalarNode) and not is_null(node)
    return [node] if is_text else items(node, what)
