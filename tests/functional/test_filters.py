"""Filters and the weighers of plan and build plan on real HostStates and RequestSpecs.

The fabric of all tests here, three levels and 32 hosts::

                            spine
                  /                       \\
               pod1                       pod2
         /     |     |     \\         /     |     |     \\
      leaf1  leaf2  leaf3  leaf4  leaf5  leaf6  leaf7  leaf8
      n01-4  n05-8  n09-12 n13-16 n17-20 n21-24 n25-28 n29-32
"""

import gc
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nova.conf
import pytest
import yaml
from nova import exception, objects
from nova.scheduler import filters, host_manager
from nova.scheduler.weights import BaseHostWeigher
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.answers import Plan
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.planner import plan
from hpc_sched.filters.base import GroupFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import fabric, processors, record, registry
from hpc_sched.nova_glue import members as members_
from hpc_sched.nova_glue import request as request_
from hpc_sched.topology import Topology
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.rack_capacity import RackCapacityWeigher
from tests.functional.states import configured, databases_say, host_state, place, spec, weigh

CONF = nova.conf.CONF

FILTERS = (HPCHomogeneityFilter, HPCGroupFilter, HPCRackCapacityFilter)
TREE = {
    "spine": {
        f"pod{pod + 1}": {
            f"leaf{leaf + 1}": [f"n{4 * leaf + number:02}" for number in range(1, 5)]
            for leaf in range(4 * pod, 4 * pod + 4)
        }
        for pod in range(2)
    }
}
FABRIC = Topology.from_tree(TREE)
# What a tenant must never read: the names of switches and hosts.
NAMES = re.compile(r"spine|pod\d|leaf\d|\bn\d\d")

States = list[host_manager.HostState]


def write_fabric(path: Path, types: Mapping[str, str] | None = None) -> Path:
    """Write the fabric as a topology file; some switches may state a processor type."""

    def entry(name: str, below: object) -> dict[str, object]:
        found: dict[str, object] = {"name": name}
        if types and name in types:
            found["processor"] = types[name]
        if isinstance(below, dict):
            return found | {"switches": [entry(*item) for item in below.items()]}
        return found | {"hosts": below}

    path.write_text(yaml.safe_dump({"switches": [entry(*item) for item in TREE.items()]}))
    return path


@pytest.fixture
def topology_file(tmp_path: Path) -> Path:
    return write_fabric(tmp_path / "topology.yaml")


@pytest.fixture(autouse=True)
def options(topology_file: Path) -> Iterator[None]:
    with configured(topology_file):
        yield


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch):
    """Set what the databases say of the group, the edge that has no server here."""

    def set_(members: Mapping[str, int] | None = None, **said: object) -> None:
        places = {(host, host): count for host, count in (members or {}).items()}
        databases_say(monkeypatch, members=places, **said)

    return set_


def hosts_below(*switches: str) -> set[str]:
    return {host for switch in switches for host in FABRIC.hosts_of(switch)}


def states_of(*switches: str, **fields: object) -> States:
    """Return the hosts below some switches, all of the fabric by default."""
    below = hosts_below(*switches) if switches else set(FABRIC.hosts)
    return [host_state(host, **fields) for host in FABRIC.hosts if host in below]


def names(states: Sequence[host_manager.HostState]) -> set[str]:
    return {state.host for state in states}


def run(states: States, request: objects.RequestSpec, *chain: GroupFilter, index: int = 0):
    """Filter as Nova's scheduler does for the VM of this number."""
    handler = filters.HostFilterHandler()
    return handler.get_filtered_objects(list(chain), states, request, index)


def why_refused(states: States, request: objects.RequestSpec, *chain: GroupFilter) -> str:
    """Return what the tenant reads of a request that HPCGroupFilter refuses."""
    with pytest.raises(exception.NoValidHost) as refused:
        run(states, request, *(chain or [HPCGroupFilter()]))
    return str(refused.value)


def wishing(**wishes: object) -> dict[str, str]:
    """Return wishes as extra specs of a flavor."""
    return {f"hpc:{name}": str(value) for name, value in wishes.items()}


def as_hints(**wishes: object) -> dict[str, list[str]]:
    """Return wishes as scheduler hints, in the form in which the API hands them on."""
    return {f"hpc:{name}": [str(value)] for name, value in wishes.items()}


def queue_of(count: int) -> list[str]:
    return [getattr(uuids, f"vm{number:03}") for number in range(count)]


# Requests that the filters do not touch.


@pytest.mark.parametrize("filter_class", FILTERS)
@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda: spec(group=None), id="a single VM"),
        pytest.param(lambda: spec(extra_specs=wishing(app_class="none")), id="class none"),
        pytest.param(
            lambda: spec(extra_specs=wishing(app_class="none", require="rack")),
            id="class none with wishes",
        ),
        pytest.param(
            lambda: spec(
                hints={"_nova_check_type": ["rebuild"]}, extra_specs=wishing(require="leaf")
            ),
            id="a rebuild",
        ),
    ],
)
def test_requests_without_a_group_to_place_pass_as_they_came(filter_class, request_of, caplog):
    states = states_of()
    random.Random(7).shuffle(states)
    assert run((state for state in states), request_of(), filter_class()) == states
    assert filter_class().filter_all(iter(states), request_of()) == states
    assert not caplog.records


@pytest.mark.parametrize("filter_class", FILTERS)
def test_a_multi_create_is_no_group_where_implicit_groups_are_off(filter_class, caplog):
    CONF.set_override("implicit_groups", False, "hpc_sched")
    states = states_of()
    assert run(states, spec(group=None, count=40), filter_class()) == states
    assert not caplog.records


@pytest.mark.parametrize("filter_class", FILTERS)
def test_no_host_in_means_no_host_out(filter_class):
    request = spec(count=4, extra_specs=wishing(require="leaf", homogeneous="true"))
    assert filter_class().filter_all([], request) == []
    assert filter_class().filter_all(iter([]), request) == []


@pytest.mark.parametrize("filter_class", FILTERS)
def test_a_filter_runs_for_the_first_vm_of_a_request_only(filter_class, group):
    group(left=40)
    states = states_of()
    request = spec(count=40, extra_specs=wishing(require="leaf"))
    assert run(states, request, filter_class(), index=1) == states


# HPCGroupFilter.


def test_a_group_that_fits_passes_with_all_hosts_in_their_order(group):
    group(left=32)
    states = states_of()
    random.Random(7).shuffle(states)
    assert run(iter(states), spec(count=32), HPCGroupFilter()) == states


@pytest.mark.parametrize(
    ("wishes", "count", "text"),
    [
        pytest.param({}, 33, "group of 33 does not fit: largest gang .* one core: 32", id="room"),
        pytest.param(
            {"require": "leaf"},
            5,
            r"group of 5 needs one leaf: largest gang that fits under one leaf: 4 "
            r"\(without these wishes: 16 under one pod, 32 under one core\)",
            id="require",
        ),
        pytest.param(
            {"max_leaves": 2},
            9,
            "group of 9 needs at most 2 leaf switches: largest gang .* in 2 leaf switches: 8",
            id="max_leaves",
        ),
        pytest.param(
            {"require": "pod", "max_leaves": 3}, 13, "needs one pod and at most 3 leaf", id="both"
        ),
        pytest.param(
            {"require": "pod", "group_size": 17},
            2,
            r"group of 17 needs one pod.*16.*\(hpc:group_size=17\)",
            id="group_size under the required switch",
        ),
    ],
)
def test_a_group_that_does_not_fit_is_refused_in_counts_and_levels(group, wishes, count, text):
    group(left=count)
    told = why_refused(states_of(), spec(count=count, extra_specs=wishing(**wishes)))
    assert re.search(text, told)
    assert not NAMES.search(told)


def test_the_operator_reads_the_switch_in_the_log_and_in_the_decision_log(group, caplog, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    caplog.set_level("INFO")
    group(left=4)
    states = states_of("leaf1", "leaf2")[:-1]
    states[0].vcpus_used = 16
    states[1].vcpus_used = 16
    request = spec(count=4, extra_specs=wishing(require="leaf"))
    assert not NAMES.search(why_refused(states, request))
    operator = "group of 4 needs one leaf: largest gang that fits under one leaf: 3 on leaf2"
    assert any(operator in found.getMessage() for found in caplog.records)
    [told] = read_decisions(tmp_path / "decisions")
    assert told["decision"] == "refused"
    assert operator in told["reason"]
    assert told["rejection"]["fits"] == {"level": "leaf", "vms": 3, "switch": "leaf2"}
    assert told["removed"] == {"no room for one VM": 2}
    assert told["candidates"]["leaf1"] == {"hosts": 4, "room": 2}


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        ({"require": "rack"}, "hpc:require='rack': expected one of the levels leaf, pod, core"),
        ({"prefer": "Pod"}, "hpc:prefer='Pod': expected one of the levels"),
        ({"max_leaves": 0}, "hpc:max_leaves='0': expected a whole number from 1"),
        ({"group_size": "many"}, "hpc:group_size='many': expected a whole number"),
        ({"homogeneous": "yes"}, "hpc:homogeneous='yes': expected one of true, prefer, false"),
        ({"app_class": "fast"}, "hpc:app_class='fast': expected one of extreme, sync, async, none"),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused_with_what_was_expected(group, wishes, text):
    group(left=2)
    for request in (
        spec(count=2, extra_specs=wishing(**wishes)),
        spec(group=None, count=2, extra_specs=wishing(**wishes)),
    ):
        assert text in why_refused(states_of(), request)


def test_wishes_that_contradict_each_other_are_refused_before_anything_else(group):
    group(left=1)
    request = spec(extra_specs=wishing(max_leaves=1, group_size=5))
    told = why_refused(states_of(), request)
    assert "hpc:max_leaves=1 and hpc:group_size=5 contradict each other" in told
    assert "at most 4 VMs of this flavor" in told
    assert not NAMES.search(told)


def test_wishes_that_only_the_load_of_today_stands_against_do_not_contradict_each_other(group):
    # Every host is in use but one: an empty leaf would hold the group.
    group(left=1)
    states = states_of(vcpus_used=16)
    states[0].vcpus_used = 0
    request = spec(extra_specs=wishing(max_leaves=1, group_size=4))
    assert names(run(states, request, HPCGroupFilter())) >= {"n01"}


@pytest.mark.parametrize(
    "wishes",
    [
        {"require": "pod"},
        {"prefer": "leaf"},
        {"max_leaves": 1},
        {"group_size": 16},
        {"homogeneous": "true"},
    ],
)
def test_a_wish_without_a_group_is_refused_unless_the_vm_runs_already(monkeypatch, wishes):
    states = states_of()
    monkeypatch.setattr(members_, "is_placed", lambda _uuid: False)
    request = spec(group=None, extra_specs=wishing(**wishes))
    told = why_refused(states, request)
    assert next(iter(wishing(**wishes))) in told
    assert "only a group can have that" in told
    monkeypatch.setattr(members_, "is_placed", lambda _uuid: True)
    assert run(states, request, HPCGroupFilter()) == states


def test_a_vm_that_runs_is_not_held_fast_by_a_wish_that_nobody_can_read(monkeypatch):
    monkeypatch.setattr(members_, "is_placed", lambda _uuid: True)
    states = states_of()
    request = spec(group=None, extra_specs=wishing(require="rack"))
    assert run(states, request, HPCGroupFilter()) == states


def test_homogeneous_prefer_and_false_need_no_group(caplog):
    for value in ("prefer", "false"):
        states = states_of()
        request = spec(group=None, extra_specs=wishing(homogeneous=value))
        assert run(states, request, HPCGroupFilter()) == states
    assert not caplog.records


def test_a_bad_hint_is_refused_where_hints_count_and_ignored_where_they_do_not(group):
    group(left=2)
    states, request = states_of(), spec(count=2, hints=as_hints(require="rack"))
    assert run(states, request, HPCGroupFilter()) == states
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    assert "hpc:require='rack'" in why_refused(states, spec(count=2, hints=request.scheduler_hints))


def test_two_values_of_one_hint_are_refused(group):
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    group(left=2)
    request = spec(count=2, hints={"hpc:max_leaves": ["1", "2"]})
    assert "hpc:max_leaves: expected one value, found 2" in why_refused(states_of(), request)


def test_a_hint_counts_where_allowed_and_the_flavor_beats_it(group):
    group(left=8)
    hint = as_hints(require="leaf")
    assert len(run(states_of(), spec(count=8, hints=hint), HPCGroupFilter())) == 32
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    assert "needs one leaf" in why_refused(states_of(), spec(count=8, hints=hint))
    both = spec(count=8, hints=hint, extra_specs=wishing(require="pod"))
    assert len(run(states_of(), both, HPCGroupFilter())) == 16


def test_group_size_steers_the_first_vm_and_refuses_nobody(group):
    # leaf1 has room for one VM, pod2 for sixteen.
    states = [*states_of("leaf1")[:1], *states_of("pod2")]
    group(queue=[uuids.instance], left=1)
    chain = [HPCGroupFilter(), HPCRackCapacityFilter()]

    def first(**wishes: object) -> str:
        request = spec(extra_specs=wishing(**wishes))
        kept = run(states, request, *chain)
        return weigh(HopByteWeigher(), kept, request)[0] if len(kept) > 1 else kept[0].host

    assert first() == "n01"
    assert first(group_size=16) in hosts_below("pod2")
    assert first(group_size=1000)


def test_members_count_towards_the_group_size(group):
    group(dict.fromkeys(sorted(hosts_below("leaf1", "leaf2")), 1), left=1)
    states = states_of("leaf3", "leaf4")
    fits = spec(extra_specs=wishing(require="pod", group_size=16))
    assert run(states, fits, HPCGroupFilter()) == states
    assert "hpc:group_size=17" in why_refused(
        states, spec(extra_specs=wishing(require="pod", group_size=17))
    )


def test_orphaned_build_requests_block_no_group(group):
    group(queue=queue_of(40), left=2, orphans=38)
    states = states_of()
    assert run(states, spec(count=2, uuid=uuids.vm000), HPCGroupFilter()) == states
    wishes = wishing(require="leaf", max_leaves=1)
    kept = run(states, spec(count=2, uuid=uuids.vm000, extra_specs=wishes), HPCGroupFilter())
    assert len({FABRIC.leaf_of(host) for host in names(kept)}) == 1


def test_orphaned_build_requests_do_not_hide_the_vms_that_are_really_to_come(group):
    # leaf1 has room for one VM, leaf5 for the four that are being created; forty never will be.
    states = [*states_of("leaf1")[:1], *states_of("leaf5")]
    group(queue=queue_of(44), left=1, orphans=40)
    request = spec(uuid=uuids.vm000)
    kept = run(states, request, HPCGroupFilter(), HPCRackCapacityFilter())
    assert weigh(HopByteWeigher(), kept, request)[0] in hosts_below("leaf5")


def test_vms_that_others_have_requested_block_no_group_either(group):
    group(queue=queue_of(40), left=2)
    states = states_of()
    assert run(states, spec(count=2, uuid=uuids.vm000), HPCGroupFilter()) == states


@pytest.mark.parametrize(
    ("wishes", "members", "expected"),
    [
        pytest.param({"require": "pod"}, {"n09": 1}, ("pod1",), id="the pod of a member"),
        pytest.param({"require": "leaf"}, {"n10": 1}, ("leaf3",), id="the leaf of a member"),
        pytest.param({"max_leaves": 1}, {"n10": 1}, ("leaf3",), id="the only leaf there may be"),
        pytest.param(
            {"max_leaves": 2}, {"n10": 1, "n20": 1}, ("leaf3", "leaf5"), id="the leaves of members"
        ),
        pytest.param(
            {"require": "pod", "prefer": "leaf"}, {"n10": 1}, ("pod1",), id="the required switch"
        ),
        pytest.param({"prefer": "leaf"}, {"n10": 1}, ("spine",), id="no host for a preference"),
    ],
)
def test_what_is_required_leaves_only_hosts_that_keep_it(group, wishes, members, expected):
    group(members, left=2)
    states = states_of()
    kept = run(states, spec(count=2, extra_specs=wishing(**wishes)), HPCGroupFilter())
    assert names(kept) == hosts_below(*expected)
    assert kept == [state for state in states if state in kept]


def test_members_that_break_a_requirement_themselves_are_told_of(group):
    group({"n01": 1, "n32": 1}, left=1)
    told = why_refused(states_of(), spec(extra_specs=wishing(require="pod")))
    assert "stand under 2 switches of level pod" in told


def test_on_a_move_the_vm_stays_under_the_groups_switch_and_group_size_is_ignored(group):
    group({"n01": 1, "n02": 1}, queue=[uuids.instance], left=1, is_move=True)
    wishes = wishing(require="leaf", group_size=64, max_leaves=1)
    kept = run(states_of(), spec(count=8, extra_specs=wishes), *(made() for made in FILTERS))
    assert names(kept) <= hosts_below("leaf1")


@pytest.mark.parametrize(
    ("wishes", "members", "is_refused"),
    [
        pytest.param({}, {}, False, id="no wish"),
        pytest.param({"prefer": "leaf", "group_size": 4}, {}, False, id="preferences"),
        pytest.param({"require": "pod"}, {}, True, id="require"),
        pytest.param({"require": "pod"}, {"n01": 1}, False, id="require, one member tells where"),
        pytest.param({"max_leaves": 4}, {"n01": 1}, True, id="max_leaves, where all must be known"),
    ],
)
def test_a_guarantee_is_refused_while_a_cell_with_members_is_silent(
    group, wishes, members, is_refused
):
    group(members, left=1, problems=["cell 2: no answer"])
    states, request = states_of("pod1"), spec(extra_specs=wishing(**wishes))
    if not is_refused:
        assert run(states, request, HPCGroupFilter()) == states
        return
    told = why_refused(states, request)
    assert "where the members of the group are is not known at the moment" in told
    assert "cell" not in told


def test_a_group_member_that_moves_is_not_held_fast_by_a_preference_that_nobody_can_read(
    group, caplog
):
    group({"n01": 1}, queue=[uuids.instance], left=1, is_move=True)
    states = states_of()
    request = spec(extra_specs=wishing(prefer="rack"))
    assert run(states, request, HPCGroupFilter()) == states
    assert "hpc:prefer='rack'" in caplog.text
    assert "hpc:require" in why_refused(states, spec(extra_specs=wishing(require="rack")))


def test_a_group_bound_to_one_host_is_told_how_many_fit_on_one(group):
    group(left=2)
    told = why_refused(states_of(), spec(count=2, group_policy="affinity"))
    assert "2 VMs of a group with policy affinity need one host" in told
    assert "largest gang that fits on one host: 1" in told


def test_a_request_that_has_placed_a_vm_is_never_refused_by_an_error(group):
    group(queue=queue_of(33), left=33)
    states, request = states_of(), spec(count=32, uuid=uuids.vm000)
    request_group_filter = HPCGroupFilter()
    state = registry.state_of(request, states)
    assert state is not None
    states[0].consume_from_request(request)
    request.instance_uuid = uuids.vm001
    # 32 more do not fit beside the first: an exception now would leak its claim.
    assert run(states, request, request_group_filter) == []


def test_a_refusal_does_not_touch_what_another_request_is_told(group):
    group(left=33)
    assert "does not fit" in why_refused(states_of(), spec(count=33))
    group(left=2)
    states = states_of()
    assert run(states, spec(count=2), HPCGroupFilter()) == states


def test_where_policy_and_room_leave_one_host_the_decision_is_told_without_a_weigher(
    group, tmp_path
):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    group(left=1)
    run(states_of("leaf1")[:1], spec(), HPCGroupFilter())
    assert [told["decision"] for told in read_decisions(tmp_path / "decisions")] == ["planned"]


# HPCHomogeneityFilter.


def cpu(model: str = "Icelake", cores: int = 8, features: Sequence[str] = ("sse4",)) -> str:
    """Return a hypervisor's cpu_info."""
    return json.dumps(
        {
            "vendor": "Intel",
            "model": model,
            "topology": {"sockets": 2, "cores": cores, "threads": 2, "cells": 1},
            "features": list(features),
        }
    )


def in_aggregate(processor: str) -> list[objects.Aggregate]:
    return [objects.Aggregate(metadata={"hpc:processor": processor})]


def two_types(first: Sequence[str], second: Sequence[str] = ()) -> States:
    """Return Icelake below some switches and Broadwell, with fewer cores, below others."""
    newer = states_of(*first, cpu_info=cpu("Icelake", cores=16))
    return newer + (states_of(*second, cpu_info=cpu("Broadwell", cores=12)) if second else [])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["from aggregate"], {"n01", "n02"}),
        (["from file"], {"n03", "n04"}),
        (["Intel Icelake 2x8x2"], set(FABRIC.hosts) - {"n01", "n02", "n03", "n04"}),
        (["not there", "from file", "from aggregate"], {"n03", "n04"}),
    ],
    ids=["metadata of aggregates", "the topology file", "cpu_info", "the operator's order"],
)
def test_metadata_beats_the_topology_file_and_that_beats_what_hosts_report(
    group, topology_file, order, expected
):
    write_fabric(topology_file, {"leaf1": "from file"})
    fabric.load()
    CONF.set_override("processor_order", order, "hpc_sched")
    group(left=2)
    states = states_of(cpu_info=cpu())
    for state in states[:2]:
        state.aggregates = in_aggregate("from aggregate")
    assert names(run(states, spec(count=2), HPCHomogeneityFilter())) == expected


def test_without_an_order_the_type_with_most_cores_a_host_comes_first(group):
    group(left=4)
    states = two_types(["pod2"], ["pod1"])
    kept = run(states, spec(count=4), HPCHomogeneityFilter())
    assert names(kept) == hosts_below("pod2")
    assert kept == [state for state in states if state in kept]


def test_the_best_type_that_holds_the_group_is_taken_not_the_best_of_all(group):
    group(left=12)
    kept = run(two_types(["leaf1"], ["pod2"]), spec(count=12), HPCHomogeneityFilter())
    assert names(kept) == hosts_below("pod2")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"queue": [f"vm{n}" for n in range(12)]}, id="VMs of other requests"),
        pytest.param({"extra_specs": {"hpc:group_size": "12"}}, id="group_size"),
    ],
)
def test_the_first_vm_of_a_group_takes_a_type_that_holds_those_to_come(group, said):
    group(queue=said.get("queue", ()), left=1)
    request = spec(extra_specs=said.get("extra_specs"))
    kept = run(two_types(["leaf1"], ["pod2"]), request, HPCHomogeneityFilter())
    assert names(kept) == hosts_below("pod2")


def test_where_no_type_holds_those_to_come_the_first_vm_takes_the_best(group):
    group(left=1)
    request = spec(extra_specs=wishing(group_size=64))
    kept = run(two_types(["leaf1"], ["pod2"]), request, HPCHomogeneityFilter())
    assert names(kept) == hosts_below("leaf1")


def test_features_that_differ_make_two_types(group):
    group(left=4)
    states = states_of("pod1", cpu_info=cpu(features=["sse4", "avx512f"]))
    states += states_of("pod2", cpu_info=cpu(features=["sse4"]))
    kept = run(states, spec(count=4), HPCHomogeneityFilter())
    assert names(kept) == hosts_below("pod2")  # equal cores: by name, which is the shorter
    CONF.set_override("processor_order", ["Intel Icelake 2x8x2 +avx512f"], "hpc_sched")
    kept = run(states, spec(count=4), HPCHomogeneityFilter())
    assert names(kept) == hosts_below("pod1")


def test_a_type_must_hold_the_group_with_all_its_wishes(group):
    group(left=4)
    # Four of the better type, but in two leaves.
    better = [*states_of("leaf1")[:2], *states_of("leaf2")[:2]]
    for state in better:
        state.cpu_info = cpu("Icelake", cores=16)
    states = better + states_of("leaf7", cpu_info=cpu("Broadwell"))
    assert names(run(states, spec(count=4), HPCHomogeneityFilter())) == names(better)
    request = spec(count=4, extra_specs=wishing(require="leaf"))
    assert names(run(states, request, HPCHomogeneityFilter())) == hosts_below("leaf7")


def test_the_type_of_the_members_is_kept_though_another_is_better(group):
    group({"n20": 1}, left=2)
    states = two_types(["pod1"], ["pod2"])
    assert names(run(states, spec(count=2), HPCHomogeneityFilter())) == hosts_below("pod2")


def test_members_of_a_type_that_is_full_leave_the_group_mixed_or_refused(group):
    group({"n20": 1}, left=5)
    states = two_types(["pod1"], ["leaf5"])
    # The other type would hold all five, but not the member.
    assert run(states, spec(count=5), HPCHomogeneityFilter()) == states
    request = spec(count=5, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(({}, {("far", "far"): cpu("Broadwell", cores=12)}), id="cpu_info"),
        pytest.param(({"far": ["Intel Broadwell 2x12x2"]}, {}), id="metadata of aggregates"),
    ],
)
def test_the_type_of_members_on_hosts_that_are_no_candidates_is_looked_up(group, monkeypatch, said):
    group({"far": 1}, left=2)
    monkeypatch.setattr(processors, "_read", lambda _places, _cells: said)
    states = two_types(["pod1"], ["pod2"])
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert names(run(states, request, HPCHomogeneityFilter())) == hosts_below("pod2")


def test_members_that_run_on_two_types_leave_the_one_with_more_of_them_to_a_preference(group):
    group({"n01": 1, "n17": 1, "n18": 1}, left=2)
    states = two_types(["pod1"], ["pod2"])
    assert names(run(states, spec(count=2), HPCHomogeneityFilter())) == hosts_below("pod2")
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []


def test_where_no_type_holds_the_group_all_pass_if_it_is_a_preference_alone(group):
    group(left=20)
    states = two_types(["pod1"], ["pod2"])
    assert run(states, spec(count=20), HPCHomogeneityFilter()) == states
    request = spec(count=20, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []
    CONF.set_override("default_homogeneous", "true", "hpc_sched")
    assert run(states, spec(count=20), HPCHomogeneityFilter()) == []


def test_the_refusal_reaches_the_tenant_through_the_group_filter_behind(group, caplog):
    CONF.set_override(
        "enabled_filters", ["HPCHomogeneityFilter", "HPCGroupFilter"], "filter_scheduler"
    )
    caplog.set_level("INFO")
    group(left=20)
    request = spec(count=20, extra_specs=wishing(homogeneous="true"))
    told = why_refused(
        two_types(["pod1"], ["pod2"]), request, HPCHomogeneityFilter(), HPCGroupFilter()
    )
    assert "no single processor type holds 20 VMs: largest gang that fits on one type: 16" in told
    assert "Intel" not in told
    assert any("Intel Icelake 2x16x2" in found.getMessage() for found in caplog.records)


def test_a_group_filter_in_front_tells_nobody(group):
    CONF.set_override(
        "enabled_filters", ["HPCGroupFilter", "HPCHomogeneityFilter"], "filter_scheduler"
    )
    group(left=20)
    request = spec(count=20, extra_specs=wishing(homogeneous="true"))
    states = two_types(["pod1"], ["pod2"])
    assert run(states, request, HPCGroupFilter(), HPCHomogeneityFilter()) == []


def test_a_member_whose_type_nobody_knows_refuses_what_must_be_homogeneous(group, monkeypatch):
    group({"far": 2}, left=2)
    monkeypatch.setattr(processors, "_read", lambda _places, _cells: ({}, {}))
    CONF.set_override(
        "enabled_filters", ["HPCHomogeneityFilter", "HPCGroupFilter"], "filter_scheduler"
    )
    states = two_types(["pod1"], ["pod2"])
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    told = why_refused(states, request, HPCHomogeneityFilter(), HPCGroupFilter())
    assert "the processor type of 2 members of the group is not known" in told
    assert names(run(states, spec(count=2), HPCHomogeneityFilter())) == hosts_below("pod1")


def test_hosts_that_tell_nothing_pass_a_preference_and_not_a_must(group):
    group(left=2)
    states = states_of()
    assert run(states, spec(count=2), HPCHomogeneityFilter()) == states
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []
    request = spec(count=2, extra_specs=wishing(homogeneous="false"))
    assert run(two_types(["pod1"], ["pod2"]), request, HPCHomogeneityFilter())


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"topology": 7}', '{"features": 3}', "null"])
def test_a_cpu_info_that_cannot_be_read_is_no_type(group, broken):
    group(left=2)
    states = states_of("pod1", cpu_info=cpu()) + states_of("pod2", cpu_info=broken)
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert names(run(states, request, HPCHomogeneityFilter())) == hosts_below("pod1")


# HPCRackCapacityFilter.


def test_the_leaves_of_the_plan_stay_with_as_much_again_for_lost_claims(group):
    CONF.set_override("max_attempts", 3, "scheduler")
    group({"n05": 1}, left=3)
    states = states_of()
    kept = run(states, spec(count=3), HPCRackCapacityFilter())
    # 2 * 3 places and two retries: the member's leaf and another of its pod.
    assert hosts_below("leaf2") <= names(kept) <= hosts_below("pod1")
    assert len(kept) == 8
    assert kept == [state for state in states if state in kept]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 12, 16, 30])
@pytest.mark.parametrize("attempts", [1, 3, 10])
def test_hosts_for_all_vms_and_all_retries_stay_where_there_are_so_many(group, count, attempts):
    CONF.set_override("max_attempts", attempts, "scheduler")
    group(left=count)
    kept = run(states_of(), spec(count=count), HPCRackCapacityFilter())
    assert len(kept) >= min(count + attempts - 1, 32)


def test_vms_that_others_have_requested_find_their_hosts_too(group):
    group(queue=queue_of(12), left=1)
    assert len(run(states_of(), spec(uuid=uuids.vm000), HPCRackCapacityFilter())) >= 14


@pytest.mark.parametrize(
    ("wishes", "count", "most"),
    [
        ({"require": "leaf"}, 2, 4),
        ({"require": "pod"}, 12, 16),
        ({"max_leaves": 3}, 12, 12),
        ({"require": "pod", "prefer": "leaf"}, 4, 16),
    ],
)
def test_spares_never_lead_outside_what_is_required(group, wishes, count, most):
    CONF.set_override("max_attempts", 30, "scheduler")
    group(left=count)
    kept = run(states_of(), spec(count=count, extra_specs=wishing(**wishes)), *_group_and_rack())
    assert len(kept) == most
    level = {"leaf": 0, "pod": 1}.get(str(wishes.get("require")), 2)
    assert len({FABRIC.ancestors(host)[level] for host in names(kept)}) == 1
    alone = run(
        states_of(), spec(count=count, extra_specs=wishing(**wishes)), HPCRackCapacityFilter()
    )
    assert names(alone) == names(kept)


def _group_and_rack() -> list[GroupFilter]:
    return [HPCGroupFilter(), HPCRackCapacityFilter()]


def test_without_a_leaf_that_holds_the_group_it_widens_level_by_level(group):
    CONF.set_override("max_attempts", 1, "scheduler")
    group(left=8)
    kept = run(states_of(), spec(count=8), HPCRackCapacityFilter())
    assert names(kept) in (hosts_below("pod1"), hosts_below("pod2"))


def test_a_group_without_a_plan_passes_as_it_came_unless_it_requires_one(group):
    group(left=33)
    states = states_of()
    assert run(states, spec(count=33), HPCRackCapacityFilter()) == states
    for wishes in ({"require": "core"}, {"max_leaves": 8}):
        request = spec(count=33, extra_specs=wishing(**wishes))
        assert run(states, request, HPCRackCapacityFilter()) == []


def test_a_class_without_topology_keeps_all_hosts(group):
    group(left=2)
    states = states_of()
    request = spec(count=2, extra_specs=wishing(app_class="async"))
    assert run(states, request, HPCRackCapacityFilter()) == states


def test_full_hosts_go_and_the_decision_says_how_many(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    CONF.set_override("max_attempts", 1, "scheduler")
    group(left=2)
    states = states_of()
    for state in states[8:]:
        state.vcpus_used = 16
    kept = run(states, spec(count=2), HPCRackCapacityFilter())
    assert len(kept) == 4
    [told] = read_decisions(tmp_path / "decisions")
    assert told["removed"] == {
        "outside the plan's leaves and spares": 28,
        "no room for one VM": 24,
    }


# An error of our own.


@pytest.mark.parametrize("filter_class", FILTERS)
@pytest.mark.parametrize(
    ("wishes", "passes"),
    [
        ({}, True),
        ({"prefer": "leaf", "group_size": 16, "homogeneous": "prefer"}, True),
        ({"require": "pod"}, False),
        ({"max_leaves": 8}, False),
        ({"homogeneous": "true"}, False),
    ],
    ids=["no wish", "preferences", "require", "max_leaves", "homogeneous"],
)
def test_a_bug_of_ours_lets_all_hosts_pass_unless_a_guarantee_is_asked_for(
    monkeypatch, caplog, filter_class, wishes, passes
):
    def broken(*_args: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(members_, "read", broken)
    states = states_of()
    request = spec(count=2, extra_specs=wishing(**wishes))
    assert run(states, request, filter_class()) == (states if passes else [])
    [logged] = [found for found in caplog.records if found.levelname == "ERROR"]
    assert filter_class.__name__ in logged.getMessage()
    assert logged.exc_info is not None


def test_a_bug_in_telling_a_refusal_changes_nothing_of_it(group, monkeypatch, caplog, tmp_path):
    def broken(*_args: object) -> None:
        raise ZeroDivisionError("boom")

    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    monkeypatch.setattr(record, "append", broken)
    group(left=33)
    wishes = wishing(require="pod")
    assert "needs one pod" in why_refused(states_of(), spec(count=33, extra_specs=wishes))
    request = spec(count=33, extra_specs=wishes)
    assert run(states_of(), request, HPCRackCapacityFilter()) == []
    logged = [found for found in caplog.records if found.levelname == "ERROR"]
    assert [found.exc_info is not None for found in logged] == [True, True]


def test_after_a_bug_the_other_filters_let_pass_what_asked_for_nothing(monkeypatch, caplog):
    def broken(*_args: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(members_, "read", broken)
    states = states_of()
    request = spec(count=40)
    assert run(states, request, *(made() for made in FILTERS)) == states
    assert len([found for found in caplog.records if found.exc_info]) == 1


# The weighers, VM by VM as Nova goes through a request.


def schedule(
    states: States,
    request: objects.RequestSpec,
    queue: Sequence[str],
    weigher: BaseHostWeigher,
    chain: Sequence[GroupFilter] = (),
    losing: Sequence[int] = (),
) -> tuple[list[str], list[str]]:
    """Place the VMs of a request in turn; return their hosts and the hosts that lost a claim.

    :param losing: numbers of the VMs whose first choice somebody else has just taken
    """
    kept, placed, lost = states, [], []
    for index, uuid in enumerate(queue):
        request.instance_uuid = uuid
        kept = run(kept, request, *chain, index=index)
        order = weigh(weigher, kept, request)
        if lost:
            assert set(order[-len(lost) :]) == set(lost)
        if index in losing:
            lost.append(order[0])
        placed.append(place(kept, order, request, lose=set(lost)))
    return placed, lost


def least(free: Mapping[str, int], count: int, require: str | None = None) -> float:
    """Return the least Hop-Byte of a group without members."""
    answer = plan(topology=FABRIC, capacity=free, members={}, count=count, require=require)
    assert isinstance(answer, Plan)
    return answer.hop_bytes


def hop_bytes(placed: Sequence[str]) -> float:
    return hop_bytes_of_counts(topology=FABRIC, counts=Counter(placed))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("chain", [(), FILTERS], ids=["the weigher alone", "behind the filters"])
def test_a_group_of_sixteen_reaches_the_planners_optimum_vm_by_vm(group, seed, chain):
    taken = random.Random(seed).sample(sorted(FABRIC.hosts), 12)
    states = states_of()
    for state in states:
        state.vcpus_used = 16 if state.host in taken else 0
    queue = queue_of(16)
    group(queue=queue, left=16)
    request = spec(count=16, uuid=queue[0])
    placed, _ = schedule(states, request, queue, HopByteWeigher(), [made() for made in chain])
    assert len(set(placed)) == 16
    assert hop_bytes(placed) == least(dict.fromkeys(set(FABRIC.hosts) - set(taken), 1), 16)


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity", "anti-affinity"])
def test_hosts_that_take_several_vms_reach_the_optimum_too(group, policy):
    states = states_of()
    numbers = random.Random(3)
    for state in states:
        state.vcpus_used = 4 * numbers.randrange(5)
    free = {state.host: (16 - state.vcpus_used) // 4 for state in states}
    queue = queue_of(16)
    group(queue=queue, left=16)
    request = spec(count=16, uuid=queue[0], vcpus=4, group_policy=policy)
    placed, _ = schedule(states, request, queue, HopByteWeigher(), [made() for made in FILTERS])
    if policy == "anti-affinity":
        free = {host: min(room, 1) for host, room in free.items()}
    by_leaf = Counter(FABRIC.leaf_of(host) for host in placed)
    assert all(count <= free[host] for host, count in Counter(placed).items())
    if policy == "soft-anti-affinity":
        # Hosts are no level of such a plan: what counts is how many VMs each leaf gets.
        pairs = sum(
            FABRIC.hops(a, b) if a != b else 1
            for i, a in enumerate(placed)
            for b in placed[i + 1 :]
        )
        spread = {f"{host}-{n}": 1 for host in free for n in range(free[host])}
        slots = Topology.from_tree(
            {
                "spine": {
                    pod: {
                        leaf: [f"{host}-{n}" for host in hosts for n in range(free[host])]
                        for leaf, hosts in leaves.items()
                        if any(free[host] for host in hosts)
                    }
                    for pod, leaves in TREE["spine"].items()
                }
            }
        )
        best = plan(topology=slots, capacity=spread, members={}, count=16)
        assert isinstance(best, Plan)
        assert pairs == best.hop_bytes
    else:
        assert hop_bytes(placed) == least(free, 16)
    assert sum(by_leaf.values()) == 16


@pytest.mark.parametrize("seed", range(6))
def test_with_half_of_the_first_claims_lost_the_group_ends_complete_under_its_pod(group, seed):
    """As many spares as failures under the pod: every host there is needed."""
    losing = random.Random(seed).sample(range(8), 4)
    free = sorted(hosts_below("pod1"))[: 8 + 4] + sorted(hosts_below("pod2"))[:4]
    states = states_of()
    for state in states:
        state.vcpus_used = 0 if state.host in free else 16
    queue = queue_of(8)
    group(queue=queue, left=8)
    request = spec(count=8, uuid=queue[0], extra_specs=wishing(require="pod"))
    placed, lost = schedule(
        states, request, queue, HopByteWeigher(), [made() for made in FILTERS], losing
    )
    assert len(set(placed)) == 8
    assert set(placed) <= hosts_below("pod1")
    assert not set(placed) & set(lost)
    left = hosts_below("pod1") & set(free) - set(lost)
    assert hop_bytes(placed) == least(dict.fromkeys(left, 1), 8, require="pod")


def test_more_lost_claims_than_spares_never_lead_outside_the_required_pod(group):
    queue = queue_of(15)
    group(queue=queue, left=15)
    request = spec(count=15, uuid=queue[0], extra_specs=wishing(require="pod"))
    # Sixteen hosts under a pod: one may be lost.
    placed, lost = schedule(
        states_of(), request, queue, HopByteWeigher(), [made() for made in FILTERS], [7]
    )
    assert len({FABRIC.ancestors(host)[1] for host in [*placed, *lost]}) == 1


def test_where_no_filter_refuses_a_wish_that_cannot_be_met_the_group_is_packed_without_it(group):
    queue = queue_of(6)
    group(queue=queue, left=6)
    request = spec(count=6, uuid=queue[0], extra_specs=wishing(require="leaf"))
    placed, _ = schedule(states_of(), request, queue, HopByteWeigher())
    assert hop_bytes(placed) == least(dict.fromkeys(FABRIC.hosts, 1), 6)


def test_a_group_too_large_for_the_cloud_is_placed_as_far_as_it_goes(group):
    queue = queue_of(40)
    group(queue=queue, left=40)
    request = spec(count=40, uuid=queue[0])
    placed, _ = schedule(states_of(), request, queue[:32], HopByteWeigher())
    assert set(placed) == set(FABRIC.hosts)


def test_members_on_two_islands_draw_the_next_vm_near_them(group, topology_file):
    """One island more: m1 and m2 below a switch of their own."""
    tree = yaml.safe_load(topology_file.read_text())
    tree["switches"].append({"name": "island", "hosts": ["m1", "m2"]})
    topology_file.write_text(yaml.safe_dump(tree))
    fabric.load()
    group({"n01": 2, "m1": 1}, left=1)
    states = [*states_of("leaf1", "leaf2", "leaf5")[1:], host_state("m2")]
    order = weigh(HopByteWeigher(), states, spec())
    leaves = [FABRIC.leaf_of(host) if host in FABRIC else host for host in order]
    assert leaves == ["leaf1"] * 3 + ["leaf2"] * 4 + ["m2"] + ["leaf5"] * 4


def racks_with_room(rooms: Mapping[str, Sequence[int]]) -> States:
    """Return hosts that take as many VMs of 4 processors as is said, leaf by leaf."""
    states = states_of(*rooms)
    for state in states:
        leaf = FABRIC.leaf_of(state.host)
        state.vcpus_used = 16 - 4 * rooms[leaf][FABRIC.hosts_of(leaf).index(state.host)]
    return states


ROOMS = {"leaf1": [1, 2, 0, 1], "leaf3": [4, 1, 3, 2], "leaf6": [2, 4, 1, 0]}


def test_the_build_plan_is_followed_through_the_whole_request(group):
    states = racks_with_room(ROOMS)
    queue = queue_of(12)
    group(queue=queue, left=12)
    request = spec(count=12, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
    placed, _ = schedule(states, request, queue, RackCapacityWeigher())
    # leaf3 holds 10, and does not fall behind leaf6 with 7 once its VMs stand there.
    assert placed == ["n09"] * 4 + ["n11"] * 3 + ["n12"] * 2 + ["n10"] + ["n22"] * 2


def test_best_fit_begins_with_the_racks_that_leave_least_over(group):
    CONF.set_override("rack_selection", "best_fit", "hpc_sched")
    for count, expected in ((4, {"leaf1"}), (7, {"leaf6"}), (11, {"leaf1", "leaf6"})):
        queue = queue_of(count)
        group(queue=queue, left=count)
        request = spec(count=count, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
        placed, _ = schedule(racks_with_room(ROOMS), request, queue, RackCapacityWeigher())
        assert {FABRIC.leaf_of(host) for host in placed} == expected


def test_a_host_that_lost_a_claim_does_not_stop_the_build_plan(group):
    states = racks_with_room(ROOMS)
    queue = queue_of(6)
    group(queue=queue, left=6)
    request = spec(count=6, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
    placed, lost = schedule(states, request, queue, RackCapacityWeigher(), losing=[0])
    assert lost == ["n09"]
    assert placed == ["n11"] * 3 + ["n12"] * 2 + ["n10"]


@pytest.mark.parametrize("weigher_class", [HopByteWeigher, RackCapacityWeigher])
def test_requests_without_a_group_to_place_weigh_all_hosts_alike(weigher_class):
    for request in (
        spec(group=None),
        spec(extra_specs=wishing(app_class="none")),
        spec(hints={"_nova_check_type": ["rebuild"]}),
    ):
        # Nova sorts stably: equal weights leave the order as it was.
        assert weigh(weigher_class(), states_of(), request) == list(FABRIC.hosts)


def test_eight_threads_with_different_groups_on_one_chain_do_not_mix(monkeypatch):
    """Each group has members in a leaf of its own and must be kept there, every time."""
    chain, weigher = [made() for made in FILTERS], HopByteWeigher()
    start = threading.Barrier(8)
    home = {getattr(uuids, f"g{number}"): f"leaf{number + 1}" for number in range(8)}

    def read(request: request_.Request, _states: object) -> members_.Group:
        host = FABRIC.hosts_of(home[request.group_uuid])[0]
        return members_.Group(Counter({(host, host): 1}), (request.instance_uuid,), 3, False)

    monkeypatch.setattr(members_, "read", read)

    def serve(number: int) -> bool:
        start.wait()
        leaf = home[getattr(uuids, f"g{number}")]
        for turn in range(15):
            states = states_of()
            queue = [getattr(uuids, f"t{number}x{turn}x{vm}") for vm in range(3)]
            request = spec(
                group=f"g{number}",
                group_policy="anti-affinity",
                count=3,
                uuid=queue[0],
                extra_specs=wishing(require="leaf"),
            )
            placed, _ = schedule(states, request, queue, weigher, chain)
            if set(placed) != set(FABRIC.hosts_of(leaf)[1:]):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(serve, range(8))) == [True] * 8
    assert [vars(used) for used in [*chain, weigher]] == [{}] * 4
    gc.collect()
    ours = {
        getattr(uuids, f"t{n}x{turn}x{vm}")
        for n in range(8)
        for turn in range(15)
        for vm in range(3)
    }
    assert not ours & {kept.instance_uuid for kept in registry._registry.states}


# The decision log.


def read_decisions(path: Path) -> list[dict]:
    """Return the lines of a decision log, each one JSON object."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_decision_is_one_line_however_many_vms_the_request_has(group, tmp_path, caplog):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    caplog.set_level("INFO", "hpc_sched")
    queue = queue_of(6)
    group({"n01": 1}, queue=queue, left=6)
    request = spec(count=6, uuid=queue[0], extra_specs=wishing(require="pod"))
    schedule(states_of(), request, queue, HopByteWeigher(), [made() for made in FILTERS])
    [told] = read_decisions(tmp_path / "decisions")
    assert told.keys() == {
        *("time", "instance", "group", "policy", "app_class", "wishes", "left", "awaiting"),
        *("members", "candidates", "removed", "decision", "plan", "seconds"),
    }
    assert told["decision"] == "planned"
    assert (told["instance"], told["group"]) == (queue[0], uuids.group)
    assert told["wishes"] == {
        "require": "pod",
        "prefer": None,
        "max_leaves": None,
        "group_size": None,
        "homogeneous": "prefer",
    }
    assert (told["left"], told["awaiting"], told["members"]) == (6, 6, {"leaf1": 1})
    assert told["candidates"] == {leaf: {"hosts": 4, "room": 4} for leaf in FABRIC.leaves}
    assert told["removed"]["hpc:require or hpc:max_leaves"] == 16
    assert sum(told["plan"]["leaves"].values()) == sum(told["plan"]["hosts"].values()) == 6
    assert told["plan"]["hop_bytes"] == told["plan"]["least"]
    assert 0 < told["seconds"] < 60
    [line] = [found.getMessage() for found in caplog.records if "Hop-Byte" in found.getMessage()]
    assert f"group {uuids.group}, instance {queue[0]}: 6 awaiting, 1 members; planned 6" in line


def test_a_wish_that_costs_hop_bytes_shows_against_the_least_possible(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    # Three hosts a leaf in pod1, and the whole group in two leaves of pod2 if it were of one type.
    group(left=8)
    states = states_of("pod1", cpu_info=cpu("Icelake", cores=16))
    states = [state for state in states if state.host not in {"n04", "n08", "n12", "n16"}]
    states += states_of("pod2", cpu_info=cpu("Broadwell"))
    request = spec(count=8, group_policy="anti-affinity")
    run(states, request, *(made() for made in FILTERS))
    [told] = read_decisions(tmp_path / "decisions")
    assert told["plan"]["least"] == least(dict.fromkeys(hosts_below("pod2"), 1), 8)
    assert told["plan"]["hop_bytes"] > told["plan"]["least"]
    assert told["removed"]["processor type other than Intel Icelake 2x16x2"] == 16


def test_the_refusal_of_wishes_without_a_group_is_a_decision_too(monkeypatch, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    monkeypatch.setattr(members_, "is_placed", lambda _uuid: False)
    why_refused(states_of(), spec(group=None, extra_specs=wishing(max_leaves=1)))
    [told] = read_decisions(tmp_path / "decisions")
    assert told.keys() == {"time", "instance", "group", "decision", "reason"}
    assert told["decision"] == "refused"
    assert "hpc:max_leaves" in told["reason"]


def test_lines_of_many_threads_never_mix_and_none_is_lost_when_the_file_is_rotated(tmp_path):
    path, rotated = tmp_path / "decisions", tmp_path / "decisions.1"
    start, halfway = threading.Barrier(8), threading.Event()

    def write(thread: int) -> None:
        start.wait()
        for number in range(100):
            # Longer than any buffer.
            record.append(str(path), {"thread": thread, "number": number, "text": "x" * 20000})
            if thread == 0 and number == 50:
                path.rename(rotated)
                halfway.set()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert halfway.is_set()
    first, second = read_decisions(rotated), read_decisions(path)
    assert first
    assert second
    found = sorted((told["thread"], told["number"]) for told in first + second)
    assert found == [(thread, number) for thread in range(8) for number in range(100)]
    for thread in range(8):
        turns = [told["number"] for told in first + second if told["thread"] == thread]
        assert turns == sorted(turns)


def test_a_file_that_cannot_be_written_is_one_warning_and_nothing_else(group, tmp_path, caplog):
    CONF.set_override("decision_log", str(tmp_path / "missing" / "decisions"), "hpc_sched")
    group(left=4)
    for _ in range(3):
        request = spec(count=4)
        kept = run(states_of(), request, *(made() for made in FILTERS))
        assert (
            len({FABRIC.leaf_of(host) for host in weigh(HopByteWeigher(), kept, request)[:4]}) == 1
        )
    group(left=33)
    why_refused(states_of(), spec(count=33))
    [told] = [found for found in caplog.records if found.levelname == "WARNING"]
    assert str(tmp_path / "missing" / "decisions") in told.getMessage()
    assert not [found for found in caplog.records if found.exc_info]


def test_what_json_cannot_say_is_a_warning_and_no_error(tmp_path, caplog):
    record.append(str(tmp_path / "decisions"), {"cost": float("inf")})
    record.append(str(tmp_path / "others"), {"cost": object()})
    assert [found.levelname for found in caplog.records] == ["WARNING", "WARNING"]
