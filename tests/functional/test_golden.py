"""Hosts, refusals and decisions are those of the golden set, see :mod:`tests.golden`.

A fixed part of its requests; ``python -m tests.golden --compare`` takes them all.
"""

from collections import Counter

import pytest

from tests.golden import record, requests

pytestmark = pytest.mark.ci

EVERY = 3  # of so many requests one is taken
PARTS = 10  # of these requests, a test each
IN_CI = 4  # of these parts

# Of how many requests of a kind there are at least so many.
LEAST = {
    "placed": 1200,
    "refused": 1200,
    "refused in words": 700,
    "partly placed": 200,
    "several leaves": 500,
    "several a host": 700,
    "growth": 1000,
    "growth, placed": 400,
    "growth, several a host": 400,
    "growth, members elsewhere": 500,
    "move": 350,
    "implicit group": 200,
    "single VM": 80,
    "others await": 900,
    "orphans": 200,
    "partial members": 150,
    "silent cell": 80,
    "in flight unknown": 60,
    "lost claim": 350,
    "full hosts offered": 150,
    "wrong words": 150,
    "user hints": 400,
    "bare metal": 500,
    "outside the fabric": 700,
    "names with a domain": 200,
    "aggregates": 500,
    "more than 64 VMs": 50,
    "fabric islands": 250,
    "fabric deep": 250,
    **dict.fromkeys(("class extreme", "class sync", "class async", "class none"), 300),
    **dict.fromkeys(("policy affinity", "policy anti-affinity", "policy None"), 350),
    **dict.fromkeys(("policy soft-affinity", "policy soft-anti-affinity"), 350),
    **dict.fromkeys(("wish require", "wish prefer", "wish max_leaves"), 400),
    **dict.fromkeys(("wish group_size", "wish homogeneous"), 300),
    **dict.fromkeys(("weigher HopByteWeigher", "weigher MDOBPWeigher"), 1200),
    **dict.fromkeys(("weigher BunchWeigher", "weigher RackCapacityWeigher"), 500),
    **{f"filter HPC{name}Filter": 1200 for name in ("DedicatedHost", "Interference", "Group")},
    **{f"filter HPC{name}Filter": 1200 for name in ("Homogeneity", "RackCapacity")},
}


MORE = pytest.mark.nightly("planner", "hundreds of requests each; tox -e golden has all")


@pytest.mark.parametrize(
    "part", [pytest.param(n, marks=() if n < IN_CI else MORE) for n in range(PARTS)]
)
def test_requests_get_the_recorded_hosts_and_texts(tmp_path, part):
    seeds = range(part * EVERY, requests.CASES, PARTS * EVERY)
    recorded = record.read("requests")[seeds.start :: seeds.step]
    for before, now in zip(recorded, requests.cases(tmp_path, seeds), strict=True):
        different = record.report("requests", before, now)
        assert different is None, different


def test_the_recorded_requests_are_of_all_kinds():
    recorded = record.read("requests")
    assert len(recorded) == requests.CASES
    found = Counter(kind for case in recorded for kind in case["kinds"])
    assert {kind: found[kind] for kind, least in LEAST.items() if found[kind] < least} == {}
    refusals = {_words(case["refused"]) for case in recorded if case["refused"]}
    assert len(refusals) > 60
    # All that is left of most requests: hosts and weights VM by VM, and a decision.
    assert sum(bool(case["decisions"]) for case in recorded) > len(recorded) / 2
    assert len({digest for case in recorded for digest in case["order"].split()}) > 5000
    # Nothing went wrong inside the plugin.
    assert not [line for case in recorded for line in case["log"] if line.startswith("ERROR")]


def _words(text: str) -> str:
    return "".join(letter for letter in text if not letter.isdigit())
