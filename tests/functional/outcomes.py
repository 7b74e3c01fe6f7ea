"""Requests of groups while something is at fault, and what became of each."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nova import exception, objects
from oslo_utils import uuidutils

from hpc_sched import clock
from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue import served_requests
from tests.functional import faults, provider_rows, rows
from tests.functional.claims import VCPUS, ClaimsOnly, claims_on, hosts_of, request
from tests.functional.clouds import sample_options, sharing_options
from tests.functional.states import wishing
from tests.functional.tested_cloud import BUSY_MACHINE
from tests.turned_clock import started

# Seconds after which concurrent requests are taken for hanging.
HANGS = 600.0


@contextmanager
def claims_for(
    cloud: NovaCloud,
    folder: Path,
    leaves: Mapping[str, list[str]],
    *,
    cell_timeout: int = BUSY_MACHINE,
    without: str | None = None,
) -> Iterator[ClaimsOnly]:
    """Yield the hosts of leaves in cell1 with a scheduler for hosts that applications share.

    VMs are placed, not built. Afterwards the hosts are removed, and all VMs that are rows.

    :param without: a filter that is not enabled
    """
    ours = {"cell_timeout": cell_timeout}
    options = sample_options(folder, leaves) | sharing_options(folder, **ours)
    filters = ("filter_scheduler", "enabled_filters")
    options[filters] = [name for name in options[filters] if name != without]
    hosts = dict.fromkeys([host for below in leaves.values() for host in below], 0)
    faults.forget()
    before = cloud.scheduler.manager
    with claims_on(cloud, hosts, options=options) as claims:
        # The faults reset that of the cloud: another one would open a moved cell where it was.
        cloud.scheduler.manager = claims.scheduler
        yield claims
        cloud.scheduler.manager = before
        for name in cloud.cell_mappings:
            rows.clear(cloud, name)
    faults.forget()


def group_request(
    group: str | None, count: int = 2, *, vcpus: int = VCPUS, **constraints: object
) -> tuple[objects.RequestSpec, list[str]]:
    """Return a request of a group and the uuids of its VMs."""
    uuids = [uuidutils.generate_uuid() for _ in range(count)]
    spec = request(
        count=count,
        vcpus=vcpus,
        group=group,
        policy="soft-anti-affinity",
        extra_specs=wishing(app_class="sync", **constraints),
        uuid=uuids[0],
    )
    return spec, uuids


@dataclass(frozen=True)
class Outcome:
    """What became of one request."""

    uuids: list[str]  # of its VMs
    hosts: list[str]  # in their order; none where the request was refused
    refused: str | None
    seconds: float  # by the plugin's clock, which a test may turn
    waited: float  # seconds of these for the plugin's reads


def outcome_of(claims: ClaimsOnly, spec: objects.RequestSpec, uuids: Sequence[str]) -> Outcome:
    """Have a request placed or refused; anything else that is raised is a fault of ours."""
    began = clock.current.monotonic()
    try:
        placed = claims.place(spec, uuids=uuids)
    except exception.NoValidHost as no:
        hosts, refused = [], str(no)
    else:
        hosts, refused = hosts_of(placed), None
    waited = served_requests.session_of(spec).deadline.waited
    return Outcome(list(uuids), hosts, refused, clock.current.monotonic() - began, waited)


def place(claims: ClaimsOnly, group: str | None, count: int = 2, **constraints: object) -> Outcome:
    """Have VMs of a group placed or refused, and check that nothing is lost."""
    outcome = outcome_of(claims, *group_request(group, count, **constraints))
    check_nothing_lost(claims, [outcome])
    return outcome


def place_at_once(
    claims: ClaimsOnly, requests: Sequence[tuple[objects.RequestSpec, Sequence[str]]]
) -> list[Outcome]:
    """Have requests placed in a thread each, all at the same moment."""
    start = threading.Barrier(len(requests))

    def run(request: tuple[objects.RequestSpec, Sequence[str]]) -> Outcome:
        start.wait()
        return outcome_of(claims, *request)

    answers = [started(run, request) for request in requests]
    clock.current.wait_for_futures(answers, HANGS)
    return [answer.result(0) for answer in answers]


def check_nothing_lost(claims: ClaimsOnly, outcomes: Sequence[Outcome]) -> None:
    """Check that every VM that was placed holds its host in Placement, and no other VM any.

    Where Nova has taken another host than the claimed one, which Placement's conflicts can do, a
    VM holds both until the plugin has seen it.
    """
    node_of = {provider: node for node, provider in claims.provider_of.items()}

    def held(uuid: str) -> set[str]:
        return {node_of[found.provider] for found in provider_rows.held([uuid])}

    for outcome in outcomes:
        assert len(outcome.hosts) == (0 if outcome.refused else len(outcome.uuids))
        for number, uuid in enumerate(outcome.uuids):
            wanted = set() if outcome.refused else {outcome.hosts[number]}
            faults.wait_until(lambda uuid=uuid, wanted=wanted: held(uuid) == wanted)
