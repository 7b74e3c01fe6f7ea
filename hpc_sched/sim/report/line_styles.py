"""Line styles of policies: each has one colour, one kind of line and one marker in all plots."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path

# Okabe and Ito's colours, without the yellow, too pale for lines on white.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Lengths of dash and gap, in line widths. Seven colours and four kinds have no common divisor, so
# the first 28 policies differ in one of them.
_DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 2.0), (1.2, 1.6), (7.0, 2.0, 1.5, 2.0))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d", "8")

_LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
_WIDTH, _HEIGHT, _MARKER = 34, 14, 8  # of a sample in the key, pixels


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Colour, dashes and marker of one policy."""

    colour: str
    dashes: tuple[float, ...]  # none: a whole line
    marker: str

    @property
    def line(self) -> str | tuple[float, tuple[float, ...]]:
        """The kind of line, as matplotlib takes it."""
        return (0.0, self.dashes) if self.dashes else "-"


def line_style(number: int) -> LineStyle:
    """Return the style of the policy with a number; numbers below 28 differ."""
    return LineStyle(
        colour=_COLOURS[number % len(_COLOURS)],
        dashes=_DASHES[number % len(_DASHES)],
        marker=_MARKERS[number % len(_MARKERS)],
    )


def sample(of: LineStyle) -> Markup:
    """Return a short piece of the policy's line as SVG, for a key in HTML."""
    width = 2
    dashes = " ".join(f"{width * part:g}" for part in of.dashes)
    dashed = Markup(' stroke-dasharray="{}"').format(dashes) if dashes else ""
    middle = _HEIGHT / 2
    return Markup(
        '<svg class="look" width="{}" height="{}" viewBox="0 0 {} {}" aria-hidden="true">'
        '<path d="M0 {:g}H{}" stroke="{}" stroke-width="{}"{}/><path d="{}" fill="{}"/></svg>'
    ).format(
        _WIDTH,
        _HEIGHT,
        _WIDTH,
        _HEIGHT,
        middle,
        _WIDTH,
        of.colour,
        width,
        dashed,
        _outline(of.marker, _WIDTH / 2, middle),
        of.colour,
    )


def _outline(marker: str, x: float, y: float) -> str:
    """Return the path of a marker around a point, as matplotlib draws it."""
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    parts = []
    for numbers, code in path.iter_segments(simplify=False):
        if code == Path.CLOSEPOLY:
            parts.append("Z")
            continue
        points = numbers.reshape(-1, 2) * (_MARKER, -_MARKER) + (x, y)  # y grows downwards here
        parts.append(
            _LETTERS[Path.code_type(code)]
            + " ".join(f"{value:.1f}" for value in points.ravel().tolist())
        )
    return "".join(parts)


# Distance of markers on one line, as a share of the plot's diagonal; and the least distance of
# markers of different lines that coincide.
_APART, _LEAST = 0.16, 0.022


def draw_line(
    axes: Axes, style: LineStyle, x: Sequence[float], y: Sequence[float], number: int, count: int
) -> None:
    """Draw a line. Each line has its markers elsewhere, so that coinciding lines show all of them.

    :param number: of the line, from 0
    :param count: of all lines
    """
    apart = max(_APART, _LEAST * count)
    axes.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        # A line of one sample has no places between samples.
        markevery=(apart * number / count, apart) if len(x) > 1 else None,
        clip_on=False,  # a clipped line or marker at the edge would look thinner
    )
