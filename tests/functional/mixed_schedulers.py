"""Schedulers of one cloud that differ: processes of their own, each with a nova.conf of its own.

::

                core
             /       \\
          leaf1     leaf2
          n1-n4     n5-n8

Nova's own weighers prefer the host with the most free memory: n1, n5, n2, n6 and so on, so that
without the plugin two VMs are never under one leaf as long as both have room.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nova import objects
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional import build_requests, outcomes, rows
from tests.functional.claims import ClaimsOnly, claims_on, request
from tests.functional.clouds import SAMPLE_CONF, leaves_used, write_topology
from tests.functional.database_files import write_conf
from tests.functional.outcomes import Outcome
from tests.functional.placement_state import held
from tests.functional.scheduler_processes import Scheduler, add_group, served, started
from tests.functional.states import read_decisions, wishing

LEAVES = {"leaf1": ["n1", "n2", "n3", "n4"], "leaf2": ["n5", "n6", "n7", "n8"]}
# n4 and n5 are under the other leaf.
OTHER_LEAVES = {"leaf1": ["n1", "n2", "n3", "n5"], "leaf2": ["n4", "n6", "n7", "n8"]}
ORDER = [host for pair in zip(*LEAVES.values(), strict=True) for host in pair]
HOSTS = len(ORDER)

_SAMPLE = SAMPLE_CONF.read_text().partition("[hpc_sched]")[0]
# The sample's choice for hosts that applications share: of two lines of one name the last counts.
SHARING = re.sub(r"(?m)^#(?=\w+ = )", "", _SAMPLE)
STOCK = ""


@dataclass
class Mixed:
    """The cloud, its schedulers as they are started, and what the tests have placed."""

    claims: ClaimsOnly
    folder: Path
    conf: Path
    stack: ExitStack
    schedulers: dict[str, Scheduler] = field(default_factory=dict)
    placed: list[Outcome] = field(default_factory=list)

    def scheduler(self, name: str, plugins: str = _SAMPLE, **options: object) -> "MixedScheduler":
        """Return the scheduler of a controller, started at its first use.

        :param plugins: the section [filter_scheduler] of its nova.conf
        :param options: of [hpc_sched]
        """
        if name not in self.schedulers:
            ours = {"decision_log": str(self.log(name)), **{k: str(v) for k, v in options.items()}}
            parts = {"DEFAULT": {"host": name}}, {"hpc_sched": ours}
            conf = write_conf(self.folder / f"{name}.conf", *parts)
            # Behind those of all: of two values the last one counts.
            conf.write_text(self.conf.read_text().replace(_SAMPLE, plugins) + conf.read_text())
            [made] = self.stack.enter_context(started(conf, self.folder / f"{name}.log"))
            self.schedulers[name] = made
        return MixedScheduler(self, name, self.schedulers[name])

    def log(self, name: str) -> Path:
        """Return the path of a controller's decision log."""
        return self.folder / f"{name}.jsonl"

    def group(
        self, *counts: int, policy: str = "soft-anti-affinity"
    ) -> tuple[str, list[list[str]]]:
        """Return a server group, and the VMs of the requests that it will have."""
        vms = [[uuidutils.generate_uuid() for _ in range(count)] for count in counts]
        return add_group(self.claims, policy, [vm for own in vms for vm in own]), vms

    def land(self, outcome: Outcome, group: str | None, vcpus: int, **specs: object) -> None:
        """Let VMs reach their hosts, as nova-conductor and nova-compute note it."""
        build_requests.remove(outcome.uuids)
        rows.add_vms(
            self.claims.cloud,
            outcome.hosts,
            uuids=outcome.uuids,
            group=group,
            vcpus=vcpus,
            extra_specs=wishing(**specs),
        )

    def clear(self) -> None:
        """Check what Placement promises, then remove all VMs and groups."""
        try:
            check_placement(self.claims, self.placed)
        finally:
            self.claims.release()
            rows.clear(self.claims.cloud)
            self.placed.clear()


@dataclass(frozen=True)
class MixedScheduler:
    """The scheduler of one controller."""

    mixed: Mixed
    name: str
    process: Scheduler

    def begin(
        self,
        vms: list[str],
        group: str | None = None,
        *,
        policy: str = "soft-anti-affinity",
        vcpus: int = 16,
        **specs: object,
    ) -> None:
        """Send a request for VMs that nova-api has accepted."""
        asked: objects.RequestSpec = request(
            count=len(vms),
            group=group,
            policy=policy,
            vcpus=vcpus,
            extra_specs=wishing(**specs),
            uuid=vms[0],
        )
        build_requests.add(vms, f"r-{vms[0]}", asked.flavor)
        self.mixed.claims.consumers += vms
        self.process.begin(asked, vms)

    def end(self, vms: list[str]) -> Outcome:
        """Return what became of the request; a refused one is deleted, as by its user."""
        said = self.process.answer()
        assert "failed" not in said, said
        outcome = Outcome(vms, said.get("hosts", []), said.get("refused"), 0.0, 0.0)
        self.mixed.placed.append(outcome)
        if outcome.refused:
            build_requests.remove(vms)
        return outcome

    def place(self, vms: list[str], group: str | None = None, **more: object) -> Outcome:
        """Return what became of a request."""
        self.begin(vms, group, **more)
        return self.end(vms)

    def last_decision(self) -> Mapping[str, object]:
        """Return the newest record of its decision log."""
        return read_decisions(self.mixed.log(self.name))[-1]


def leaves_of(outcome: Outcome, leaves: Mapping[str, list[str]] = LEAVES) -> dict[str, int]:
    """Return how many VMs are under each leaf."""
    return leaves_used(leaves, outcome.hosts)


def check_placement(claims: ClaimsOnly, placed: list[Outcome]) -> None:
    """Check that each placed VM has one allocation, the others none, and no host too many."""
    outcomes.check_nothing_lost(claims, placed)
    known = {vm for outcome in placed for vm in outcome.uuids}
    assert held(claims.cloud).keys() <= known
    for host, provider in claims.provider_of.items():
        path = f"/resource_providers/{provider}"
        used = claims.cloud.placement.get(f"{path}/usages", version="1.36").body["usages"]
        rooms = claims.cloud.placement.get(f"{path}/inventories", version="1.36").body
        for name, room in rooms["inventories"].items():
            assert used[name] <= room["total"] - room["reserved"], (host, name)


@contextmanager
def mixed_cloud(cloud: NovaCloud, folder: Path) -> Iterator[Mixed]:
    """Yield hosts on a cloud; the schedulers that were started end with them."""
    used_mb = {host: 2048 * place for place, host in enumerate(ORDER)}
    topology = write_topology(folder, LEAVES)
    with (
        claims_on(cloud, dict.fromkeys(ORDER, 0), used_mb) as claims,
        served(cloud, folder, topology) as conf,
        ExitStack() as stack,
    ):
        yield Mixed(claims, folder, conf, stack)
