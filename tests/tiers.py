"""The tier of each test, by what it needs, and its process and place in a run.

===========  ==========================================  ====================
tier         run by                                      tests without a mark
===========  ==========================================  ====================
``default``  ``pytest`` alone                            that need no cloud
``ci``       ``pytest --tier ci``, with those above      on clouds
``nightly``  ``pytest --tier nightly --part NAME``       none: they say why
===========  ==========================================  ====================

A test, a parameter or a module states another tier by ``pytest.mark.default``, ``pytest.mark.ci``
or ``pytest.mark.nightly(part, reason)``; the closest mark counts.
"""

import random
from typing import Any

import pytest

TIERS = ("default", "ci", "nightly")
#: What ``--tier`` selects.
SELECTIONS = {
    "default": ("default",),
    "ci": ("default", "ci"),
    "ci-only": ("ci",),
    "nightly": ("nightly",),
    "all": TIERS,
}
#: Parts of the nightly tier, each for a run of its own of at most an hour on two cores.
PARTS = {
    "moves": "real computes: histories, moves, evacuations, failed builds",
    "lives": "200 drawn histories of groups on real computes",
    "streams": "long streams of requests on shared hosts, and hundreds of them in shadow mode",
    "rooms": "clouds of devices, drawn at length",
    "planner": "exhaustive searches, integer programs, the golden record",
    "sizes": "files at the limits of what is read",
    "protocol": "claims without a cloud: 100,000 histories, Placement in memory and the real one",
    "databases": "10,000 VMs on SQLite, MariaDB and PostgreSQL",
    "processes": "wheels, benchmarks, clouds of processes, contention",
}


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test; UsageError names one on real computes without a mark."""
    mark = _stated(item)
    if mark is not None:
        if mark.name == "nightly" and mark.args[0] not in PARTS:
            raise pytest.UsageError(f"{item.nodeid}: part of nightly, one of {', '.join(PARTS)}")
        return mark.name
    kind = kind_of(item)
    if kind is None:
        return "ci" if "start_cloud" in getattr(item, "fixturenames", ()) else "default"
    if kind.is_real:
        raise pytest.UsageError(f"{item.nodeid}: on real computes; expected a mark ci or nightly")
    return "ci"


def _stated(item: pytest.Item) -> pytest.Mark | None:
    """Return the closest mark of a tier: of a parameter, a test, a class or a module."""
    # pytest lists the marks of a parameter behind those of its test.
    of_parameters = getattr(item, "callspec", None)
    marks = [*(of_parameters.marks if of_parameters else ()), *item.iter_markers()]
    return next((getattr(mark, "mark", mark) for mark in marks if mark.name in TIERS), None)


def is_selected(item: pytest.Item, selection: str, part: str | None) -> bool:
    """True if a test is of a tier that ``--tier`` selects, and of the part if one is named."""
    tier = tier_of(item)
    if part is not None and tier == "nightly":
        stated = _stated(item)
        if stated is None or stated.args[0] != part:
            return False
    return tier in SELECTIONS[selection]


def group_of(item: pytest.Item) -> str:
    """Return the name of the tests that run in one process with a test.

    Nova's fixtures allow one cloud a process. The tests of a file share fixtures of the module.
    """
    kind = kind_of(item)
    return kind.name if kind else item.nodeid.partition("::")[0]


def place(item: pytest.Item, seed: str | None) -> tuple[Any, ...]:
    """Return a key of order: tests on clouds by kind, then the others as they were collected.

    :param seed: shuffles the modules of each kind, and the tests of each module
    """
    kind = kind_of(item)
    if kind is None:
        return (1,)
    if seed is None:
        return (0, kind.name)
    drawn = [random.Random(f"{seed} {text}").random() for text in (item.path.name, item.nodeid)]
    return (0, kind.name, *drawn)


def kind_of(item: pytest.Item) -> Any:
    """Return the kind of cloud that a test shares, or None."""
    mark = item.get_closest_marker("cloud")
    return mark.args[0] if mark else None
