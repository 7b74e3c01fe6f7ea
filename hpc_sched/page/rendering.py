"""Pages from templates, and their pictures in one style whatever the reader's matplotlib.

All pictures of a page share its ids and styles, but matplotlib writes for a file of its own.
"""

import io
import re
import warnings

# Reads only what matplotlib has just written.
import xml.etree.ElementTree as ET  # nosec B405
from collections.abc import Callable
from typing import Any

import matplotlib
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import AutoLocator, MaxNLocator

# Inches of 96 pixels. Labels are legible where a picture is shrunk to the width of a phone.
WIDTH = 4.8
HEIGHT = 2.7
_RASTER = 144  # pixels an inch, of what is no vector graphic
_TICKS = 7  # intervals between ticks of an axis, at most

# Any: the type of matplotlib's keys differs between the supported releases.
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#767676",
    "axes.formatter.use_mathtext": False,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": "#1a1a1a",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": ["DejaVu Sans"],  # part of matplotlib
    "font.size": 9.0,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.25,
    "lines.markersize": 4.0,
    # Text remains text: it can be searched, and is a third of its outlines' size.
    "svg.fonttype": "none",
    # A dollar in a name is a dollar.
    "text.parse_math": False,
    "xtick.color": "#4a4a4a",
    "ytick.color": "#4a4a4a",
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
# Characters that neither HTML nor SVG can hold, such as surrogates in file names.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PIXELS = 4 / 3  # of a point
# The rules that matplotlib states for all elements; they are inherited from the outermost.
_INHERITED = {"stroke-linejoin": "round", "stroke-linecap": "butt"}


def rendered(name: str, package: str | None = None, **values: Any) -> str:
    """Return a page of a template and its values. Same input, same text.

    :param package: with ``templates`` of its own; those that all pages share can be had too
    """
    packages = filter(None, ("hpc_sched.page", package))
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(one, "templates") for one in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return legal(environment.get_template(name).render(**values))


def drawn(name: str, label: str, draw: Callable[[Figure], None], height: float = HEIGHT) -> Markup:
    """Return a picture as SVG for the page. The same drawing gives the same text.

    :param name: unique on the page, and so are the ids that follow from it
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        # The browser takes letters that this font lacks from another: the text remains text.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        # Ids of clip paths and markers follow from this and from what is drawn.
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": name})
        layout = ConstrainedLayoutEngine()
        figure = Figure(figsize=(WIDTH, height), dpi=72, layout=layout)
        draw(figure)
        # The layout changes the sizes of axes: with a number of ticks that depends on the size,
        # it would leave room for other labels than those that are drawn.
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            if isinstance(axis.get_major_locator(), AutoLocator):
                axis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]))
        # Laid out once: savefig would draw everything a second time for it.
        layout.execute(figure)
        figure.set_layout_engine(None)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=_NO_METADATA, dpi=_RASTER)
    return _inlined(stream.getvalue(), label)


def as_file(picture: Markup) -> str:
    """Return the content of an SVG file: a picture with the namespace that a page implies."""
    return f'<svg xmlns="http://www.w3.org/2000/svg"{picture.removeprefix("<svg")}\n'


def legal(text: str) -> str:
    """Return a text with a replacement character for those that no page can hold."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def _inlined(svg: str, label: str) -> Markup:
    """Return a picture without namespaces, styles and the ids of groups. Linear in the text."""
    root = ET.fromstring(svg)  # nosec B314
    for element in list(root.iter()):
        for child in list(element):
            if _local(str(child.tag)) in ("metadata", "style"):
                element.remove(child)
        element.tag = _local(str(element.tag))
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
        if element.tag == "g":
            element.attrib.pop("id", None)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib = {
        "class": "plot",
        "role": "img",
        "aria-label": label,
        "viewBox": root.attrib["viewBox"],
        "width": f"{float(width) * _PIXELS:g}",
        "height": f"{float(height) * _PIXELS:g}",
        **_INHERITED,
    }
    # Texts are escaped by ElementTree.
    return Markup(ET.tostring(root, encoding="unicode"))  # nosec B704


def _local(name: str) -> str:
    """Return a name without its namespace: HTML knows by itself what is SVG."""
    return name.rpartition("}")[2]
