"""Check: the filters in nova.conf exist, and stand in an order in which they can keep promises."""

import difflib
import itertools
from collections import Counter
from collections.abc import Sequence

import nova.conf
from nova.scheduler import filters as nova_filters

from hpc_sched.enabled_plugins import FILTER_ORDER, GROUP_FILTER, RACK_FILTER
from hpc_sched.status.check_result import Finding, failure, good, said, warning
from hpc_sched.status.inspected_cloud import Cloud

CONF = nova.conf.CONF

NOVAS = "nova.scheduler.filters.all_filters"
OURS = "hpc_sched.filters.all_filters"
_NO_START = "nova-scheduler does not start."
_COMMENT = (
    "nova.conf has no comments behind a value. Put the comment on a line of its own, beginning "
    "with #."
)


def check(_cloud: Cloud) -> list[Finding]:
    """Return what is wrong in available_filters and enabled_filters."""
    names = list(CONF.filter_scheduler.enabled_filters)
    found, known = _available(CONF.filter_scheduler.available_filters)
    if not found:  # else all the names of what is missing would be unknown too
        found = [_unknown(name, known) for name in names if name not in known]
    for name, count in Counter(names).items():
        if count > 1 and name in FILTER_ORDER:
            found.append(
                warning(
                    f"{name} stands {count} times in enabled_filters and is run as often. "
                    "Name it once."
                )
            )
    found += _group_filter(names, known) + _order(names)
    return found or [good(f"enabled_filters ends in {', '.join(_ours(names))}.")]


def in_order(names: Sequence[str]) -> list[str]:
    """Return enabled filters in the order in which they belong, each once."""
    single = list(dict.fromkeys(names))
    others = [name for name in single if name not in FILTER_ORDER]
    return others + [name for name in FILTER_ORDER if name in single]


def _ours(names: Sequence[str]) -> list[str]:
    return [name for name in names if name in FILTER_ORDER]


def _line(names: Sequence[str]) -> str:
    return f"enabled_filters = {', '.join(in_order(names))}"


def _available(paths: Sequence[str]) -> tuple[list[Finding], set[str]]:
    """Return what is wrong in available_filters, and the names of the filters that it gives."""
    handler = nova_filters.HostFilterHandler()
    found: list[Finding] = []
    names: set[str] = set()
    for path in paths:
        if "#" in path or ";" in path:
            found.append(failure(f"available_filters = {path}: {_NO_START} {_COMMENT}"))
            continue
        if "," in path:
            found.append(
                failure(
                    f"available_filters = {path}: {_NO_START} The key takes one value a line. "
                    "Repeat it: " + "; ".join(f"available_filters = {p}" for p in _split(path))
                )
            )
            continue
        try:
            names |= {cls.__name__ for cls in handler.get_matching_classes([path])}
        except Exception as error:
            # Importing somebody's module may raise anything.
            found.append(
                failure(
                    f"available_filters = {path} cannot be imported: {said(error)}. {_NO_START} "
                    f"The lines that are needed are available_filters = {NOVAS} and "
                    f"available_filters = {OURS}"
                )
            )
    return found, names


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _unknown(name: str, known: set[str]) -> Finding:
    names = f"enabled_filters names {name!r}, which"
    if "#" in name or ";" in name:
        return failure(f"{names} is no filter: {_NO_START} {_COMMENT}")
    for ours, path in ((True, OURS), (False, NOVAS)):
        if name in _names_of(ours):
            return failure(
                f"{names} available_filters does not give: {_NO_START} Add a line "
                f"available_filters = {path}"
            )
    candidates = sorted(known | set(FILTER_ORDER))
    close = difflib.get_close_matches(name, candidates, 1) or difflib.get_close_matches(
        f"HPC{name}", candidates, 1, 0.9
    )
    meant = f"Did you mean {close[0]}?" if close else "Remove it, or add its available_filters."
    return failure(f"{names} is no filter: {_NO_START} {meant}")


def _names_of(ours: bool) -> set[str]:
    if ours:
        return set(FILTER_ORDER)
    return {cls.__name__ for cls in nova_filters.all_filters()}


def _group_filter(names: Sequence[str], known: set[str]) -> list[Finding]:
    if GROUP_FILTER in names:
        return []
    available = "" if GROUP_FILTER in known else f" and add available_filters = {OURS}"
    return [
        warning(
            f"{GROUP_FILTER} is not enabled: a group that does not fit is spread instead "
            "of refused, and hpc:require and hpc:max_leaves are no guarantees. Set "
            f"{_line([*names, GROUP_FILTER])}{available}"
        )
    ]


def _order(names: Sequence[str]) -> list[Finding]:
    single = list(dict.fromkeys(names))
    ours = _ours(single)
    if single == in_order(single):
        return []
    if RACK_FILTER in ours and single[-1] != RACK_FILTER:
        behind = single[single.index(RACK_FILTER) + 1 :]
        return [
            failure(
                f"{', '.join(behind)} behind {RACK_FILTER}, which leaves only the hosts "
                "that the plan needs: what is removed after it makes requests fail that would "
                f"fit elsewhere. Set {_line(names)}"
            )
        ]
    place = {name: number for number, name in enumerate(in_order(single))}
    early, late = next(
        (one, other) for one, other in itertools.pairwise(single) if place[one] > place[other]
    )
    return [
        warning(
            f"{early} before {late}: it counts on hosts that are removed after it, and groups are "
            f"planned on them. Set {_line(names)}"
        )
    ]
