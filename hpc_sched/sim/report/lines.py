"""Lines of policies that remain visible where they coincide."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from hpc_sched.sim.report.looks import Look

# Markers of one line stand so far apart, as a share of the plot's diagonal; those of different
# lines at least so far, were they all the same line.
_APART, _LEAST = 0.16, 0.022


def add(
    axes: Axes, look: Look, x: Sequence[float], y: Sequence[float], number: int, count: int
) -> None:
    """Draw a line; the markers of each begin elsewhere: where lines coincide they do not.

    :param number: of the line, from 0
    :param count: of all lines
    """
    apart = max(_APART, _LEAST * count)
    axes.plot(
        x,
        y,
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        # A place between samples cannot be found on a line of one.
        markevery=(apart * number / count, apart) if len(x) > 1 else None,
        clip_on=False,  # half a line at the edge, and half a marker, look like less
    )
