"""Groups on hosts where filters of Nova count the VMs of the request as they are placed.

::

           core
          /    \\
        L0      L1
       a1 a2   b1 b2 b3 b4      16 VMs fit on each host, the filters pass 2

Best fit takes the smaller leaf, which has room for 32 VMs, and passes 4.
"""

import gc
import json
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from nova import exception, objects
from nova.scheduler import filters
from nova.scheduler.filters import io_ops_filter, json_filter, num_instances_filter

from hpc_sched.enabled_plugins import COUNTING_FILTERS
from hpc_sched.nova_glue.read.caps import counting_filters, filter_caps, raised_state
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.states import (
    FILTERS,
    States,
    configured,
    databases_say,
    host_state,
    ours,
    queue_of,
    schedule,
    spec,
    wishing,
)
from tests.functional.trees import hosts_below, write_tree

CONF = nova.conf.CONF

TREE = {"core": {"L0": ["a1", "a2"], "L1": ["b1", "b2", "b3", "b4"]}}
LEAF = wishing(require="leaf")
IO_OPS, INSTANCES = "max_io_ops_per_host", "max_instances_per_host"
QUERY = {"query": [json.dumps(["<", "$num_instances", 2])]}
NOVAS = "nova.scheduler.filters.all_filters"


class HalfFullFilter(filters.BaseHostFilter):
    """A filter of a site: a host passes until VMs use the memory of two of the request."""

    def host_passes(self, host_state, spec):
        return host_state.free_ram_mb > host_state.total_usable_ram_mb - 2 * spec.memory_mb


class GroupCountFilter(filters.BaseHostFilter):
    """A filter of a site that counts the instances of a server group."""

    def host_passes(self, host_state, spec):
        return len(host_state.instances) < 2


class WholeFilter(HalfFullFilter):
    """The same, all hosts at once."""

    def filter_all(self, filter_obj_list, spec):
        return [one for one in filter_obj_list if self.host_passes(one, spec)]


class BrokenFilter(filters.BaseHostFilter):
    """A filter of a site that expects what no copy has."""

    def host_passes(self, host_state, spec):
        if host_state.num_instances:
            raise LookupError("no such rack")
        return True


class WritingFilter(filters.BaseHostFilter):
    """A filter of a site that writes to what it is given, as NUMATopologyFilter does."""

    def host_passes(self, host_state, spec):
        host_state.limits["site"] = host_state.num_instances
        host_state.stats["site"] = "seen"
        host_state.num_io_ops = 7
        host_state.allocation_candidates.clear()
        spec.numa_topology = objects.InstanceNUMATopology(cells=[])
        return host_state.num_instances < 2


class DerivedFilter(num_instances_filter.NumInstancesFilter):
    """A filter of a site that is derived from one of Nova."""

    def _get_max_instances_per_host(self, host_state, spec):
        return 2


CAPS: dict[str, tuple[type[filters.BaseHostFilter], str]] = {
    "IoOpsFilter": (io_ops_filter.IoOpsFilter, "[filter_scheduler] max_io_ops_per_host"),
    "NumInstancesFilter": (
        num_instances_filter.NumInstancesFilter,
        "[filter_scheduler] max_instances_per_host",
    ),
    "AggregateIoOpsFilter": (
        io_ops_filter.AggregateIoOpsFilter,
        "max_io_ops_per_host of aggregates or [filter_scheduler]",
    ),
    "AggregateNumInstancesFilter": (
        num_instances_filter.AggregateNumInstancesFilter,
        "max_instances_per_host of aggregates or [filter_scheduler]",
    ),
    "JsonFilter": (json_filter.JsonFilter, "scheduler hint query"),
    "HalfFullFilter": (HalfFullFilter, "[hpc_sched] counting_filters"),
    "GroupCountFilter": (GroupCountFilter, "[hpc_sched] counting_filters"),
    "WholeFilter": (WholeFilter, "[hpc_sched] counting_filters"),
    "DerivedFilter": (DerivedFilter, "[filter_scheduler] max_instances_per_host"),
}
every_cap = pytest.mark.parametrize("name", CAPS)


@pytest.fixture(autouse=True)
def fabric(tmp_path: Path) -> Iterator[None]:
    with configured(write_tree(tmp_path / "topology.yaml", TREE)):
        yield
    for name in (IO_OPS, INSTANCES, "available_filters"):
        CONF.clear_override(name, "filter_scheduler")
    filter_caps._failed.clear()


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, int]]:
    """Place a group with some filters before those of hpc_sched; return its VMs by host."""

    def place(*enabled: type, count: int, **said: Any) -> dict[str, int]:
        enable(*enabled)
        queue = queue_of(count)
        databases_say(monkeypatch, queue=queue, left=count)
        states = said.pop("states", None) or hosts()
        request = spec(
            count=count, vcpus=1, uuid=queue[0], **{"group_policy": "soft-affinity"} | said
        )
        chain = [*(cls() for cls in enabled), *(cls() for cls in FILTERS)]
        found, _ = schedule(states, request, queue, HopByteWeigher(), chain)
        return dict(Counter(found))

    return place


def enable(*classes: type[filters.BaseHostFilter], counting: bool = True) -> None:
    """Name filters in nova.conf, before those of hpc_sched."""
    names = [cls.__name__ for cls in classes]
    own = [cls for cls in classes if cls.__module__ == __name__]
    paths = [f"{__name__}.{cls.__name__}" for cls in own]
    CONF.set_override("available_filters", [NOVAS, *paths], "filter_scheduler")
    CONF.set_override(
        "enabled_filters", [*names, *(cls.__name__ for cls in FILTERS)], "filter_scheduler"
    )
    of_site = [cls.__name__ for cls in own if cls is not DerivedFilter]
    CONF.set_override("counting_filters", of_site if counting else [], "hpc_sched")


def hosts(**fields: object) -> States:
    return [host_state(name, stats={}, **fields) for name in hosts_below(TREE)]


def capped_at_two(name: str) -> tuple[States, dict[str, Any]]:
    """Return hosts on which a filter passes 2 VMs, and what the request says for it."""
    states, aggregate = hosts(), objects.Aggregate(id=1, metadata={})
    if name.startswith("Aggregate"):
        key = IO_OPS if "IoOps" in name else INSTANCES
        aggregate.metadata = {key: "2"}
        for state in states:
            state.aggregates = [aggregate]
    elif name in ("IoOpsFilter", "NumInstancesFilter"):
        CONF.set_override(IO_OPS if "IoOps" in name else INSTANCES, 2, "filter_scheduler")
    return states, {"hints": QUERY} if name == "JsonFilter" else {}


@every_cap
def test_a_group_goes_to_the_leaf_where_a_filter_passes_it(placed, name):
    states, said = capped_at_two(name)
    cls, _ = CAPS[name]
    found = placed(cls, count=6, states=states, extra_specs=LEAF, **said)
    assert sum(found.values()) == 6
    assert max(found.values()) == 2
    assert found.keys() <= {"b1", "b2", "b3", "b4"}


@every_cap
def test_a_group_without_constraints_is_not_split(placed, name):
    states, said = capped_at_two(name)
    found = placed(CAPS[name][0], count=6, states=states, **said)
    assert sum(found.values()) == 6
    assert found.keys() <= {"b1", "b2", "b3", "b4"}


@every_cap
def test_the_reason_names_the_filter_to_operators_alone(placed, name, caplog):
    states, said = capped_at_two(name)
    with pytest.raises(exception.NoValidHost) as refused:
        placed(CAPS[name][0], count=9, states=states, extra_specs=LEAF, **said)
    text = "needs one leaf: largest gang that fits under one leaf: 8"
    assert text in str(refused.value)
    assert str(refused.value).endswith(
        "; the number of VMs that a host takes at a time runs out first"
    )
    [line] = [line for line in ours(caplog) if "largest gang" in line]
    assert f"; {name} ({CAPS[name][1]}) runs out first" in line


def test_hard_affinity_is_refused_for_the_cap_that_is_delivered(placed):
    """As stock Nova: max_io_ops_per_host is 8, the host has 16 processors."""
    with pytest.raises(exception.NoValidHost) as refused:
        placed(io_ops_filter.IoOpsFilter, count=12, group_policy="affinity")
    assert str(refused.value).endswith(
        "12 VMs of a group with policy affinity need one host: largest gang that fits on one host: "
        "8; the number of VMs that a host takes at a time runs out first"
    )
    assert placed(io_ops_filter.IoOpsFilter, count=8, group_policy="affinity") in (
        [{name: 8} for name in hosts_below(TREE)]
    )


def test_hard_affinity_without_a_cap_names_none(placed):
    with pytest.raises(exception.NoValidHost, match=r"one host: 16$"):
        placed(io_ops_filter.IoOpsFilter, count=17, group_policy="affinity", states=unlimited())


def unlimited() -> States:
    CONF.set_override(IO_OPS, 100, "filter_scheduler")
    return hosts()


def test_a_resource_that_runs_out_before_the_cap_is_named(placed):
    with pytest.raises(exception.NoValidHost, match="one leaf: 64; VCPU runs out first"):
        placed(io_ops_filter.IoOpsFilter, count=65, states=unlimited(), extra_specs=LEAF)


def test_numbers_of_a_refusal_are_those_that_caps_leave_though_resources_refuse(placed):
    """The group of 70 has no plan by resources alone, so no host of a plan shows the cap."""
    CONF.set_override(IO_OPS, 2, "filter_scheduler")
    with pytest.raises(exception.NoValidHost, match="one leaf: 8; the number of VMs"):
        placed(io_ops_filter.IoOpsFilter, count=70, extra_specs=LEAF)


def test_operations_and_instances_of_others_count(placed):
    CONF.set_override(INSTANCES, 5, "filter_scheduler")
    states = hosts()
    for state in states:
        state.num_instances = 3 if state.host.startswith("b") else 0
    found = placed(
        num_instances_filter.NumInstancesFilter, count=9, states=states, extra_specs=LEAF
    )
    assert found.keys() == {"a1", "a2"}
    assert max(found.values()) == 5


def test_a_filter_of_a_site_that_is_not_named_is_not_asked():
    enable(HalfFullFilter, counting=False)
    assert not counting_filters.enabled()
    enable(HalfFullFilter)
    assert [type(one) for one in counting_filters.enabled()] == [HalfFullFilter]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Return what is asked: filter, host, and VMs that are added."""
    found: list[tuple[str, str, int]] = []
    passes = filter_caps.FilterCap.passes

    def counted(self: filter_caps.FilterCap, i: int, added: int) -> bool:
        found.append((type(self.counting).__name__, self.states[i].host, added))
        return passes(self, i, added)

    monkeypatch.setattr(filter_caps.FilterCap, "passes", counted)
    return found


@pytest.mark.parametrize("said", [{"count": 1}, {"count": 6, "vcpus": 16}, {"count": 6}])
def test_nothing_is_asked_where_a_plan_has_one_vm_a_host(placed, asked, said):
    policy = "anti-affinity" if said == {"count": 6} else "soft-affinity"
    states = hosts(vcpus_used=15) if "vcpus" in said else None
    said.pop("vcpus", None)
    placed(io_ops_filter.IoOpsFilter, **said, states=states, group_policy=policy)
    assert asked == []


def test_each_filter_is_asked_once_where_all_vms_of_a_plan_pass(placed, asked):
    CONF.set_override(INSTANCES, 50, "filter_scheduler")
    CONF.set_override(IO_OPS, 50, "filter_scheduler")
    both = (io_ops_filter.IoOpsFilter, num_instances_filter.NumInstancesFilter)
    assert placed(*both, count=32, extra_specs=LEAF) == {"a1": 16, "a2": 16}
    assert sorted((name, added) for name, _, added in asked) == [
        ("IoOpsFilter", 15),
        ("NumInstancesFilter", 15),
    ]


@pytest.mark.parametrize(("name", "most"), [("AggregateIoOpsFilter", 8), ("HalfFullFilter", 40)])
def test_equal_hosts_are_asked_once_and_those_of_a_site_one_by_one(placed, asked, name, most):
    states, said = capped_at_two(name)
    placed(CAPS[name][0], count=6, states=states, extra_specs=LEAF, **said)
    assert len(asked) <= most
    assert {host for _, host, _ in asked} == (
        {state.host for state in states} if name == "HalfFullFilter" else {asked[0][1]}
    )


@pytest.mark.parametrize("name", ["IoOpsFilter", "HalfFullFilter"])
def test_hosts_that_are_not_reached_in_time_are_asked_once_a_plan_uses_them(
    placed, name, monkeypatch
):
    monkeypatch.setattr(filter_caps, "MAX_SECONDS", -1.0)
    states, said = capped_at_two(name)
    found = placed(CAPS[name][0], count=6, states=states, extra_specs=LEAF, **said)
    assert found.keys() <= {"b1", "b2", "b3", "b4"}


def test_a_filter_writes_to_copies_alone():
    enable(WritingFilter)
    [state, *_] = hosts(num_instances=1, allocation_candidates=["one"])
    request = spec(count=2, group_policy="soft-affinity")
    caps = filter_caps.of(request, [state])
    before = dict(vars(state)) | {"limits": dict(state.limits), "stats": dict(state.stats)}
    total = caps.limit * 0 + 3
    assert caps.verify(total, total * 0, 3)
    assert caps.limit.tolist() == [1]
    assert vars(state) == before
    assert state.allocation_candidates == ["one"]
    assert request.numa_topology is None
    assert request.obj_what_changed() == spec(count=2).obj_what_changed()


def test_a_filter_that_fails_is_left_out_and_logged_once(caplog):
    for _ in range(2):
        enable(BrokenFilter)
        caps = filter_caps.of(spec(count=2), hosts())
        total = caps.limit * 0 + 4
        assert not caps.verify(total, total * 0, 24)
        assert caps.by_name(total * 0) == {}
    [line] = [text for text in ours(caplog) if "BrokenFilter" in text]
    assert line == "BrokenFilter cannot be asked how many VMs a host takes, plans ignore it"


def test_a_copy_has_the_counters_of_a_host_that_has_placed_the_vms():
    """Nova's own code counts one by one; disks that VMs use are read from the compute node."""
    [state, *_] = hosts(num_instances=3, num_io_ops=1, vcpus_used=4, instances={"other": None})
    request = spec(count=4, vcpus=2)
    copied = raised_state.raised(state, request, 3)
    for _ in range(3):
        state.consume_from_request(request)
    names = vars(state).keys() - {"updated", "limits", "stats", "instances"}
    assert {name: getattr(copied, name) for name in names} == {
        name: getattr(state, name) for name in names
    }
    assert len(copied.instances) == 4
    assert list(state.instances) == ["other"]
    assert copied.updated is not None


def test_a_request_ends_though_its_caps_were_asked():
    """Sessions live as long as their RequestSpec, which no cap may keep alive."""
    enable(io_ops_filter.IoOpsFilter)
    request = spec(count=2)
    caps, alive = filter_caps.of(request, hosts()), weakref.ref(request)
    total = caps.limit * 0 + 20
    assert caps.verify(total, total * 0, 120)
    del request
    gc.collect()
    assert alive() is None
    # What is asked later has no answer.
    assert filter_caps.FilterCap("", io_ops_filter.IoOpsFilter(), [], alive, None).passes(0, 99)


@pytest.mark.parametrize(
    ("name", "refused"),
    [("IoOpsFilter", False), ("NumInstancesFilter", True), ("AggregateIoOpsFilter", False)],
)
def test_operations_of_vms_that_come_later_do_not_count(monkeypatch, name, refused):
    """The first of 12 VMs that are created one by one: operations end, instances stay."""
    states, _ = capped_at_two(name)
    cls, _ = CAPS[name]
    enable(cls)
    databases_say(monkeypatch, queue=queue_of(1), left=1)
    request = spec(
        count=1,
        vcpus=1,
        uuid=queue_of(1)[0],
        group_policy="soft-affinity",
        extra_specs=LEAF | wishing(group_size=12),
    )
    chain = [cls(), *(one() for one in FILTERS)]
    if refused:
        with pytest.raises(exception.NoValidHost, match=r"12 needs one leaf .*; the number of VMs"):
            schedule(states, request, queue_of(1), HopByteWeigher(), chain)
    else:
        placed, _ = schedule(states, request, queue_of(1), HopByteWeigher(), chain)
        assert placed[0] in ("a1", "a2")


def test_operations_count_where_a_plan_has_too_few_places_for_the_request(monkeypatch):
    """A request of 6 VMs of a group of 8: L0 passes 4 of them at a time."""
    states, _ = capped_at_two("IoOpsFilter")
    enable(io_ops_filter.IoOpsFilter)
    queue = queue_of(6)
    databases_say(monkeypatch, queue=queue, left=6)
    request = spec(
        count=6,
        vcpus=1,
        uuid=queue[0],
        group_policy="soft-affinity",
        extra_specs=LEAF | wishing(group_size=8),
    )
    chain = [io_ops_filter.IoOpsFilter(), *(one() for one in FILTERS)]
    placed, _ = schedule(states, request, queue, HopByteWeigher(), chain)
    assert set(placed) <= {"b1", "b2", "b3", "b4"}


# Filters of Nova that run for each VM, and why they are not asked.
OTHERS = {
    "MetricsFilter": "metrics do not change as VMs are placed",
    "NUMATopologyFilter": "nova_fitting",
    "PciPassthroughFilter": "nova_fitting",
    "ServerGroupAffinityFilter": "the group's policy",
    "ServerGroupAntiAffinityFilter": "the group's policy",
}


def test_filters_of_hpc_sched_are_not_asked():
    enable(io_ops_filter.IoOpsFilter)
    paths = [NOVAS, "hpc_sched.filters.all_filters"]
    CONF.set_override("available_filters", paths, "filter_scheduler")
    CONF.set_override("counting_filters", ["HPCGroupFilter"], "hpc_sched")
    assert [type(one).__name__ for one in counting_filters.enabled()] == ["IoOpsFilter"]


def test_every_filter_of_nova_counts_or_has_a_reason_not_to():
    every = {cls.__name__: cls for cls in filters.all_filters()}
    of_each_vm = {name for name, cls in every.items() if not cls.run_filter_once_per_request}
    assert of_each_vm == set(COUNTING_FILTERS) | OTHERS.keys()
