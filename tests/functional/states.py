"""Real HostStates and RequestSpecs without a cloud, taken through filters and weighers."""

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import nova.conf
import pytest
from nova import exception, objects
from nova.scheduler import filters, host_manager, weights
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched import conf
from hpc_sched.core.logged.decision_summary import LANDED
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import claim_followup
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.io import allocations, loaded_topology, placement
from hpc_sched.nova_glue.io.allocations import Answer, Written
from hpc_sched.nova_glue.phases import Call, ServedGroup
from hpc_sched.nova_glue.read.hold import NO_HOLDS
from hpc_sched.nova_glue.read.instances import colocated_instances, group_members, request_instances
from hpc_sched.nova_glue.read.instances.host_instances import HostInstances
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.record import landed_record

CONF = nova.conf.CONF

FILTERS = (HPCHomogeneityFilter, HPCGroupFilter, HPCRackCapacityFilter)

States = list[host_manager.HostState]

objects.register_all()


@contextmanager
def configured(topology: Path) -> Iterator[None]:
    """Read a fabric; undo afterwards what a test has set of our options and of Nova's."""
    conf.register_opts(CONF)
    CONF([], default_config_files=[])
    CONF.set_override("topology_file", str(topology), "hpc_sched")
    # Nothing in the background: a test that changes the file says when it is read.
    CONF.set_override("topology_reload_interval", 0, "hpc_sched")
    # There is no Placement: nothing is held.
    CONF.set_override("follower_hold_time", 0, "hpc_sched")
    loaded_topology.load()
    try:
        yield
    finally:
        CONF.clear()
        for opt in conf.OPTS:
            CONF.clear_override(opt.dest, group="hpc_sched")
        CONF.clear_override("host_subset_size", group="filter_scheduler")
        CONF.clear_override("enabled_filters", group="filter_scheduler")
        CONF.clear_override("weight_classes", group="filter_scheduler")
        CONF.clear_override("max_attempts", group="scheduler")


def host_state(host: str, node: str | None = None, **fields: object) -> host_manager.HostState:
    """Return an empty host of 16 processors."""
    state = host_manager.HostState(host, node or host, uuids.cell1)
    state.uuid = getattr(uuids, node or host)
    state.vcpus_total, state.total_usable_ram_mb, state.total_usable_disk_gb = 16, 65536, 1000
    state.free_ram_mb = 65536
    state.cpu_allocation_ratio = state.ram_allocation_ratio = state.disk_allocation_ratio = 1.0
    for name, value in fields.items():
        setattr(state, name, value)
    return state


def spec(
    *,
    group: str | None = "group",
    group_policy: str = "soft-anti-affinity",
    rules: dict[str, str] | None = None,
    count: int = 1,
    vcpus: int = 16,
    extra_specs: dict[str, str] | None = None,
    hints: dict[str, list[str]] | None = None,
    uuid: str = uuids.instance,
) -> objects.RequestSpec:
    """Return a request whose VMs fill a host each, for the VMs of a server group or for none."""
    flavor = objects.Flavor(
        vcpus=vcpus,
        memory_mb=1024,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        extra_specs=extra_specs or {},
    )
    made = objects.RequestSpec(
        flavor=flavor,
        num_instances=count,
        instance_uuid=uuid,
        scheduler_hints=hints or {},
        instance_group=None,
        is_bfv=False,
        image=None,
        requested_resources=[],
        pci_requests=None,
        numa_topology=None,
        project_id="project",
        user_id="user",
    )
    if group:
        made.instance_group = objects.InstanceGroup(
            uuid=getattr(uuids, group), policy=group_policy, rules=rules or {}, members=[], hosts=[]
        )
    return made


def wishing(**constraints: object) -> dict[str, str]:
    """Return wishes as extra specs of a flavor."""
    return {f"hpc:{name}": str(value) for name, value in constraints.items()}


def as_hints(**constraints: object) -> dict[str, list[str]]:
    """Return wishes as scheduler hints, in the form in which the API hands them on."""
    return {f"hpc:{name}": [str(value)] for name, value in constraints.items()}


def queue_of(count: int) -> list[str]:
    return [getattr(uuids, f"vm{number:03}") for number in range(count)]


def databases_say(
    monkeypatch: pytest.MonkeyPatch,
    *,
    members: Mapping[tuple[str, str | None], int] | None = None,
    queue: Sequence[str] = (),
    left: int = 1,
    is_move: bool = False,
    problems: Sequence[str] = (),
    is_partial: bool = False,
    orphans: int = 0,
    youngest: tuple[str, str | None] | None = None,
) -> None:
    """Set what the databases say of the group, the edge that has no server here."""
    read = group_members.GroupMembership(
        members=Counter(dict(members or {})),
        queue=tuple(queue),
        left=left,
        is_move=is_move,
        problems=tuple(problems),
        is_partial=is_partial,
        orphans=orphans,
        youngest=youngest,
    )
    monkeypatch.setattr(group_members, "read", lambda *_, **_said: read)
    # Without build requests nothing is claimed ahead of Nova.
    monkeypatch.setattr(request_instances, "read", lambda *_: {})
    # Nor is there a Placement: HostStates have the last word, and nothing is held.
    monkeypatch.setattr(store, "read", lambda: NO_HOLDS)
    monkeypatch.setattr(placement, "_read", lambda *_: placement.ProviderStocks())
    hosts_have(monkeypatch, {})


def claims_succeed(monkeypatch: pytest.MonkeyPatch, own: Sequence[str]) -> None:
    """Let Placement accept the gang claim of a request, the edge that has no server here.

    :param own: the VMs of the request
    """
    CONF.set_override(
        "weight_classes", ["hpc_sched.weighers.hop_byte.HopByteWeigher"], "filter_scheduler"
    )
    monkeypatch.setattr(request_instances, "read", lambda *_: dict(enumerate(own)))
    monkeypatch.setattr(request_instances, "are_others_placed", lambda *_: False)
    monkeypatch.setattr(allocations, "write", lambda *_: Written(Answer.DONE))
    monkeypatch.setattr(claim_followup, "follow", lambda *_: None)


def offered(states: States) -> States:
    """Give hosts an allocation candidate each, without amounts."""
    for state in states:
        state.allocation_candidates = [{"allocations": {}, "mappings": {}}]
    return states


def hosts_have(
    monkeypatch: pytest.MonkeyPatch,
    running: Mapping[str, Sequence[Application]],
    occupancy: HostInstances | None = None,
) -> None:
    """Set what the databases say of the VMs on the hosts, the edge that has no server here."""
    found = occupancy or HostInstances(at={})
    at = {place: list(there) for place, there in found.at.items()}
    for host, applications in running.items():
        at.setdefault((host, host), []).extend(
            PlacedInstance(f"{host}-vm{i}", host, host, None, 1, 0, 0, 0, application=application)
            for i, application in enumerate(applications)
        )
    there = dataclasses.replace(found, at=at)
    monkeypatch.setattr(colocated_instances, "read_hosts", lambda *_: there)


def run(states: States, request: objects.RequestSpec, *chain: GroupFilter, index: int = 0):
    """Filter as Nova's scheduler does for the VM of this number."""
    handler = filters.HostFilterHandler()
    return handler.get_filtered_objects(list(chain), states, request, index)


def served(request: objects.RequestSpec, states: Sequence[host_manager.HostState]) -> ServedGroup:
    """Return the group of a request, read as at a call of Nova."""
    session = served_requests.session_of(request)
    found = session._read(Call("test", request, list(states)))
    assert found is not None
    return found


def known(request: objects.RequestSpec) -> ServedGroup:
    """Return the group of a request that Nova has called for."""
    found = served_requests.session_of(request).served
    assert found is not None
    return found


def preferred(states: States, request: objects.RequestSpec) -> set[str]:
    """Return the hosts that HPCHomogeneityFilter puts first; all pass, in their order."""
    weighers = ["hpc_sched.weighers.hop_byte.HopByteWeigher"]
    CONF.set_override("weight_classes", weighers, "filter_scheduler")
    assert run(states, request, HPCHomogeneityFilter()) == states
    mask = served(request, states).group.request().preferred
    return {one.nodename for i, one in enumerate(states) if mask is None or mask[i]}


def why_refused(states: States, request: objects.RequestSpec, *chain: GroupFilter) -> str:
    """Return what the tenant reads of a request that HPCGroupFilter refuses."""
    with pytest.raises(exception.NoValidHost) as refused:
        run(states, request, *(chain or [HPCGroupFilter()]))
    return str(refused.value)


def weigh(
    weigher: weights.BaseHostWeigher,
    states: Sequence[host_manager.HostState],
    request: objects.RequestSpec,
) -> list[str]:
    """Weigh as Nova's handler does with this weigher alone; return the hosts, best first."""
    handler = weights.HostWeightHandler()
    weighed = handler.get_weighed_objects([weigher], states, request)
    return [host.obj.nodename for host in weighed]


def place(
    states: Sequence[host_manager.HostState],
    order: Sequence[str],
    request: objects.RequestSpec,
    lose: Collection[str] = frozenset(),
) -> str:
    """Claim the first host that does not lose, as Nova's scheduler goes down its list."""
    by_name = {state.nodename: state for state in states}
    taken = next(name for name in order if name not in lose)
    by_name[taken].consume_from_request(request)
    return taken


def schedule(
    states: States,
    request: objects.RequestSpec,
    queue: Sequence[str],
    weigher: weights.BaseHostWeigher,
    chain: Sequence[GroupFilter] = (),
    losing: Sequence[int] = (),
) -> tuple[list[str], list[str]]:
    """Place the VMs of a request in turn; return their hosts and the hosts that lost a claim.

    :param losing: numbers of the VMs whose first choice somebody else has just taken
    """
    _, placed, lost = begin(states, request, queue, weigher, chain, losing)
    return placed, lost


def begin(
    states: States,
    request: objects.RequestSpec,
    queue: Sequence[str],
    weigher: weights.BaseHostWeigher,
    chain: Sequence[GroupFilter] = (),
    losing: Sequence[int] = (),
) -> tuple[States, list[str], list[str]]:
    """Place VMs as :func:`schedule` does; return the hosts that are left for the next one too."""
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
    return kept, placed, lost


def read_decisions(path: Path) -> list[dict]:
    """Return the decisions of a decision log, each one JSON object."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in found if record.get("decision") != LANDED]


def read_landings(path: Path, number: int = 1) -> list[dict]:
    """Return where the VMs of requests landed, once there are so many of these lines."""
    for _ in range(200):
        with mock.patch.object(landed_record, "QUIET", 0.0):
            landed_record.write_all()
        found = [json.loads(line) for line in path.read_text().splitlines()]
        found = [record for record in found if record.get("decision") == LANDED]
        if len(found) >= number:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{len(found)} landings are logged, expected {number}")


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what this package has logged; Nova speaks too where a cloud has set it to DEBUG."""
    return [found.getMessage() for found in caplog.records if found.name.startswith("hpc_sched")]
