"""A fabric drawn as SVG: switches by level, a leaf's hosts as small squares.

Texts too long for their boxes are cut; tooltips have them whole.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import svg_layout
from hpc_sched.topology.writers.svg_layout import CELL, HEADING, PADDING, Box, Layout, cut, width_of

# States of hosts.
FREE, GROUP, USED, OFF = "free", "group", "used", "off"


# Okabe and Ito's colours, which colour-blind readers distinguish; dark, middle and white, and a
# cross, so that they differ in a print without colours too. Each: fill, stroke, meaning.
_HOST_STYLES = {
    FREE: ("#ffffff", "#555555", "free"),
    GROUP: ("#0072b2", "#00466e", "this group"),
    USED: ("#f0b440", "#8a6100", "other VMs"),
    OFF: ("#e4e4e4", "#555555", "disabled, down or unknown to Nova"),
}
_PLAIN = ("#9fcbe8", "#2a6f9e", "host")

_MARGIN = 16
_TOP = 52  # heading and names of levels
_LEGEND = 20
_BETWEEN = 2  # gap of two hosts
# For the name of a level.
_LEAF_ROOM, _UPPER_ROOM = svg_layout.MIN_COLUMNS * CELL, svg_layout.COLUMN - svg_layout.GAP
_TITLE, _NAME, _SMALL = 14, 10, 9  # font sizes
# Characters that XML 1.0 forbids, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_of(
    topology: Topology,
    title: str = "",
    states: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """Return a fabric as SVG. Linear in hosts, but for its layout.

    :param title: heading, in front of the size of the fabric
    :param states: host to one of ``FREE``, ``GROUP``, ``USED`` and ``OFF``; hosts without a state
        are drawn as ``OFF``. Without it all hosts look alike
    :param notes: host to the text of its tooltip after its name
    """
    places = svg_layout.of(topology)
    heading = f"{title}: {topology.summary()}" if title else topology.summary()
    legend = [] if states is None else _legend(Counter(states.get(h, OFF) for h in topology.hosts))
    width = 2 * _MARGIN + max(
        places.width,
        width_of(heading, _TITLE),
        sum(width_of(text, _NAME) + CELL + 24 for _, text in legend),
    )
    top = _TOP + (_LEGEND if legend else 0)
    height = places.height + top + _MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{_legal(heading)}</title>",
        _style(),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text("t", _MARGIN, _MARGIN + 10, heading),
        *_drawn_legend(legend),
        f'<g transform="translate({_MARGIN} {top})">',
        *(
            _text("l", x, -8, cut(name, _LEAF_ROOM if i == 0 else _UPPER_ROOM, _NAME))
            for i, (x, name) in enumerate(zip(places.columns, topology.levels, strict=True))
        ),
        *(f'<path class="c" d="M{x} {y}h{length}"/>' for x, y, length in places.lines),
    ]
    below = topology.leaf_hosts()
    hosts_below = Counter(
        s for leaf in topology.leaf_index.tolist() for s in topology.upwards(leaf)
    )
    leaves_below = Counter(
        above
        for s, switch in enumerate(topology.switches)
        if switch.level == 1
        for above in topology.upwards(s)
    )
    for box in places.boxes:
        if topology.switches[box.switch].level == 1:
            hosts = below[box.switch]
            out += _leaf(topology, box, hosts)
            out += _cells(topology, box, hosts, places, states, notes or {})
        else:
            out += _upper(topology, box, hosts_below[box.switch], leaves_below[box.switch])
        out.append("</g>")
    return "\n".join([*out, "</g>", "</svg>", ""])


def _leaf(topology: Topology, box: Box, hosts: list[str]) -> Iterator[str]:
    """Yield a leaf's box with its texts; the group is left open for the cells."""
    names, count = hostlist.fold(hosts), str(len(hosts))
    facts = [f"{plurals.text(len(hosts), 'host')}: {names}"]
    yield from _box("b", topology, box, facts, taken=width_of(count + " ", _NAME))
    yield _text("k", box.x + box.width - PADDING, box.y + 13, count)
    yield _text("h", box.x + PADDING, box.y + 24, cut(names, box.width - 2 * PADDING, _SMALL))


def _cells(
    topology: Topology,
    box: Box,
    hosts: list[str],
    places: Layout,
    states: Mapping[str, str] | None,
    notes: Mapping[str, str],
) -> Iterator[str]:
    for i, host in enumerate(hosts):
        x = box.x + PADDING + i % places.cells * places.cell
        y = box.y + HEADING + i // places.cells * places.cell
        state = None if states is None else states.get(host, OFF)
        note = notes.get(host) or (None if state is None else _HOST_STYLES[state][2])
        facts = (host, topology.processor_of(host), note)
        tooltip = _tooltip([", ".join(fact for fact in facts if fact)])
        yield _square(x, y, places.cell, state, tooltip)


def _square(x: int, y: int, cell: int, state: str | None, tooltip: str) -> str:
    s = cell - _BETWEEN
    size = f'width="{s}" height="{s}"'
    square = f'<rect class="{state or "host"}" x="{x}" y="{y}" {size}>{tooltip}</rect>'
    cross = f'<path class="x" d="M{x} {y}l{s} {s}m0 -{s}l-{s} {s}"/>'
    return square + cross if state == OFF else square


def _upper(topology: Topology, box: Box, hosts: int, leaves: int) -> Iterator[str]:
    lines = [plurals.text(hosts, "host"), plurals.text(leaves, "leaf")]
    yield from _box("u", topology, box, lines)
    for i, line in enumerate(lines):
        text = cut(line, box.width - 2 * PADDING, _SMALL)
        yield _text("h", box.x + PADDING, box.y + 25 + 12 * i, text)


def _box(
    class_: str, topology: Topology, box: Box, facts: Iterable[str], taken: int = 0
) -> Iterator[str]:
    """Yield a box and its name, but for ``taken`` px at its end; the group is left open."""
    yield f"<g>{_tooltip([*_facts(topology, box.switch), *facts])}"
    size = f'width="{box.width}" height="{box.height}"'
    yield f'<rect class="{class_}" x="{box.x}" y="{box.y}" {size}/>'
    name = topology.switches[box.switch].name
    name = cut(name, box.width - 2 * PADDING - taken, _NAME)
    yield _text("n", box.x + PADDING, box.y + 13, name)


def _text(class_: str, x: int, y: int, text: str) -> str:
    return f'<text class="{class_}" x="{x}" y="{y}">{_legal(text)}</text>'


def _facts(topology: Topology, index: int) -> Iterator[str]:
    switch = topology.switches[index]
    yield f"{switch.name} ({topology.levels[switch.level - 1]})"
    if switch.members:
        yield f"stands for {len(switch.members)} switches: {hostlist.fold(switch.members)}"
    if switch.links:
        down = f"{switch.links.down:g} Gb/s down, " if switch.links.down is not None else ""
        yield f"links: {down}{switch.links.uplinks.text} up"
    if switch.processor:
        yield f"processor: {switch.processor}"


def _legend(hosts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [
        (state, f"{meaning} ({hosts.get(state, 0)})")
        for state, (_, _, meaning) in _HOST_STYLES.items()
        if state != GROUP or hosts.get(state)
    ]


def _drawn_legend(legend: Iterable[tuple[str, str]]) -> Iterator[str]:
    x = _MARGIN
    for state, text in legend:
        yield _square(x, 34, CELL, state, "")
        yield _text("l", x + CELL + 4, 42, text)
        x += width_of(text, _NAME) + CELL + 24


def _style() -> str:
    rules = [
        f"text{{font-family:{svg_layout.FONT};fill:#1a1a1a}}",
        f".t{{font-size:{_TITLE}px;font-weight:bold}}",
        f".l{{font-size:{_NAME}px;fill:#444444}}",
        f".n{{font-size:{_NAME}px;font-weight:bold}}",
        f".k{{font-size:{_NAME}px;text-anchor:end}}",
        f".h{{font-size:{_SMALL}px;fill:#444444}}",
        ".b{fill:#fafafa;stroke:#888888}",
        ".u{fill:#e8eef2;stroke:#888888}",
        ".c{stroke:#888888;fill:none}",
        ".x{stroke:#555555;fill:none}",
        *(
            f".{name}{{fill:{fill};stroke:{stroke}}}"
            for name, (fill, stroke, _) in {**_HOST_STYLES, "host": _PLAIN}.items()
        ),
    ]
    return "<style>" + "\n".join(rules) + "</style>"


def _tooltip(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"<title>{_legal(text)}</title>" if text else ""


def _legal(text: str) -> str:
    """Return a text escaped for XML 1.0, without characters that it forbids."""
    return html.escape(_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text), quote=False)
