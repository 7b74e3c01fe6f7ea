"""What a check has found, and the line of the table that this becomes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oslo_upgradecheck.upgradecheck import Code, Result

# More lines of one check than this nobody reads in a table.
MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check has found, and how bad that is."""

    code: Code
    text: str  # sentences; of a warning or failure the last one says what to do


def good(text: str) -> Finding:
    """Return a finding that is as it should be."""
    return Finding(Code.SUCCESS, text)


def warning(text: str) -> Finding:
    """Return a finding under which requests are placed worse than they could be."""
    return Finding(Code.WARNING, text)


def failure(text: str) -> Finding:
    """Return a finding that keeps nova-scheduler from starting or breaks what is promised."""
    return Finding(Code.FAILURE, text)


def result(findings: Iterable[Finding]) -> Result:
    """Return the line of the table for findings, the worst first: a finding a line."""
    ordered = sorted(findings, key=lambda finding: -finding.code)
    code = ordered[0].code if ordered else Code.SUCCESS
    return Result(code, "\n".join(finding.text for finding in ordered) or None)


def shortened(texts: Sequence[str]) -> list[str]:
    """Return the first texts, and how many more there are where there are too many."""
    shown = list(texts[:MAX_LISTED])
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown)} more")
    return shown


def said(error: Exception) -> str:
    """Return what an import error says, without the traceback that oslo.utils puts behind it."""
    return str(error).split(" (['Traceback ")[0]
