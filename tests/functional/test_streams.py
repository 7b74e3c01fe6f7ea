"""Seeded streams of arrivals and departures: what Nova holds afterwards breaks no rule.

Nova's scheduler, its host manager, databases and Placement are real; hosts and VMs are rows.
A VM that has been scheduled reaches its host some events later, as on a busy cloud.

::

                      core
           /           |           \\
        leaf1        leaf2        leaf3       leaf2 is in an aggregate with limits of its own
        n01-n06      n07-n12      n13-n18
"""

import dataclasses
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from nova import context as nova_context
from nova import exception, objects

from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.filters.colocation import ColocationFilter
from hpc_sched.nova_glue import configured_plugins
from tests.functional import rows, rules
from tests.functional.claims import ClaimsOnly, hosts_of, request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import sample_options, sharing_options
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import ours
from tests.functional.tested_cloud import TestedCloud
from tests.functional.workload import APART, APPLICATIONS, INDEX

LEAVES = {
    f"leaf{leaf}": [f"n{6 * (leaf - 1) + number:02}" for number in range(1, 7)]
    for leaf in (1, 2, 3)
}
HOSTS = [host for below in LEAVES.values() for host in below]
LIMITS = dict.fromkeys(HOSTS, (100.0, 60.0)) | dict.fromkeys(LEAVES["leaf2"], (50.5, 30.0))

TOLERANCE = 0.1
EVENTS = 400  # requests and deletions of what one request made


@dataclass
class Stream:
    """What a stream has sent, and what is still to happen to it."""

    jobs: dict[str, list[str]] = field(default_factory=dict)  # reservation id to VMs
    host_of: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)  # vcpus, memory
    on_their_way: list[str] = field(default_factory=list)
    groups: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # that may grow
    seen: Counter[str] = field(default_factory=Counter)
    moved: int = 0  # VMs that have come or gone
    fullest: float = 0.0  # the largest share of a limit that was ever used
    together: int = 0  # the most applications on one host


@pytest.fixture(scope="module")
def nova(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClaimsOnly]:
    folder = tmp_path_factory.mktemp("conf")
    index = folder / "index.csv"
    index.write_text(INDEX)
    ours = {
        "cache_score_limit": 100.0,
        "sync_cache_score_limit": 60.0,
        "interference_file": str(index),
        "interference_tolerance": TOLERANCE,
        # A machine that stalls must not make a cell one that does not answer.
        "cell_timeout": 600,
        "in_flight_lookups": 1000,
    }
    cloud = cloud_of_module
    claims = ClaimsOnly(cloud)
    claims.add_hosts(dict.fromkeys(HOSTS, 0))
    aggregate = cloud.api.post_aggregate({"aggregate": {"name": "strict"}})
    for host in LEAVES["leaf2"]:
        cloud.api.add_host_to_aggregate(aggregate["id"], host)
    strict = {"cache_score_limit": "50.5", "sync_cache_score_limit": "30"}
    cloud.api.post_aggregate_action(aggregate["id"], {"set_metadata": {"metadata": strict}})
    # Aggregates are read when a scheduler starts.
    claims.start_scheduler(sample_options(folder, LEAVES) | sharing_options(folder, **ours))
    yield claims
    for host in LEAVES["leaf2"]:
        cloud.api.remove_host_from_aggregate(aggregate["id"], host)
    cloud.api.delete_aggregate(aggregate["id"])
    claims.remove()


@pytest.fixture(autouse=True)
def emptied(nova: ClaimsOnly) -> Iterator[None]:
    yield
    nova.release()
    rows.clear(nova.cloud)
    for host in HOSTS:
        rows.set_usage(nova.cloud, host, vcpus=0, memory_mb=0, vms=0)


def arrive(nova: ClaimsOnly, stream: Stream, dice: random.Random) -> list[str]:
    """Send a request and write down what Nova would; return the hosts that it got."""
    cloud, said, group = nova.cloud, dice.choice(APPLICATIONS), None
    count = dice.choice((1, 1, 1, 2, 3, 4, 8))
    uuids = [uuid_by(dice) for _ in range(count)]
    if stream.groups and dice.random() < 0.2:
        group, said = dice.choice(stream.groups)
    elif dice.random() < 0.4:
        group = uuid_by(dice)
        made = objects.InstanceGroup(
            nova.context,
            uuid=group,
            name="job",
            user_id="user",
            project_id="project",
            policy="soft-anti-affinity",
        )
        made.create()
        stream.groups.append((group, said))
    vcpus, memory = dice.choice(((1, 2048), (2, 2048), (4, 16384)))
    shape = {"vcpus": vcpus, "memory_mb": memory, "extra_specs": said, "group": group}
    try:
        spec = request(count=count, policy="soft-anti-affinity", uuid=uuids[0], **shape)
        placed = nova.place(spec, uuids=uuids)
    except exception.NoValidHost:
        stream.seen["refused"] += 1
        # A refusal leaves nothing behind.
        for uuid in uuids:
            assert not cloud._get_allocations_by_server_uuid(uuid)
        return []
    hosts, job = hosts_of(placed), f"r-{stream.moved}"
    rows.add_vms(cloud, [None] * count, uuids=uuids, siblings=count, reservation_id=job, **shape)
    if group:
        objects.InstanceGroup.add_members(nova.context, group, uuids)
    stream.jobs[job] = uuids
    stream.moved += count
    stream.host_of.update(zip(uuids, hosts, strict=True))
    stream.sizes.update(dict.fromkeys(uuids, (vcpus, memory)))
    stream.on_their_way += uuids
    stream.seen[said.get("hpc:app_class", "nothing")] += 1
    return hosts


def uuid_by(dice: random.Random) -> str:
    """Return a uuid of the stream's own: uuids break ties between equal plans."""
    return str(UUID(int=dice.getrandbits(128), version=4))


def depart(nova: ClaimsOnly, stream: Stream, dice: random.Random) -> None:
    """Delete the VMs of a request, some of which may not have reached their host."""
    job = dice.choice(list(stream.jobs))
    uuids = stream.jobs.pop(job)
    stream.moved += len(uuids)
    rows.delete(nova.cloud, uuids)
    for uuid in uuids:
        nova.cloud.placement.delete(f"/allocations/{uuid}", version="1.28")
    hosts = {stream.host_of.pop(uuid) for uuid in uuids}
    stream.on_their_way = [uuid for uuid in stream.on_their_way if uuid in stream.host_of]
    report(nova, stream, hosts)


def land(nova: ClaimsOnly, stream: Stream, dice: random.Random) -> None:
    """Let half of the VMs that are on their way reach their hosts."""
    landing = [uuid for uuid in stream.on_their_way if dice.random() < 0.5]
    for uuid in landing:
        rows.land(nova.cloud, uuid, stream.host_of[uuid])
    stream.on_their_way = [uuid for uuid in stream.on_their_way if uuid not in set(landing)]
    report(nova, stream, {stream.host_of[uuid] for uuid in landing})


def report(nova: ClaimsOnly, stream: Stream, hosts: set[str]) -> None:
    """Report what is in use on hosts, as their computes do."""
    there = defaultdict(list)
    waiting = set(stream.on_their_way)
    for uuid, host in stream.host_of.items():
        if uuid not in waiting:
            there[host].append(stream.sizes[uuid])
    for host in sorted(hosts):
        rows.set_usage(
            nova.cloud,
            host,
            vcpus=sum(vcpus for vcpus, _ in there[host]),
            memory_mb=sum(memory for _, memory in there[host]),
            vms=len(there[host]),
        )


def on_hosts(
    nova: ClaimsOnly, stream: Stream, hosts: set[str] | None
) -> dict[str, list[rules.Running]]:
    """Return the VMs of some hosts, or of all, as Placement and Nova's objects tell them."""
    allocated = {
        uuid: host
        for host in hosts or HOSTS
        for uuid in nova.cloud._get_allocations_by_provider_uuid(nova.provider_of[host])
    }
    groups = {
        member: group.uuid
        for group in objects.InstanceGroupList.get_all(nova.context)
        for member in group.members
    }
    found: dict[str, list[rules.Running]] = defaultdict(list)
    with nova_context.target_cell(nova.context, nova.cloud.cell_mappings["cell1"]) as in_cell:
        wanted = {"uuid": sorted(allocated), "deleted": False}
        instances = objects.InstanceList.get_by_filters(in_cell, wanted, expected_attrs=["flavor"])
    assert {instance.uuid for instance in instances} == allocated.keys()
    for instance in instances:
        assert instance.host in (None, allocated[instance.uuid])
        group = groups.get(instance.uuid, instance.reservation_id)
        specs = instance.flavor.extra_specs
        vm = rules.running(instance.uuid, specs, group, instance.uuid in groups)
        found[allocated[instance.uuid]].append(vm)
    return found


def check(nova: ClaimsOnly, stream: Stream, hosts: set[str] | None = None) -> list[str]:
    """Return the rules that hosts break, and note how near they came to it."""
    found = []
    for host, vms in sorted(on_hosts(nova, stream, hosts).items()):
        alpha, beta = LIMITS[host]
        found += [f"{host}: {rule}" for rule in rules.broken(vms, alpha, beta, APART)]
        if not any(vm.app_class == "extreme" for vm in vms):
            limit = beta if any(vm.app_class == "sync" for vm in vms) else alpha
            used = float(sum(vm.score for vm in vms)) / limit
            stream.fullest = max(stream.fullest, used)
            stream.together = max(stream.together, len({vm.name for vm in vms}))
    return found


def run(nova: ClaimsOnly, seed: int, events: int) -> tuple[Stream, list[str]]:
    """Send a stream; return what it was like and the rules that were broken, at once each."""
    dice, stream, broken = random.Random(seed), Stream(), []
    for number in range(events):
        # Full times and quiet ones follow each other.
        if not stream.jobs or dice.random() < (0.65 if number % 200 < 130 else 0.3):
            hosts = arrive(nova, stream, dice)
            broken += check(nova, stream, set(hosts)) if hosts else []
        else:
            depart(nova, stream, dice)
        if dice.random() < 0.4:
            land(nova, stream, dice)
        if number % 50 == 0:
            broken += check(nova, stream)
    return stream, broken


pytestmark = [
    cloud_mark(EMPTY),
    pytest.mark.nightly("streams", "hundreds of requests, every rule checked after each"),
]


@pytest.mark.parametrize("seed", range(2))
def test_no_host_breaks_a_limit_or_meets_bad_company_or_joins_extreme(nova, seed, caplog):
    stream, broken = run(nova, seed, EVENTS)
    assert broken == []
    assert not [text for text in ours(caplog) if "not all VMs on the hosts are known" in text]
    # The stream was one that could break them.
    assert stream.moved > 2 * EVENTS
    assert stream.seen["refused"] > EVENTS / 50
    assert all(stream.seen[kind] >= 5 for kind in ("extreme", "sync", "async", "none", "nothing"))
    assert stream.fullest > 0.95
    assert stream.together > 2


def test_without_the_filters_the_same_stream_breaks_every_rule(nova, monkeypatch):
    """What shows that the check can fail."""
    ours = (DEDICATED_FILTER, INTERFERENCE_FILTER)
    host_manager = nova.scheduler.host_manager
    others = [one for one in host_manager.enabled_filters if not isinstance(one, ColocationFilter)]
    assert len(others) == len(host_manager.enabled_filters) - len(ours)
    monkeypatch.setattr(host_manager, "enabled_filters", others)
    # The plan of a group minds neighbours too where the filters are enabled.
    plugins = configured_plugins.enabled()
    kept = tuple(name for name in plugins.filters if name not in ours)
    without = dataclasses.replace(plugins, filters=kept)
    monkeypatch.setattr(configured_plugins, "enabled", lambda: without)
    # Which host stock Nova takes among equal ones differs from run to run: long enough for all.
    _, broken = run(nova, 0, EVENTS // 2)
    assert {rule.split(": ")[1] for rule in broken} == {
        "alpha",
        "beta",
        "beside extreme",
        "forbidden pair",
    }
