"""Results by policy: its line style, why it refused jobs, and the parts of plots."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path

from hpc_sched.sim.results import Result

# Okabe and Ito's colours, without the yellow, too pale for lines on white.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Lengths of dash and gap, in line widths. Seven colours and four kinds have no common divisor, so
# the first 28 policies differ in one of them.
_DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 2.0), (1.2, 1.6), (7.0, 2.0, 1.5, 2.0))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d", "8")
# Distance of markers on one line, as a share of the plot's diagonal; and the least distance of
# markers of different lines that coincide.
_APART, _LEAST = 0.16, 0.022

_LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
_WIDTH, _HEIGHT, _MARKER = 34, 14, 8  # of a sample in the key, pixels
_LINE = 2  # its line's width, pixels


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Colour, dashes and marker of one policy, the same in all plots."""

    colour: str
    dashes: tuple[float, ...]  # none: a whole line
    marker: str


def line_style(number: int) -> LineStyle:
    """Return the style of the policy with a number; numbers below 28 differ."""
    colour, dashes = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    return LineStyle(colour, dashes, _MARKERS[number % len(_MARKERS)])


def sample(of: LineStyle) -> Markup:
    """Return a short piece of the policy's line as SVG, for a key in HTML."""
    dashes = " ".join(f"{_LINE * part:g}" for part in of.dashes)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    middle, marker = _HEIGHT / 2, _outline(of.marker, _WIDTH / 2, _HEIGHT / 2)
    # All parts are constants or numbers.
    return Markup(  # nosec B704
        f'<svg class="look" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'aria-hidden="true"><path d="M0 {middle:g}H{_WIDTH}" stroke="{of.colour}" '
        f'stroke-width="{_LINE}"{dashed}/><path d="{marker}" fill="{of.colour}"/></svg>'
    )


def _outline(marker: str, x: float, y: float) -> str:
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    parts = []
    for numbers, code in path.iter_segments(simplify=False):
        points = numbers.reshape(-1, 2) * (_MARKER, -_MARKER) + (x, y)  # y grows downwards here
        texts = [f"{value:.1f}" for value in points.ravel().tolist()]
        is_end = code == Path.CLOSEPOLY
        parts.append("Z" if is_end else _LETTERS[Path.code_type(code)] + " ".join(texts))
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class PolicyRuns:
    """The runs of one policy, one per seed; at least one."""

    policy: str
    look: LineStyle
    results: tuple[Result, ...]

    @property
    def shown(self) -> Result:
        """The run shown where only one can be drawn: the first.

        A mean over seeds would show states that the cluster never was in.
        """
        return self.results[0]

    @property
    def took_time(self) -> bool:
        """True if the run shown has means over time; one whose jobs were all refused has none."""
        return len(self.shown.series.totals.time) > 1


def by_policy(results: Sequence[Result]) -> list[PolicyRuns]:
    """Return the runs of each policy; policies and runs in the given order."""
    found: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        found[result.summary.policy].append(result)
    return [
        PolicyRuns(policy, line_style(number), tuple(runs))
        for number, (policy, runs) in enumerate(found.items())
    ]


def draw_lines(
    axes: Axes,
    policies: Sequence[PolicyRuns],
    lines: Sequence[tuple[Sequence[float], Sequence[float]]],
) -> None:
    """Draw a line per policy. Each has its markers elsewhere, so that coinciding lines show all."""
    apart = max(_APART, _LEAST * len(policies))
    for number, (each, (x, y)) in enumerate(zip(policies, lines, strict=True)):
        axes.plot(
            x,
            y,
            color=each.look.colour,
            linestyle=(0.0, each.look.dashes) if each.look.dashes else "-",
            marker=each.look.marker,
            # A line of one sample has no places between samples.
            markevery=(apart * number / len(policies), apart) if len(x) > 1 else None,
            clip_on=False,  # a clipped line or marker at the edge would look thinner
        )


def about_seeds(policies: Sequence[PolicyRuns]) -> str:
    """Return a sentence on which seeds are shown where; empty for one seed."""
    if all(len(each.results) < 2 for each in policies):
        return ""
    shown = {each.shown.summary.seed for each in policies}
    which = f"seed {min(shown)}" if len(shown) == 1 else "the first seed of each policy"
    return (
        "There are several seeds: tables and bars have the means over them, "
        f"all other plots show {which} alone."
    )


def refusals(policies: Sequence[PolicyRuns]) -> list[tuple[PolicyRuns, list[tuple[str, int]]]]:
    """Return each policy that refused jobs, with each reason's jobs over all seeds, most first."""
    jobs = [
        sum((Counter(one.refusals) for one in each.results), Counter[str]()) for each in policies
    ]
    return [
        (each, sorted(found.items(), key=lambda item: (-item[1], item[0])))
        for each, found in zip(policies, jobs, strict=True)
        if found
    ]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture, with a caption if the plot has several."""

    svg: Markup
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """One or more pictures that are read alike."""

    title: str
    reading: str  # how to read it, a sentence or two
    panels: tuple[Panel, ...]  # empty if no run has anything to draw
    key: tuple[PolicyRuns, ...] = ()  # policies in the key of line styles
    missing: tuple[str, ...] = ()  # policies with nothing to draw


def parted(
    policies: Sequence[PolicyRuns], has: Callable[[PolicyRuns], object]
) -> tuple[tuple[PolicyRuns, ...], tuple[str, ...]]:
    """Return the policies that have something to draw, and the names of the others."""
    missing = tuple(each.policy for each in policies if not has(each))
    return tuple(each for each in policies if has(each)), missing
