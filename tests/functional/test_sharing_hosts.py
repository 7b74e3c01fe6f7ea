"""Dedicated hosts, cache scores and bad company on real HostStates; what runs where is given.

The fabric is that of :mod:`tests.functional.pods`; most tests look at leaf1 alone, n01 to n04.
"""

import contextlib
import dataclasses
import errno
import gc
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import nova.conf
import pytest
from nova import exception
from nova.scheduler import weights
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched import exceptions, files
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.filters.dedicated_host import HPCDedicatedHostFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.interference import HPCInterferenceFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue.io import watched_file
from hpc_sched.nova_glue.read.instances import colocated_instances
from hpc_sched.nova_glue.read.instances.host_instances import HostInstances
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher
from tests.functional.pods import names, states_of
from tests.functional.states import (
    databases_say,
    hosts_have,
    ours,
    place,
    queue_of,
    run,
    schedule,
    served,
    spec,
    weigh,
    why_refused,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

STOCK = ["ComputeFilter"]
ALL = [*STOCK, "HPCDedicatedHostFilter", "HPCInterferenceFilter", "HPCGroupFilter"]
LEAF1 = {"n01", "n02", "n03", "n04"}


@pytest.fixture(autouse=True)
def enabled(two_pods: Path) -> None:
    CONF.set_override("enabled_filters", ALL, "filter_scheduler")


def app(app_class: str = "none", score: float = 0.0, name: str | None = None, group=uuids.other):
    return Application(app_class, name, score, group)


def asks(app_class: str | None = None, group: str | None = None, count: int = 1, **said: object):
    """Return a request for VMs of one processor of a class, with a score or a name."""
    constraints = {"app_class": app_class, **said} if app_class else said
    return spec(group=group, count=count, vcpus=1, extra_specs=wishing(**constraints))


# Dedicated hosts


def test_extreme_passes_only_hosts_without_vms_of_others(monkeypatch):
    own = app("extreme", group=uuids.group)
    hosts_have(monkeypatch, {"n01": [app()], "n02": [own], "n03": [own, app("sync")]})
    request = asks("extreme", group="group")
    assert names(run(states_of("leaf1"), request, HPCDedicatedHostFilter())) == {"n02", "n04"}


@pytest.mark.parametrize("newcomer", ["none", "async", "sync", "extreme"])
def test_nobody_joins_an_extreme_vm_of_another_group(monkeypatch, newcomer: str):
    hosts_have(monkeypatch, {"n01": [app("extreme")], "n02": [app("extreme")]})
    kept = run(states_of("leaf1"), asks(newcomer), HPCDedicatedHostFilter())
    assert names(kept) == {"n03", "n04"}


def test_the_room_of_extreme_is_bounded_although_the_filter_is_not_enabled(monkeypatch, caplog):
    caplog.set_level("INFO")
    CONF.set_override("enabled_filters", [*STOCK, "HPCGroupFilter"], "filter_scheduler")
    databases_say(monkeypatch, queue=queue_of(3), left=3)
    hosts_have(monkeypatch, {"n01": [app()], "n02": [app()], "n03": [app()]})
    request = spec(count=3, vcpus=6, extra_specs=wishing(app_class="extreme"))
    refused = why_refused(states_of("leaf1"), request)
    assert "group of 3 does not fit: largest gang that fits: 2" in refused
    assert "hosts are left out for the VMs that they have" in refused
    [told] = [text for text in ours(caplog) if "refused" in text]
    assert "hosts left out for the VMs that they have: 3 by the VMs of others" in told


# Cache scores


def test_a_host_is_full_when_the_scores_would_exceed_alpha(monkeypatch):
    hosts_have(monkeypatch, {"n01": [app(score=60)], "n02": [app(score=60.5)], "n03": [app()]})
    request = asks("async", cache_score="40")
    kept = run(states_of("leaf1"), request, HPCInterferenceFilter())
    assert names(kept) == {"n01", "n03", "n04"}


def test_beta_holds_where_the_new_vm_or_one_that_is_there_is_sync(monkeypatch):
    hosts_have(monkeypatch, {"n01": [app("sync", 50)], "n02": [app("async", 50)]})
    chain = HPCInterferenceFilter()
    assert names(run(states_of("leaf1"), asks("async", cache_score="20"), chain)) == LEAF1 - {"n01"}
    kept = run(states_of("leaf1"), asks("sync", cache_score="20"), chain)
    assert names(kept) == {"n03", "n04"}
    kept = run(states_of("leaf1"), asks("extreme", cache_score="500"), chain)
    assert names(kept) == LEAF1


def test_each_vm_of_a_request_counts_for_those_behind_it(monkeypatch):
    hosts_have(monkeypatch, {})
    request = asks("sync", cache_score="25", count=4)
    states = states_of("leaf1")[:2]
    for index in range(4):
        kept = run(states, request, HPCInterferenceFilter(), index=index)
        kept[0].consume_from_request(request)
    assert [state.num_instances for state in states] == [2, 2]
    assert run(states, request, HPCInterferenceFilter(), index=3) == []


def test_limits_of_aggregates_override_the_options_and_the_lowest_counts(monkeypatch, caplog):
    hosts_have(monkeypatch, {})
    states = states_of("leaf1")
    metadata = [
        [{"cache_score_limit": {"30"}}],
        [{"cache_score_limit": {"200"}}, {"cache_score_limit": {"90"}}],
        [{"cache_score_limit": {"plenty", "nan", "-1"}}],
        [{"cache_score_limit": {"300"}}],
    ]
    for state, found in zip(states, metadata, strict=True):
        state.aggregates = [SimpleNamespace(metadata=of) for of in _plain(found)]
    kept = run(states, asks("async", cache_score="95"), HPCInterferenceFilter())
    assert names(kept) == {"n03", "n04"}
    [warning] = [text for text in ours(caplog) if "Metadata" in text]
    assert "cache_score_limit='nan'" in warning
    assert "cache_score_limit='plenty'" in warning


def _plain(found):
    """Return one metadata mapping for each value, as an aggregate has one."""
    return [{key: value} for of in found for key, values in of.items() for value in sorted(values)]


# Bad company


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "index.csv"
    path.write_text("WRF,LU,0.85,0.99\nWRF,EP,0.95,1.0\nWRF,WRF,0.97,0.97\n")
    CONF.set_override("interference_file", str(path), "hpc_sched")
    return path


def test_applications_that_the_index_forbids_are_kept_apart_both_ways(monkeypatch, index: Path):
    hosts_have(monkeypatch, {"n01": [app(name="WRF")], "n02": [app(name="LU")]})
    chain = HPCInterferenceFilter()
    assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1 - {"n01"}
    assert names(run(states_of("leaf1"), asks(app_name="WRF"), chain)) == LEAF1 - {"n02"}
    assert names(run(states_of("leaf1"), asks(app_name="EP"), chain)) == LEAF1
    CONF.set_override("interference_tolerance", 0.05, "hpc_sched")
    assert names(run(states_of("leaf1"), asks(app_name="EP"), chain)) == LEAF1 - {"n01"}


def test_an_index_that_changes_is_read_again_and_a_broken_one_keeps_the_last(
    monkeypatch, index: Path, caplog
):
    hosts_have(monkeypatch, {"n01": [app(name="WRF")]})
    chain = HPCInterferenceFilter()
    index.write_text("WRF,LU,1,1\nWRF,EP,0.5,1\n")
    assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1
    index.write_text("WRF,LU,1,1\nWRF,EP,fast,slow,1\n")
    for _ in range(3):
        assert names(run(states_of("leaf1"), asks(app_name="EP"), chain)) == LEAF1 - {"n01"}
    [error] = [found for found in caplog.records if found.levelname == "ERROR"]
    assert "index.csv:2: expected 4 columns" in error.getMessage()
    assert "the last good interference index stays in use" in error.getMessage()
    index.unlink()
    assert names(run(states_of("leaf1"), asks(app_name="EP"), chain)) == LEAF1 - {"n01"}


def test_an_index_that_was_read_while_it_was_copied_keeps_the_last(
    monkeypatch, index: Path, caplog
):
    hosts_have(monkeypatch, {"n01": [app(name="WRF")]})
    chain = HPCInterferenceFilter()
    index.write_text("")
    assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1 - {"n01"}
    assert [text for text in ours(caplog) if "found an empty file; the last good" in text]


def test_an_index_that_the_disk_does_not_give_is_asked_for_again(
    monkeypatch, index: Path, caplog, turned_clock
):
    hosts_have(monkeypatch, {"n01": [app(name="WRF")]})
    chain = HPCInterferenceFilter()
    index.write_text("WRF,EP,0.85,0.99\n")
    real = files.read_stream

    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "read_stream", fails)
    for _ in range(2):
        assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1 - {"n01"}
    assert len([text for text in ours(caplog) if "cannot be read: Input/output error" in text]) == 1
    monkeypatch.setattr(files, "read_stream", real)
    assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1 - {"n01"}
    turned_clock.turn(watched_file.AGAIN_AFTER)
    assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1


def test_a_file_that_only_has_another_mode_is_looked_at_again(index: Path):
    before = watched_file.fingerprint(str(index))
    for _ in range(1000):
        # The clock of some file systems ticks every few ms.
        index.chmod(0o640)
        if watched_file.fingerprint(str(index)) != before:
            return
        time.sleep(0.002)
    raise AssertionError("the same for two seconds")


def test_an_index_that_has_vanished_stops_a_second_start_too(monkeypatch, index: Path):
    hosts_have(monkeypatch, {})
    chain = HPCInterferenceFilter()
    index.unlink()
    assert names(run(states_of("leaf1"), asks(app_name="LU"), chain)) == LEAF1
    with pytest.raises(exceptions.InterferenceError, match="cannot be read"):
        HPCInterferenceFilter()


def test_an_index_that_is_missing_or_wrong_stops_the_start(index: Path):
    index.write_text("WRF,LU,0.5,0.5\nLU,WRF,0.6,0.5\n")
    with pytest.raises(exceptions.InterferenceError, match=r"index\.csv:2: .*on line 1"):
        HPCInterferenceFilter()
    CONF.set_override("interference_file", "/nowhere/index.csv", "hpc_sched")
    with pytest.raises(exceptions.InterferenceError, match=r"/nowhere/index\.csv: cannot be read"):
        HPCInterferenceFilter()


def test_an_application_that_the_index_does_not_know_passes_with_a_warning(
    monkeypatch, index: Path, caplog
):
    hosts_have(monkeypatch, {"n01": [app(name="WRF")]})
    assert names(run(states_of("leaf1"), asks(app_name="HPL"), HPCInterferenceFilter())) == LEAF1
    assert [text for text in ours(caplog) if "HPL is not in the interference index" in text]


# Refusals


def test_the_user_reads_why_no_host_is_left(monkeypatch):
    hosts_have(monkeypatch, {host: [app(score=90)] for host in LEAF1})
    request = asks("sync", cache_score="20")
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter(), HPCGroupFilter())
    refused = why_refused(states_of("leaf1"), request, *chain)
    assert "no host takes a VM of class sync and cache score 20 beside the VMs" in refused
    hosts_have(monkeypatch, {host: [app("extreme")] for host in LEAF1})
    refused = why_refused(states_of("leaf1"), asks(), *chain)
    # Not what others run.
    assert "no host takes a VM of class none beside the VMs that it has" in refused


@pytest.mark.parametrize(
    "chain",
    [
        (HPCDedicatedHostFilter, HPCInterferenceFilter, HPCGroupFilter),
        (HPCInterferenceFilter, HPCGroupFilter),
        (HPCInterferenceFilter,),
    ],
    ids=lambda chain: f"{len(chain)} filters",
)
def test_a_refusal_keeps_neither_request_nor_hosts_alive(monkeypatch, chain):
    kind = "extreme" if len(chain) > 1 else "sync"
    hosts_have(monkeypatch, {host: [app(kind, 200)] for host in LEAF1})
    request, states = asks("sync", cache_score="20"), states_of("leaf1")
    alive = [weakref.ref(request), weakref.ref(states[0])]
    enabled_ = [made.__name__ for made in chain]
    CONF.set_override("enabled_filters", enabled_, "filter_scheduler")
    filters = [made() for made in chain]
    with contextlib.suppress(exception.NoValidHost):
        assert run(states, request, *filters) == []
    del request, states
    gc.collect()
    assert [there() for there in alive] == [None, None]


def test_nothing_is_told_where_only_alternates_are_missing(monkeypatch, caplog):
    hosts_have(monkeypatch, {})
    request, states = asks("none", cache_score="60", count=2), states_of("leaf1")[:2]
    chain = HPCInterferenceFilter()
    for index in range(2):
        kept = run(states, request, chain, index=index)
        kept[0].consume_from_request(request)
    assert run(states, request, chain, index=1) == []
    assert not [text for text in ours(caplog) if "refused" in text]


def test_without_the_group_filter_behind_it_no_host_is_left(monkeypatch, caplog):
    CONF.set_override("enabled_filters", ["HPCDedicatedHostFilter"], "filter_scheduler")
    hosts_have(monkeypatch, {host: [app()] for host in LEAF1})
    request = asks("extreme")
    assert run(states_of("leaf1"), request, HPCDedicatedHostFilter()) == []
    assert [text for text in ours(caplog) if "refused: class extreme needs a host" in text]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"cache_score": "-1"}, "hpc:cache_score='-1': expected a decimal number >= 0"),
        ({"cache_score": "much"}, "hpc:cache_score='much': expected a decimal number >= 0"),
        ({"cache_score": "1e3"}, "hpc:cache_score='1e3': expected a decimal number >= 0"),
        ({"app_name": "a b"}, "hpc:app_name='a b': expected an application's name"),
        ({"app_class": "fast"}, "hpc:app_class='fast': expected one of extreme, sync"),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.parametrize("chain", [(), (HPCDedicatedHostFilter, HPCInterferenceFilter)])
def test_what_cannot_be_read_of_an_application_is_refused_with_its_reason(
    monkeypatch, said, reason: str, chain
):
    databases_say(monkeypatch)
    monkeypatch.setattr(
        "hpc_sched.nova_glue.read.instances.group_members.is_placed", lambda _uuid: False
    )
    for group in (None, "group"):
        request = spec(group=group, vcpus=1, extra_specs=wishing(**said))
        filters = [made() for made in (*chain, HPCGroupFilter)]
        assert reason in why_refused(states_of("leaf1"), request, *filters)


def test_a_vm_that_moves_is_not_held_fast_by_what_cannot_be_read(monkeypatch):
    hosts_have(monkeypatch, {}, HostInstances(at={}, is_move=True))
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter())
    assert names(run(states_of("leaf1"), asks(cache_score="-1"), *chain)) == LEAF1


def test_rebuilds_pass_untouched(monkeypatch):
    hosts_have(monkeypatch, {host: [app("extreme")] for host in LEAF1})
    request = spec(group=None, hints={"_nova_check_type": ["rebuild"]})
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter())
    assert names(run(states_of("leaf1"), request, *chain)) == LEAF1


# What is not known


def test_hosts_of_a_cell_that_does_not_answer_are_as_the_scheduler_knows_them(monkeypatch):
    silent = HostInstances(at={}, down_cells=frozenset([uuids.cell1]))
    hosts_have(monkeypatch, {}, silent)
    states = states_of("leaf1")
    states[0].num_instances = 1
    states[1].cell_uuid = uuids.cell2
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter())
    assert names(run(states, asks("extreme"), *chain)) == {"n02"}
    assert names(run(states, asks("sync"), *chain)) == LEAF1
    hosts_have(monkeypatch, {}, dataclasses.replace(silent, is_move=True))
    assert names(run(states, asks("extreme"), *chain)) == LEAF1 - {"n01"}


def in_a_silent_cell(monkeypatch, known: dict[str, list[Application]], **said: object):
    """Return leaf1, two VMs on each host; what the databases say was read before."""
    hosts_have(monkeypatch, known, HostInstances(at={}, down_cells={uuids.cell1}, **said))
    states = states_of("leaf1")
    for state in states:
        state.num_instances = 2
    return states


def test_what_was_read_of_a_cell_that_does_not_answer_goes_on_to_count(monkeypatch):
    known = {"n01": [app("extreme"), app("extreme")], "n02": [app(score=95), app()]}
    states = in_a_silent_cell(monkeypatch, known)
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter())
    assert names(run(states, asks(cache_score="10"), *chain)) == {"n03", "n04"}


@pytest.mark.parametrize(
    ("option", "app_class", "kept"),
    [
        ("closed_for_extreme", "none", LEAF1),
        ("closed_for_extreme", "extreme", set()),
        ("closed", "none", {"n01", "n04"}),
        ("closed", "async", {"n01", "n04"}),
        ("closed", "extreme", set()),
        ("open", "none", LEAF1),
        ("open", "extreme", {"n04"}),
    ],
)
def test_an_option_says_whether_hosts_with_unknown_vms_are_closed(
    monkeypatch, option: str, app_class: str, kept: set[str]
):
    """All VMs are known on n01, one on n02, none on n03; n04 has none."""
    CONF.set_override("unknown_instances", option, "hpc_sched")
    databases_say(monkeypatch)
    states = in_a_silent_cell(monkeypatch, {"n01": [app(), app()], "n02": [app()]})
    states[3].num_instances = 0
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter(), HPCGroupFilter())
    if kept:
        assert names(run(states, asks(app_class), *chain)) == kept
    else:
        why_refused(states, asks(app_class), *chain)


def test_what_a_vm_runs_is_known_on_the_host_where_nova_has_it_now(monkeypatch):
    states = in_a_silent_cell(monkeypatch, {"n01": [app("extreme"), app("extreme")]})
    states[2].instances = {"n01-vm1": None, "new": None}
    assert names(run(states, asks(), HPCDedicatedHostFilter())) == {"n02", "n04"}
    CONF.set_override("unknown_instances", "closed", "hpc_sched")
    states = in_a_silent_cell(monkeypatch, {host: [app(), app()] for host in LEAF1})
    states[1].instances = {"n01-vm0": None, "n01-vm1": None}
    states[2].instances = {"new": None}
    assert names(run(states, asks(), HPCDedicatedHostFilter())) == LEAF1 - {"n03"}


def test_a_vm_that_moves_is_no_unknown_vm_on_its_own_host(monkeypatch):
    """It runs on n01 alone; n02 has one VM that is not known."""
    CONF.set_override("unknown_instances", "closed", "hpc_sched")
    states = in_a_silent_cell(monkeypatch, {}, is_move=True)
    request = asks("extreme")
    for state, there in zip(states, ([request.instance_uuid], ["other"], [], []), strict=True):
        state.instances, state.num_instances = dict.fromkeys(there), len(there)
    assert names(run(states, request, HPCDedicatedHostFilter())) == LEAF1 - {"n02"}


def test_no_move_is_refused_because_vms_are_not_known(monkeypatch):
    CONF.set_override("unknown_instances", "closed", "hpc_sched")
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter())
    for app_class in ("none", "extreme"):
        states = in_a_silent_cell(monkeypatch, {}, is_move=True)
        assert names(run(states, asks(app_class), *chain)) == LEAF1
    # What is known keeps it away all the same.
    states = in_a_silent_cell(monkeypatch, {"n01": [app()]}, is_move=True)
    assert names(run(states, asks("extreme"), *chain)) == LEAF1 - {"n01"}


def test_without_the_databases_extreme_waits_unless_it_moves(monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("no database")

    monkeypatch.setattr(colocated_instances.reads, "ask", broken)
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter(), HPCGroupFilter())
    request = asks("extreme")
    assert "try again later" in why_refused(states_of("leaf1"), request, *chain)
    assert names(run(states_of("leaf1"), asks("sync"), *chain)) == LEAF1
    states = states_of("leaf1")
    states[0].instances = {request.instance_uuid: None}
    states[1].num_instances = 1
    moved = asks("extreme")
    assert names(run(states, moved, *chain[:2])) == LEAF1 - {"n02"}


def test_extreme_waits_while_vms_on_their_way_are_unknown_unless_it_moves(monkeypatch):
    unknown = {"at": {}, "in_flight_unknown": "Placement: ConnectFailure"}
    hosts_have(monkeypatch, {}, HostInstances(**unknown))
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter(), HPCGroupFilter())
    refused = why_refused(states_of("leaf1"), asks("extreme"), *chain)
    assert "not known at the moment; try again later" in refused
    assert "Placement" not in refused
    # What can never be is said first.
    refused = why_refused(states_of("leaf1"), asks("extreme", cache_score="-1"), *chain)
    assert "expected a decimal number" in refused
    assert names(run(states_of("leaf1"), asks("sync"), *chain)) == LEAF1
    hosts_have(monkeypatch, {}, HostInstances(is_move=True, **unknown))
    assert names(run(states_of("leaf1"), asks("extreme"), *chain[:2])) == LEAF1


def test_an_error_of_ours_lets_pass_whom_nothing_was_promised(monkeypatch, caplog):
    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(colocated_instances, "read", broken)
    chain = (HPCDedicatedHostFilter(), HPCInterferenceFilter())
    assert names(run(states_of("leaf1"), asks("sync"), *chain)) == LEAF1
    assert run(states_of("leaf1"), asks("extreme"), *chain) == []
    assert "HPCDedicatedHostFilter failed" in ours(caplog)


# MDOBP


@pytest.fixture
def by_mdobp() -> None:
    path = "hpc_sched.weighers"
    CONF.set_override(
        "weight_classes",
        [f"{path}.hop_byte.HopByteWeigher", f"{path}.mdobp.MDOBPWeigher"],
        "filter_scheduler",
    )


def vms(host: str, *sizes: tuple[int, int]) -> dict[tuple[str, str], list[PlacedInstance]]:
    return {
        (host, host): [
            PlacedInstance(f"{host}-{i}", host, host, None, 1, cpu, memory, 0)
            for i, (cpu, memory) in enumerate(sizes)
        ]
    }


def test_mdobp_reads_the_index_when_it_is_made(tmp_path):
    CONF.set_override("interference_file", str(tmp_path / "index.csv"), "hpc_sched")
    with pytest.raises(exceptions.InterferenceError, match=r"index\.csv: cannot be read"):
        MDOBPWeigher()


@pytest.mark.usefixtures("by_mdobp")
def test_in_a_leaf_the_host_with_the_smallest_angle_is_preferred(monkeypatch):
    databases_say(monkeypatch, queue=queue_of(1))
    at = vms("n02", (8, 4096)) | vms("n03", (2, 32768))
    hosts_have(monkeypatch, {}, HostInstances(at=at))
    states = states_of("leaf1")
    for state, used in ((states[1], (8, 4096)), (states[2], (2, 32768))):
        state.vcpus_used, state.free_ram_mb = used[0], state.free_ram_mb - used[1]
    # Processors for little memory: n03 has those.
    request = spec(
        group_policy="affinity", group="g", vcpus=1, extra_specs=wishing(app_class="sync")
    )
    request.flavor.memory_mb = 512
    assert weigh(MDOBPWeigher(), states, request)[0] == "n03"


@pytest.mark.usefixtures("by_mdobp")
def test_vms_that_a_host_does_not_report_yet_are_taken_off_what_is_free(monkeypatch):
    """n01 and n02 have the same VM; only n02 has reported it."""
    databases_say(monkeypatch, queue=queue_of(1))
    there = vms("n01", (4, 32768)) | vms("n02", (4, 32768))
    [coming] = there["n01", "n01"]
    there["n01", "n01"] = [coming._replace(in_flight=True)]
    hosts_have(monkeypatch, {}, HostInstances(at=there))
    states = states_of("leaf1")[:2]
    states[1].vcpus_used, states[1].free_ram_mb = 4, 32768
    request = asks("sync", group="group")
    weighed = [weights.WeighedHost(state, 0) for state in states]
    # Equal but for their names.
    assert MDOBPWeigher().weigh_objects(weighed, request) == [0.05, 0.0]
    state = served(request, states)
    found = state.group.request().problem().packing
    rows = state.group.inputs.host_index
    assert found.free[rows].tolist() == [[12, 32768], [12, 32768]]
    assert found.usable[rows].tolist() == [[16, 65536], [16, 65536]]


@pytest.mark.usefixtures("by_mdobp")
def test_the_topology_weigher_gives_all_hosts_of_a_leaf_one_weight(monkeypatch):
    databases_say(monkeypatch, queue=queue_of(4), left=4)
    request = asks("sync", group="group", count=4)
    states = states_of("leaf1", "leaf2")
    weighed = [weights.WeighedHost(state, 0) for state in states]
    found = HopByteWeigher().weigh_objects(weighed, request)
    assert len(set(found[:4])) == len(set(found[4:])) == 1
    assert found[0] != found[4]


@pytest.mark.usefixtures("by_mdobp")
@pytest.mark.parametrize("app_class", ["extreme", "none"])
def test_mdobp_leaves_dedicated_hosts_and_others_alone(monkeypatch, app_class: str):
    databases_say(monkeypatch, queue=queue_of(1))
    weighed = [weights.WeighedHost(state, 0) for state in states_of("leaf1")]
    request = asks(app_class, group="group")
    assert MDOBPWeigher().weigh_objects(weighed, request) == []


@pytest.mark.usefixtures("by_mdobp")
@pytest.mark.parametrize("losing", [(), (0,), (3, 4)], ids=["no claim is lost", "one", "two"])
@pytest.mark.parametrize("app_class", ["sync", "async"])
def test_soft_anti_affinity_takes_a_host_for_each_vm_where_mdobp_chooses(
    monkeypatch, app_class: str, losing: tuple[int, ...]
):
    """Ten VMs on twelve hosts, also where a leaf has no other host left than those in use."""
    queue = queue_of(10)
    databases_say(monkeypatch, members={("n01", "n01"): 1}, queue=queue, left=10)
    request = spec(count=10, vcpus=4, uuid=queue[0], extra_specs=wishing(app_class=app_class))
    states, handler = states_of("leaf1", "leaf2", "leaf3", "leaf4"), weights.HostWeightHandler()
    chain = [HPCHomogeneityFilter(), HPCGroupFilter(), HPCRackCapacityFilter()]
    placed: list[str] = []
    lost: set[str] = set()
    for index, uuid in enumerate(queue):
        request.instance_uuid = uuid
        states = run(states, request, *chain, index=index)
        weighers = [HopByteWeigher(), MDOBPWeigher()]
        weighed = handler.get_weighed_objects(weighers, states, request)
        order = [host.obj.nodename for host in weighed]
        if index in losing:
            lost.add(order[0])
        placed.append(place(states, order, request, lose=lost))
    assert len({*placed, "n01"}) == 11


@pytest.mark.usefixtures("by_mdobp")
def test_async_vms_are_consolidated_wherever_the_hosts_are(monkeypatch):
    databases_say(monkeypatch, queue=queue_of(20), left=20)
    request = spec(
        group="group",
        group_policy="affinity-less",
        count=20,
        vcpus=4,
        extra_specs=wishing(app_class="async"),
    )
    request.flavor.memory_mb = 16384
    placed, _ = schedule(states_of("leaf1", "leaf5"), request, queue_of(20), MDOBPWeigher())
    assert placed == [host for host in ("n01", "n02", "n03", "n04", "n17") for _ in range(4)]
