"""Filters that count VMs on a real scheduler and a real Placement: rooms, claims and refusals.

::

           core
          /    \\
        L0      L1
       a1 a2   b1 b2 b3 b4      16 VMs fit on each host, the filters pass 2
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from nova import exception, objects
from nova.scheduler import filters

from hpc_sched.enabled_plugins import COUNTING_FILTERS
from tests.functional.claims import STAYS_UP, ClaimsOnly, claims_on, hosts_of
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import sample_options
from tests.functional.device_hosts import counted_claims, device_request
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

CONF = nova.conf.CONF
LEAVES = {"L0": ["a1", "a2"], "L1": ["b1", "b2", "b3", "b4"]}
HOSTS = [host for below in LEAVES.values() for host in below]
LEAF = {"hpc:require": "leaf"}
QUERY = {"query": [json.dumps(["<", "$num_instances", 2])]}
NOVAS = "nova.scheduler.filters.all_filters"
OURS = "hpc_sched.filters.all_filters"
OPTION = {"IoOps": "max_io_ops_per_host", "NumInstances": "max_instances_per_host"}

pytestmark = [cloud_mark(EMPTY), pytest.mark.usefixtures("nothing_is_held")]


class PairFilter(filters.BaseHostFilter):
    """A filter of a site that passes two VMs by the processors in use."""

    def host_passes(self, host_state, spec):
        return host_state.vcpus_used < 2 * spec.vcpus


@pytest.fixture
def build(cloud: TestedCloud, tmp_path: Path) -> Iterator[Callable[[str], ClaimsOnly]]:
    """Build hosts of which a filter passes two VMs of a request."""
    with claims_on(cloud, dict.fromkeys(HOSTS, 0)) as claims:

        def build_(name: str, **own: int) -> ClaimsOnly:
            options = sample_options(tmp_path, LEAVES) | STAYS_UP
            enabled = ("filter_scheduler", "enabled_filters")
            options[enabled] = [name, *options[enabled]]
            options["filter_scheduler", "available_filters"] = [
                NOVAS,
                OURS,
                f"{__name__}.{PairFilter.__name__}",
            ]
            options["hpc_sched", "counting_filters"] = [PairFilter.__name__]
            key = next((key for part, key in OPTION.items() if part in name), None)
            if key and not name.startswith("Aggregate"):
                options["filter_scheduler", key] = own.get("most", 2)
            scheduler = claims.start_scheduler(options)
            if key and name.startswith("Aggregate"):
                aggregate = objects.Aggregate(id=1, hosts=HOSTS, metadata={key: "2"})
                scheduler.host_manager.update_aggregates([aggregate])
            return claims

        yield build_


def request(name: str, count: int, **said: Any) -> objects.RequestSpec:
    made = device_request(count=count, **said)
    made.scheduler_hints = QUERY if name == "JsonFilter" else {}
    return made


every_filter = pytest.mark.parametrize("name", [*COUNTING_FILTERS, PairFilter.__name__])


@every_filter
@pytest.mark.parametrize("specs", [LEAF, {}], ids=["a leaf", "no constraint"])
def test_a_group_of_six_is_placed_where_two_pass_on_each_host(
    build, name: str, specs: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
):
    claims = build(name)
    with counted_claims(monkeypatch) as made:
        placed = Counter(hosts_of(claims.place(request(name, 6, extra_specs=specs))))
    assert made == {True: 6}
    assert max(placed.values()) == 2
    assert placed.keys() <= set(LEAVES["L1"])


@every_filter
def test_a_group_that_no_leaf_passes_is_refused_before_a_claim(
    build, name: str, monkeypatch: pytest.MonkeyPatch
):
    claims = build(name)
    with (
        counted_claims(monkeypatch) as made,
        pytest.raises(exception.NoValidHost, match=r"under one leaf: 8; the number of VMs that a "),
    ):
        claims.place(request(name, 9, extra_specs=LEAF))
    assert not made


def test_without_the_filter_in_plans_the_group_is_not_placed_as_constrained(
    build, monkeypatch: pytest.MonkeyPatch
):
    """What the plan would be: the smaller leaf, where the filters then pass 4 of 6 VMs."""
    from hpc_sched.nova_glue.read.caps import counting_filters

    monkeypatch.setattr(counting_filters, "enabled", tuple)
    with pytest.raises(exception.NoValidHost):
        build("IoOpsFilter").place(request("IoOpsFilter", 6, extra_specs=LEAF))


def test_hard_affinity_is_refused_for_the_filter_as_delivered(build):
    claims = build("IoOpsFilter", most=CONF.filter_scheduler.max_io_ops_per_host)
    text = "one host: 8; the number of VMs that a host takes at a time runs out first"
    with pytest.raises(exception.NoValidHost, match=text):
        claims.place(request("IoOpsFilter", 12, policy="affinity"))
    placed = Counter(hosts_of(claims.place(request("IoOpsFilter", 8, policy="affinity"))))
    assert list(placed.values()) == [8]


def test_shadow_mode_records_the_plan_that_the_filter_passes(build, cloud, tmp_path):
    claims = build("IoOpsFilter")
    log = tmp_path / "decisions"
    cloud.flags(mode="shadow", decision_log=str(log), group="hpc_sched")
    claims.start_scheduler({})
    claims.place(request("IoOpsFilter", 6, extra_specs=LEAF))
    [decision, *_] = map(json.loads, log.read_text().splitlines())
    assert decision["decision"] == "planned"
    assert decision["plan"]["hosts"] == {"b1": 2, "b2": 2, "b3": 2}
