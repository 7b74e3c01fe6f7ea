"""Topology files that are wrong, and the error that each must give.

One table for the reader's own tests and for those that start a scheduler on the same files.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokenTopology:
    """A file that must be refused."""

    id: str
    content: bytes
    error: str  # regular expression to search for in the error; ``:3:`` is a line number


def _case(sentence: str, content: str | bytes, error: str) -> BrokenTopology:
    encoded = content.encode() if isinstance(content, str) else content
    return BrokenTopology(sentence, encoded, error)


def _nested_switches(levels: int) -> str:
    """Return a file of one switch below another, ``levels`` of them."""
    lines = ["switches:"]
    for level in range(levels):
        lines.append(f"{'  ' * level}- name: s{level + 1}")
        lines.append(f"{'  ' * level}  {'switches:' if level + 1 < levels else 'hosts: [h1]'}")
    return "\n".join(lines)


def _laughs(key: str) -> str:
    """Return aliases of aliases, nine to the power of nine entries once unfolded, in a file."""
    lines = ["switches:", "- name: sw1", f"  {key}:", "  - &a0 [ha, ha, ha, ha, ha, ha, ha, ha]"]
    for i in range(1, 9):
        lines.append(f"  - &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]")
    return "\n".join(lines)


_TWO = "switches:\n- {name: core, switches: [{name: s, hosts: a}]}\n"
_LEAF = "switches:\n- name: sw1\n  hosts: "

BROKEN: list[BrokenTopology] = [
    # No topology at all.
    _case("an empty file", "", r"the file is empty"),
    _case("a file of comments alone", "# switches: none yet\n\n# more\n", r"the file is empty"),
    _case("a file that says null", "# nothing\n~\n", r":2: the file: expected keys .*nothing"),
    _case("a file that is one word", "switches\n", r":1: the file: expected keys .*'switches'"),
    _case("a file that is a list", "- name: sw1\n", r":1: the file: expected keys .*a list"),
    # Not YAML.
    _case("a bracket that is never closed", "switches: [\n- a: {\n", r":\d+: not YAML: "),
    _case("a tab as indentation", "switches:\n\t- name: sw1\n", r":2: not YAML: .*cannot start"),
    _case("a quote that is never closed", 'switches:\n- name: "sw1\n', r":\d+: not YAML: "),
    _case(
        "two documents in one file",
        f"{_LEAF}[h1]\n---\n{_LEAF}[h2]\n",
        r":4: not YAML: .*another document",
    ),
    _case("an alias that nothing is called", f"{_LEAF}*all\n", r":3: not YAML: .*undefined alias"),
    _case("a binary", b"\x7fELF\x02\x01\x01\x00\x00\x89\xff", r"not YAML: unacceptable character"),
    _case("a file of zeros", bytes(512), r"not YAML: unacceptable character #x0000"),
    _case(
        "a name in Latin-1",
        "switches:\n- name: schränk\n  hosts: [h1]\n".encode("latin-1"),
        r"not YAML: unacceptable character",
    ),
    # Wrong keys.
    _case("no switches", "levels: [leaf]\n", r":1: key 'switches' is missing"),
    _case("an empty list of switches", "switches: []\n", r":1: the file has no switches"),
    _case("switches that say nothing", "switches:\n", r":1: switches: expected a list.*nothing"),
    _case(
        "an unknown key at the top",
        "switchs:\n- name: sw1\n",
        r":1: unknown key 'switchs' in the file; known: levels, oversubscription, switches",
    ),
    _case(
        "an unknown key at a switch",
        "switches:\n- name: sw1\n  host: [h1]\n",
        r":3: unknown key 'host' in a switch .*known: name, switches, hosts, processor, members",
    ),
    _case(
        "a merge key, which the driver does not know",
        "switches:\n- &leaf\n  name: sw1\n  hosts: [h1]\n- <<: *leaf\n  name: sw2\n",
        r":5: unknown key '<<'",
    ),
    _case(
        "a key that is a list",
        "switches:\n- ? [name, hosts]\n  : sw1\n",
        r":2: unknown key 'a list'",
    ),
    _case("a key given twice", f"{_LEAF}[h1]\n  hosts: [h2]\n", r":4: key 'hosts' stands twice"),
    _case("a switch without a name", "switches:\n- hosts: [h1]\n", r":2: .* has no name"),
    _case(
        "a switch with neither hosts nor switches",
        "switches:\n- name: sw1\n",
        r":2: switch 'sw1' has neither 'hosts' nor 'switches'",
    ),
    _case(
        "a switch with hosts and switches",
        f"{_LEAF}[h1]\n  switches:\n  - name: sw2\n    hosts: [h2]\n",
        r":2: switch 'sw1' has both 'hosts' and 'switches'",
    ),
    # Wrong types.
    _case(
        "switches as keys instead of a list",
        "switches:\n  sw1:\n    hosts: [h1]\n",
        r":2: switches: expected a list, found keys and values",
    ),
    _case("switches as a text", "switches: sw1\n", r":1: switches: expected a list, found 'sw1'"),
    _case("a switch that is a text", "switches:\n- sw1\n", r":2: .*expected keys .*found 'sw1'"),
    _case(
        "a name that is a list",
        "switches:\n- name: [sw1]\n  hosts: [h1]\n",
        r":2: a switch's name: expected text, found a list",
    ),
    _case(
        "a name that says nothing",
        "switches:\n- name:\n  hosts: [h1]\n",
        r":2: a switch's name: expected text, found nothing",
    ),
    _case("a name of blanks", "switches:\n- name: '  '\n  hosts: [h]\n", r":2: .*name is empty"),
    _case(
        "hosts as keys instead of a list",
        f"{_LEAF}\n    h1: up\n",
        r":4: hosts of leaf 'sw1': expected a list, found keys and values",
    ),
    _case(
        "a host that is a list",
        f"{_LEAF}\n  - h1\n  - [h2, h3]\n",
        r":5: a host's name: expected text, found a list",
    ),
    _case(
        "a processor that is a list",
        f"{_LEAF}[h1]\n  processor: [gold, silver]\n",
        r":4: processor: expected text, found a list",
    ),
    # Hosts with keys of their own.
    _case(
        "a name of a host that is a list",
        f"{_LEAF}\n  - h1\n  - name: [h2]\n    processor: gold\n",
        r":5: a host's name: expected text, found a list",
    ),
    _case(
        "an unknown key at a host",
        f"{_LEAF}\n  - h1\n  - name: h2\n    cpu: gold\n",
        r":6: unknown key 'cpu' in a host of leaf 'sw1'; known: name, processor",
    ),
    _case(
        "a processor as the value of its host",
        f"{_LEAF}\n  - h1: gold\n",
        r":4: unknown key 'h1' in a host of leaf 'sw1'; known: name, processor",
    ),
    _case(
        "a host without a name",
        f"{_LEAF}\n  - h1\n  - processor: gold\n",
        r":5: a host of leaf 'sw1' has no name",
    ),
    _case("a host without any key", f"{_LEAF}[{{}}]\n", r":3: a host of leaf 'sw1' has no name"),
    _case(
        "a name of a host that says nothing",
        f"{_LEAF}\n  - name:\n    processor: gold\n",
        r":4: a host's name: expected text, found nothing",
    ),
    _case(
        "a processor of a host that says nothing",
        f"{_LEAF}\n  - name: h1\n    processor:\n",
        r":5: processor: expected text, found nothing",
    ),
    _case(
        "a processor of a host of blanks",
        f"{_LEAF}\n  - name: h1\n    processor: '  '\n",
        r":5: processor is empty",
    ),
    _case(
        "a processor of a host that is a list",
        f"{_LEAF}[{{name: h1, processor: [gold]}}]\n",
        r":3: processor: expected text, found a list",
    ),
    _case(
        "a processor of a host given twice",
        f"{_LEAF}\n  - name: h1\n    processor: gold\n    processor: silver\n",
        r":6: key 'processor' stands twice in a host of leaf 'sw1'",
    ),
    _case(
        "a host alone and in a range with a processor",
        f"{_LEAF}\n  - n2\n  - name: n[1-4]\n    processor: gold\n",
        r":5: host 'n2' stands twice under leaf 'sw1'",
    ),
    _case(
        "a bad range of hosts with a processor",
        f"{_LEAF}\n  - processor: gold\n    name: n[7-3]\n",
        r":5: leaf 'sw1': .*it ends before it begins",
    ),
    _case(
        "keys of a host in place of the list of hosts",
        f"{_LEAF}{{name: h1, processor: gold}}\n",
        r":3: hosts of leaf 'sw1': expected a list, found keys and values",
    ),
    _case(
        "a host that holds its own list",
        f"{_LEAF}&all [{{name: *all}}]\n",
        r":3: a host's name: expected text, found a list",
    ),
    # Empty leaves.
    _case("a leaf with an empty list of hosts", f"{_LEAF}[]\n", r":3: leaf 'sw1' has no hosts"),
    _case(
        "a leaf whose hosts say nothing",
        f"{_LEAF}\n",
        r":3: hosts of leaf 'sw1': expected a list, found nothing",
    ),
    _case("a leaf with an empty text", f"{_LEAF}''\n", r":3: a host's name is empty"),
    _case(
        "a switch with an empty list of switches",
        "switches:\n- name: sw1\n  switches: []\n",
        r":3: switch 'sw1' has no switches",
    ),
    # Names given twice.
    _case(
        "a host under two leaves",
        f"{_LEAF}n[1-4]\n- name: sw2\n  hosts:\n  - n5\n  - n[4-6]\n",
        r":7: host 'n4' is under leaf 'sw1' and leaf 'sw2'",
    ),
    _case(
        "a host twice under one leaf",
        f"{_LEAF}[n2, 'n[1-4]']\n",
        r":3: host 'n2' stands twice under leaf 'sw1'",
    ),
    _case(
        "a switch under two parents",
        "switches:\n"
        "- name: core1\n  switches:\n  - name: sw1\n    hosts: [h1]\n"
        "- name: core2\n  switches:\n  - name: sw1\n    hosts: [h2]\n",
        r":8: switch 'sw1' stands twice, first on line 4: a switch has one parent",
    ),
    _case(
        "a switch under two parents by an alias",
        "switches:\n"
        "- name: core1\n  switches: &leaves\n  - name: sw1\n    hosts: [h1]\n"
        "- name: core2\n  switches: *leaves\n",
        r":4: switch 'sw1' stands twice, first on line 4",
    ),
    _case(
        "a switch twice under one parent",
        f"{_LEAF}[h1]\n- name: sw1\n  hosts: [h2]\n",
        r":4: switch 'sw1' stands twice, first on line 2",
    ),
    # Cycles.
    _case(
        "a cycle by name",
        "switches:\n- name: sw1\n  switches:\n  - name: sw2\n    switches:\n"
        "    - name: sw1\n      hosts: [h1]\n",
        r":6: cycle: switch 'sw1' is below itself \(sw1 > sw2 > sw1\)",
    ),
    _case(
        "a cycle by an alias of a switch",
        "switches:\n- &top\n  name: sw1\n  switches:\n  - name: sw2\n    switches: [*top]\n",
        r":3: cycle: switch 'sw1' is below itself \(sw1 > sw2 > sw1\)",
    ),
    _case(
        "a cycle by an alias of the list of switches",
        "switches: &all\n- name: sw1\n  switches: *all\n",
        r":2: cycle: switch 'sw1' is below itself",
    ),
    _case(
        "a list of hosts that holds itself",
        f"{_LEAF}&all [h1, *all]\n",
        r":3: a host's name: expected text, found a list",
    ),
    # Ranges.
    _case("a range without numbers", f"{_LEAF}'n[a-b]'\n", r":3: leaf 'sw1': bad range 'a-b'"),
    _case("a range that runs backwards", f"{_LEAF}'n[7-3]'\n", r":3: .*it ends before it begins"),
    _case("a range with a step of 0", f"{_LEAF}'n[1-4/0]'\n", r":3: .*a step of 0"),
    _case("a range that is never closed", f"{_LEAF}'n[1-4'\n", r":3: leaf 'sw1': bad range in"),
    _case("a range in a range", f"{_LEAF}'n[[1-2]]'\n", r":3: .*a bracket without its partner"),
    _case("a range padded two ways", f"{_LEAF}'n[01-010]'\n", r":3: leaf 'sw1': bad range in"),
    _case(
        "a huge range",
        f"{_LEAF}\n  - h1\n  - n[1-99999999999]\n",
        r":5: leaf 'sw1': 'n\[1-99999999999\]' expands to 99999999999 host names, "
        r"together with those before 100000000000; at most 1000000",
    ),
    _case(
        "a huge product of ranges",
        f"{_LEAF}'r[1-2000]n[1-2000]'\n",
        r":3: .*expands to 4000000 host names; at most 1000000",
    ),
    _case("a node group, which could run a command", f"{_LEAF}'@all'\n", r":3: .*character '@'"),
    _case("a wildcard", f"{_LEAF}'n*'\n", r":3: .*character '\*' in host name"),
    _case("a blank in a host name", f"{_LEAF}[h1 h2]\n", r":3: .*character ' ' in host name"),
    # Levels.
    _case(
        "too many names of levels",
        f"levels: [leaf, pod]\n{_LEAF}[h1]\n",
        r":1: levels: 2 names \(leaf, pod\) for a tree of depth 1",
    ),
    _case(
        "too few names of levels",
        "switches:\n- name: core1\n  switches:\n  - name: sw1\n    hosts: [h1]\nlevels: [leaf]\n",
        r":6: levels: 1 names \(leaf\) for a tree of depth 2",
    ),
    _case("an empty list of levels", f"levels: []\n{_LEAF}[h1]\n", r":1: levels: .*found none"),
    _case(
        "levels that are one text",
        f"levels: leaf\n{_LEAF}[h1]\n",
        r":1: levels: expected a list, found 'leaf'",
    ),
    _case(
        "a level's name given twice",
        "levels: [a, a]\nswitches:\n- name: s\n  switches:\n  - name: t\n    hosts: [h]\n",
        r":1: levels: a name stands twice",
    ),
    # Oversubscription.
    _case(
        "oversubscription of an unknown level",
        f"levels: [leaf]\noversubscription:\n  pod: 4\n{_LEAF}[h1]\n",
        r":3: unknown key 'pod' in oversubscription; known: leaf",
    ),
    _case(
        "oversubscription of a level that the fabric does not have",
        f"oversubscription: {{leaf: 2, pod: 4}}\n{_LEAF}[h1]\n",
        r":1: unknown key 'pod' in oversubscription; known: leaf",
    ),
    _case(
        "oversubscription of 0",
        f"oversubscription:\n  leaf: 0\n{_LEAF}[h1]\n",
        r":2: oversubscription of leaf: expected a number from 0\.001 to 1000, found '0'",
    ),
    _case(
        "negative oversubscription",
        f"levels: [leaf]\noversubscription: {{leaf: -4}}\n{_LEAF}[h1]\n",
        r":2: oversubscription of leaf: expected a number from 0\.001 to 1000, found '-4'",
    ),
    _case(
        "oversubscription beyond all fabrics",
        f"oversubscription: {{leaf: 1e9}}\n{_LEAF}[h1]\n",
        r":1: oversubscription of leaf: expected a number from 0\.001 to 1000, found '1e9'",
    ),
    _case(
        "oversubscription that is not a number",
        f"oversubscription:\n  leaf: 4:1\n{_LEAF}[h1]\n",
        r":2: oversubscription of leaf: expected a number",
    ),
    _case(
        "oversubscription of NaN",
        f"oversubscription:\n  leaf: .nan\n{_LEAF}[h1]\n",
        r":2: oversubscription of leaf: expected a number",
    ),
    _case(
        "oversubscription that says nothing",
        f"{_LEAF}[h1]\noversubscription:\n",
        r":4: oversubscription: expected keys .*nothing",
    ),
    _case(
        "oversubscription of a level that says nothing",
        f"oversubscription:\n  leaf:\n{_LEAF}[h1]\n",
        r":2: oversubscription of leaf: expected text, found nothing",
    ),
    _case(
        "one number for all levels",
        f"oversubscription: 4\n{_LEAF}[h1]\n",
        r":1: oversubscription: expected keys .*'4'",
    ),
    _case(
        "oversubscription of a level twice",
        f"oversubscription:\n  leaf: 2\n  leaf: 4\n{_LEAF}[h1]\n",
        r":3: key 'leaf' stands twice",
    ),
    _case(
        "a level's name too many in a file with oversubscription",
        f"levels: [leaf, pod]\noversubscription: {{leaf: 2}}\n{_LEAF}[h1]\n",
        r":1: levels: 2 names",
    ),
    # Links.
    _case(
        "uplinks without a number",
        f"uplinks: {{leaf: x 100}}\n{_TWO}",
        r":1: uplinks of leaf: expected NUMBER x RATE in Gb/s, such as 4 x 100, .*found 'x 100'",
    ),
    _case(
        "a rate that is none",
        f"uplinks:\n  leaf: 4 x fast\n{_TWO}",
        r":2: uplinks of leaf: expected NUMBER x RATE in Gb/s, .*found '4 x fast'",
    ),
    _case(
        "no uplinks at all",
        f"uplinks: {{leaf: 0}}\n{_TWO}",
        r":1: uplinks of leaf: expected NUMBER x RATE in Gb/s, .*found '0'",
    ),
    _case(
        "a rate in bits",
        f"host_links: 1 x 100000000000\n{_TWO}",
        r":1: host_links: expected a rate from 0\.001 to 100000 Gb/s, found '100000000000'",
    ),
    _case(
        "uplinks of an unknown level",
        f"uplinks: {{pod: 4 x 100, row: 4 x 100}}\n{_TWO}",
        r":1: unknown key 'row' in uplinks; known: leaf, pod",
    ),
    _case(
        "uplinks of the highest level",
        f"uplinks: {{pod: 4 x 100}}\n{_TWO}",
        r":1: uplinks of pod: there is no switch above this level",
    ),
    _case(
        "uplinks of the highest switch",
        "switches:\n- name: core\n  uplinks: 4 x 100\n  switches: [{name: s, hosts: a}]\n",
        r":3: switch 'core' has uplinks, and no switch above it",
    ),
    _case(
        "uplinks and oversubscription of one level",
        f"oversubscription: {{leaf: 2}}\nuplinks: {{leaf: 4 x 100}}\n{_TWO}",
        r":2: leaf has both uplinks and oversubscription \(line 1\): expected one of them",
    ),
    _case(
        "uplinks of all levels in one",
        f"uplinks: 4 x 100\n{_TWO}",
        r":1: uplinks: expected keys \(leaf, pod\), found '4 x 100'",
    ),
    _case(
        "an empty list of uplinks",
        f"uplinks: {{leaf: []}}\n{_TWO}",
        r":1: uplinks of leaf: expected 1 to 16 different rates, found 0",
    ),
    _case(
        "links of a host that are none",
        "switches:\n- name: s\n  hosts:\n  - {name: a, links: many}\n",
        r":4: links of host 'a': expected NUMBER x RATE in Gb/s, .*found 'many'",
    ),
    _case(
        "links of hosts below a switch that say nothing",
        "switches:\n- name: s\n  host_links:\n  hosts: a\n",
        r":3: host_links of switch 's': expected text, found nothing",
    ),
    # Made to hurt.
    _case("a billion laughs of hosts", _laughs("hosts"), r":4: a host's name: expected text"),
    _case("a billion laughs of switches", _laughs("switches"), r":4: .*expected keys .*a list"),
    _case("a billion laughs in a processor", _laughs("processor"), r":4: processor: expected"),
    _case(
        "one level of switches too many",
        _nested_switches(33),
        r":66: more than 32 levels of switches",
    ),
    _case("hundreds of levels of switches", _nested_switches(500), r":\d+: .*nested deeper than"),
    _case(
        "more open brackets than a stack of calls can hold",
        "switches: " + "[" * 200_000,
        r":1: lists and keys are nested deeper than",
    ),
    _case(
        "more dashes than a stack of calls can hold",
        "switches:\n" + "- " * 20_000 + "sw1\n",
        r":2: lists and keys are nested deeper than",
    ),
]
