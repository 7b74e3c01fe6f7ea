"""Check: the filters in nova.conf exist, and their order lets each keep its guarantee."""

import difflib
import itertools
from collections import Counter
from collections.abc import Sequence

from nova.scheduler import filters as nova_filters

from hpc_sched.core.constraints.values import CONSTRAINTS
from hpc_sched.enabled_plugins import FILTER_ORDER, GROUP_FILTER, RACK_FILTER
from hpc_sched.status.finding import (
    NO_COMMENTS,
    Findings,
    Verdict,
    failure,
    has_comment,
    loaded,
    warning,
)
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud

NOVAS = "nova.scheduler.filters.all_filters"
OURS = "hpc_sched.filters.all_filters"
_BOUND = [*(one.spec.name for one in CONSTRAINTS if one.binds_place), "hpc:objective=isolated"]
_NO_START = "nova-scheduler does not start."


def check(_cloud: InspectedCloud) -> Verdict:
    """Return what is wrong in available_filters and enabled_filters."""
    names = list(CONF.filter_scheduler.enabled_filters)
    problems, known = _available(CONF.filter_scheduler.available_filters)
    # If an entry is missing, all its filters would be unknown too.
    unknown = [] if problems else [_unknown(name, known) for name in names if name not in known]
    yield from map(failure, problems + unknown)
    for name, count in Counter(names).items():
        if count > 1 and name in FILTER_ORDER:
            yield warning(
                f"{name} is named {count} times in enabled_filters and is run as often. Name it "
                "once."
            )
    if GROUP_FILTER not in names:
        available = "" if GROUP_FILTER in known else f" and add available_filters = {OURS}"
        yield warning(
            f"{GROUP_FILTER} is not enabled: a group that does not fit is spread instead of "
            f"refused, and {', '.join(_BOUND)} are no guarantees. Set "
            f"{_line([*names, GROUP_FILTER])}{available}"
        )
    if idle := [name for name in CONF.hpc_sched.counting_filters if name not in names]:
        yield warning(
            f"[hpc_sched] counting_filters names {', '.join(idle)}, which enabled_filters does not "
            "name: plans ignore the limits of such a filter. Write the class name as there."
        )
    yield from _order(list(dict.fromkeys(names)))
    return f"enabled_filters ends in {', '.join(name for name in names if name in FILTER_ORDER)}."


def _in_order(names: Sequence[str]) -> list[str]:
    rank = {name: number for number, name in enumerate(FILTER_ORDER, 1)}
    return sorted(dict.fromkeys(names), key=lambda name: rank.get(name, 0))


def _line(names: Sequence[str]) -> str:
    return f"enabled_filters = {', '.join(_in_order(names))}"


def _available(paths: Sequence[str]) -> tuple[list[str], set[str]]:
    """Return what is wrong in available_filters, and the names of the filters it provides."""
    found: list[str] = []
    names: set[str] = set()
    for path in paths:
        if has_comment(path):
            why = f": {_NO_START} {NO_COMMENTS}"
        elif "," in path:
            parts = [part.strip() for part in path.split(",") if part.strip()]
            lines = "; ".join(f"available_filters = {part}" for part in parts)
            why = f": {_NO_START} The key takes one value a line. Repeat it: {lines}"
        else:
            classes, problem = loaded(nova_filters.HostFilterHandler(), path)
            names |= {cls.__name__ for cls in classes}
            if problem is None:
                continue
            why = (
                f" cannot be imported: {problem}. {_NO_START} The lines that are needed are "
                f"available_filters = {NOVAS} and available_filters = {OURS}"
            )
        found.append(f"available_filters = {path}{why}")
    return found, names


def _unknown(name: str, known: set[str]) -> str:
    """Return why a filter is not known, and the remedy."""
    names = f"enabled_filters names {name!r}, which"
    if has_comment(name):
        return f"{names} is no filter: {_NO_START} {NO_COMMENTS}"
    novas = {cls.__name__ for cls in nova_filters.all_filters()}
    for provided, path in ((FILTER_ORDER, OURS), (novas, NOVAS)):
        if name in provided:
            return (
                f"{names} available_filters does not give: {_NO_START} Add a line "
                f"available_filters = {path}"
            )
    candidates = sorted(known | set(FILTER_ORDER))
    close = difflib.get_close_matches(name, candidates, 1) or difflib.get_close_matches(
        f"HPC{name}", candidates, 1, 0.9
    )
    meant = f"Did you mean {close[0]}?" if close else "Remove it, or add its available_filters."
    return f"{names} is no filter: {_NO_START} {meant}"


def _order(names: Sequence[str]) -> Findings:
    expected = _in_order(names)
    if RACK_FILTER in names and names[-1] != RACK_FILTER:
        behind = names[names.index(RACK_FILTER) + 1 :]
        yield failure(
            f"{', '.join(behind)} behind {RACK_FILTER}, which leaves only the hosts "
            "that the plan needs: what is removed after it makes requests fail that would "
            f"fit elsewhere. Set {_line(names)}"
        )
        return
    for early, late in itertools.pairwise(names):
        if expected.index(early) > expected.index(late):
            yield warning(
                f"{early} before {late}: it counts on hosts that are removed after it, and groups "
                f"are planned on them. Set {_line(names)}"
            )
            return
