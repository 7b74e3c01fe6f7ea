"""The interference index as a table (Gupta2013, Figure 2)."""

from hpc_sched import decimals
from hpc_sched.core.sharing.cache_interference import InterferenceIndex


def render(index: InterferenceIndex, tolerance: float) -> str:
    """Return the table of an index, a row an application, a column the neighbour beside it.

    1.00 is the speed alone. Pairs that would be kept apart are marked with ``*`` in both rows,
    for one of the two that loses is enough; pairs that nobody has measured are ``-``.

    :param tolerance: see :meth:`InterferenceIndex.bad_company`
    """
    bad = index.bad_company(tolerance)
    names = sorted(index.applications)
    cells = [["application", *names]]
    for name in names:
        row = [name]
        for neighbour in names:
            speed = index.performance.get((name, neighbour))
            mark = "*" if neighbour in bad.get(name, ()) else " "
            row.append("- " if speed is None else f"{speed:.2f}{mark}")
        cells.append(row)
    # Headings end above the last digit, not above the mark.
    cells[0][1:] = [f"{name} " for name in names]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["performance beside a neighbour on the same host, 1.00 = alone"]
    for row in cells:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(padded).rstrip())
    limit = decimals.text_of(tolerance)
    apart = sorted({(min(a, b), max(a, b)) for a, others in bad.items() for b in others})
    if apart:
        pairs = ", ".join(f"{one} + {other}" for one, other in apart)
        lines.append(f"* kept apart at a tolerance of {limit}: {pairs}")
    else:
        lines.append(f"no pair is kept apart at a tolerance of {limit}")
    return "\n".join(lines)
