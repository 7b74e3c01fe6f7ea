"""What checks find, as results of oslo.upgradecheck.

A finding is one ``Result``: a code, and a fact in sentences, made by :data:`good`, :data:`warning`
or :data:`failure`. A check yields its findings: it returns :data:`Findings`. A check whose success
needs no finding returns a :data:`Verdict`: it yields findings too, and at its end returns the
sentence for the case that there was none. :func:`merged` makes the table's line of either.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

from oslo_upgradecheck.upgradecheck import Code, Result

Findings = Iterator[Result]
Verdict = Generator[Result, None, str]

MAX_LISTED = 20  # lines of one list in the table
NO_COMMENTS = (
    "nova.conf has no comments behind a value. Put the comment on a line of its own, beginning "
    "with #."
)

# One fact each, in sentences; the last one of a warning or failure names the remedy.
good = partial(Result, Code.SUCCESS)  # needs no change
warning = partial(Result, Code.WARNING)  # requests are placed worse than they could be
# nova-scheduler does not start or refuses requests, or a guarantee breaks
failure = partial(Result, Code.FAILURE)


def merged(findings: Findings) -> Result:
    """Return the table's line for a check: one finding a line, the worst first."""
    found: list[Result] = []
    try:
        while True:
            found.append(next(findings))
    except StopIteration as end:
        if end.value and not found:
            return good(end.value)
    found.sort(key=lambda finding: -finding.code)
    details = "\n".join(finding.details or "" for finding in found) or None
    return Result(found[0].code if found else Code.SUCCESS, details)


def listed(result: Callable[[str], Result], heading: str, texts: Sequence[str]) -> Findings:
    """Yield results with a heading and the texts below it; nothing if there are none."""
    if texts:
        yield from map(result, (heading, *texts))


def first_listed(texts: Sequence[str]) -> list[str]:
    """Return the first ``MAX_LISTED`` texts, then the number of the others."""
    more = len(texts) - MAX_LISTED
    return [*texts[:MAX_LISTED], *([f"and {more} more"] if more > 0 else [])]


def loaded(handler: Any, path: str) -> tuple[list[type], str | None]:
    """Return the filters or weighers of a path, and the error if it cannot be imported."""
    try:
        return handler.get_matching_classes([path]), None
    except Exception as error:
        # A site's own module may raise anything; oslo.utils appends a traceback to the text.
        return [], str(error).split(" (['Traceback ")[0]


def has_comment(value: str) -> bool:
    """True if a value of nova.conf ends in a comment, which would be part of it."""
    return "#" in value or ";" in value
