"""What a check has found, and the line of the table that this becomes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from oslo_upgradecheck.upgradecheck import Code, Result

MAX_LISTED = 20  # lines of one list in the table


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact that a check has found, and its severity."""

    code: Code
    text: str  # sentences; the last one of a warning or failure names the remedy


good = partial(Finding, Code.SUCCESS)  # needs no change
warning = partial(Finding, Code.WARNING)  # requests are placed worse than they could be
failure = partial(Finding, Code.FAILURE)  # nova-scheduler does not start, or a guarantee breaks


def result(findings: Iterable[Finding]) -> Result:
    """Return the table's line for a check: one finding a line, the worst first."""
    ordered = sorted(findings, key=lambda finding: -finding.code)
    code = ordered[0].code if ordered else Code.SUCCESS
    return Result(code, "\n".join(finding.text for finding in ordered) or None)


def shortened(texts: Sequence[str]) -> list[str]:
    """Return the first ``MAX_LISTED`` texts, then the number of the others."""
    shown = list(texts[:MAX_LISTED])
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown)} more")
    return shown


def import_error_text(error: Exception) -> str:
    """Return the text of an import error without the traceback that oslo.utils appends."""
    return str(error).split(" (['Traceback ")[0]
