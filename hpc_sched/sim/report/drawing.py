"""How all plots are drawn: the same style, whatever the settings of the reader's matplotlib."""

import io
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from hpc_sched.sim.report.inlined import inlined

WIDTH = 6.0  # inches, of 96 pixels
HEIGHT = 3.1

# What matplotlib calls its settings differs between the releases that we take.
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#767676",
    "axes.formatter.use_mathtext": False,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": "#1a1a1a",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": ["DejaVu Sans"],  # matplotlib brings it along
    "font.size": 9.0,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    # Ids follow from what is drawn, and from this.
    "svg.hashsalt": "hpc_sched",
    # Text remains text: it can be searched, and is a third of its outlines' size.
    "svg.fonttype": "none",
    # A dollar in a name is a dollar.
    "text.parse_math": False,
    "xtick.color": "#4a4a4a",
    "ytick.color": "#4a4a4a",
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def drawn(
    name: str,
    label: str,
    draw: Callable[[Figure], None],
    width: float = WIDTH,
    height: float = HEIGHT,
) -> Markup:
    """Return a picture as SVG for the page. The same drawing gives the same text.

    :param name: leads its ids; no other picture of the page has it
    :param label: what is read out in place of the picture
    :param draw: what draws it
    :param width: in inches
    :param height: in inches
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Letters that the font lacks are taken from the reader's fonts: the text remains text.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        layout = ConstrainedLayoutEngine()
        figure = Figure(figsize=(width, height), dpi=72, layout=layout)
        draw(figure)
        # Laid out once: savefig would draw everything a second time for it.
        layout.execute(figure)
        figure.set_layout_engine(None)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=_NO_METADATA)
    return inlined(stream.getvalue(), name, label)
