"""The fabrics and the cloud of the documentation's screens and pictures.

Four leaf switches of eight hosts in two pods; on some hosts VMs of others, one host disabled, one
that the topology does not name. The planner has placed group job1.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hpc_sched import topology
from hpc_sched.core.constraints import Constraints
from hpc_sched.core.counterfactual.recording import LeftOut, logged_input
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.logged.decision_entry import DecisionEntry, LeafCandidates
from hpc_sched.core.logged.decision_summary import LANDED, SHADOW, LoggedLanding, LoggedPlan
from hpc_sched.core.plan import planner
from hpc_sched.core.plan.result import Plan
from hpc_sched.snapshot.snapshot_model import Flavor, Group, Hypervisor, Server, Snapshot
from hpc_sched.snapshot.source import snapshot_file
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import svg

FOLDER = Path(__file__).resolve().parents[1] / "examples"
TOPOLOGY = (FOLDER / "topology.yaml").read_text()
NEW = TOPOLOGY.replace("node[09-16]", "node[09-18]").replace("node[17-24]", "node[19-24]")
BROKEN = TOPOLOGY.replace("node[09-16]", "node[08-16]").replace("node[25-32]", "node[25-")

OTHERS = ["node01", "node02", "node03", "node04", "node18", "node26", "node27"]
DISABLED = "node32"
UNNAMED = "login1"
GROUP = "2f9a41d0-6c1d-4f0e-9a38-0f6f2f5a7c11"
RANK = Flavor("hpc.rank", vcpus=32, memory_mb=131072, root_gb=20)
OTHER = Flavor("m1.large", vcpus=8, memory_mb=16384, root_gb=40)
COUNT = 8


def fabric() -> Topology:
    """Return the fabric of the screens."""
    return topology.load("yaml", path=FOLDER / "topology.yaml")


def places() -> Mapping[str, int]:
    """Return where the VMs of the group are: where the planner puts them."""
    known = fabric()
    free = {host: 1 for host in known.hosts if host not in (*OTHERS, DISABLED)}
    plan = planner.plan(topology=known, capacity=free, members={}, count=COUNT, group_id=GROUP)
    assert isinstance(plan, Plan)
    return plan.hosts


def decision(instances: Sequence[str]) -> dict[str, object]:
    """Return the record of the decision on the group, as the scheduler's decision log has it."""
    known = fabric()
    free = {host: 1 for host in known.hosts if host not in (*OTHERS, DISABLED)}
    candidates = [host for host in known.hosts if host != DISABLED]
    constraints = Constraints(require="leaf")
    request = GroupRequest.of(
        known,
        HPCSpecs("sync", constraints, "prefer", (), ()),
        group_id=GROUP,
        policy="soft-anti-affinity",
        max_per_host=None,
        places=[(host, host) for host in candidates],
        names=candidates,
        room=np.array([free.get(host, 0) for host in candidates]),
        members={},
        left=COUNT,
        awaiting=COUNT,
    )
    plan = request.decide()
    assert isinstance(plan, Plan)
    hosts = {leaf: [h for h in known.hosts_of(leaf) if h != DISABLED] for leaf in known.leaves}
    entry = DecisionEntry(
        time="2026-05-04T08:00:01.250000",
        request_id="req-5d0c2f52-9a0c-4c39-b1c4-0b8ef2f4a1aa",
        instance=instances[0],
        instances=tuple(instances),
        group=GROUP,
        policy="soft-anti-affinity",
        app_class="sync",
        wishes=asdict(constraints) | {"homogeneous": "prefer"},
        left=COUNT,
        awaiting=COUNT,
        members={},
        candidates={
            leaf: LeafCandidates(len(below), sum(host in free for host in below))
            for leaf, below in hosts.items()
        },
        removed={"no room for one VM": len(OTHERS)},
        decision="planned",
        seconds=0.011,
        plan=LoggedPlan(dict(plan.leaves), dict(plan.hosts), plan.hop_bytes, plan.hop_bytes),
        input=logged_input(request, LeftOut()),
    )
    return entry.as_json()


def cloud() -> Snapshot:
    """Return the cloud of the screens."""
    group = sorted(places())
    on = [(host, OTHER, f"web-{i}") for i, host in enumerate(OTHERS, 1)]
    on += [(host, RANK, f"rank-{i}") for i, host in enumerate(group, 1)]
    servers = [
        Server(
            uuid=f"{number:08x}-0000-4000-8000-{number:012x}",
            name=name,
            project_id="physics" if flavor is RANK else "web",
            status="ACTIVE",
            host=host,
            nodename=host,
            flavor=flavor,
            created="2026-05-04T08:00:00+00:00",
        )
        for number, (host, flavor, name) in enumerate(on, 1)
    ]
    used = {server.nodename: server.flavor for server in servers}
    hypervisors = [
        Hypervisor(
            host=host,
            nodename=host,
            enabled=host != DISABLED,
            up=True,
            capacity={"VCPU": 32.0, "MEMORY_MB": 196608.0, "DISK_GB": 900.0},
            used={
                "VCPU": float(used[host].vcpus),
                "MEMORY_MB": float(used[host].memory_mb),
                "DISK_GB": float(used[host].root_gb),
            }
            if host in used
            else {},
        )
        for host in (UNNAMED, *fabric().hosts)
    ]
    members = tuple(server.uuid for server in servers if server.flavor is RANK)
    return Snapshot(
        taken="2026-05-04T08:05:00+00:00",
        hypervisors=tuple(hypervisors),
        servers=tuple(sorted(servers, key=lambda server: (server.name, server.uuid))),
        groups=(Group(GROUP, "job1", "physics", "soft-anti-affinity", members),),
        flavors=(RANK, OTHER),
        topology=TOPOLOGY,
        filters=("HPCHomogeneityFilter", "HPCGroupFilter", "HPCRackCapacityFilter"),
        weighers=("hpc_sched.weighers.hop_byte.HopByteWeigher",),
        decisions=(decision(members),),
    )


def shadow_log() -> Iterator[DecisionEntry]:
    """Yield the log of a scheduler in shadow mode: groups on the empty fabric, one after the other.

    Stock Nova spreads VMs: hosts of equal weight come in an order that has nothing to do with
    leaves. Here it takes them leaf by leaf in turn.
    """
    known = fabric()
    below = [[h for h in known.hosts_of(leaf) if h != DISABLED] for leaf in known.leaves]
    spread = [host for turn in zip_longest(*below) for host in turn if host is not None]
    sizes = [("physics", 8), ("physics", 16), ("physics", 4), ("chemistry", 6), ("chemistry", 9)]
    for number, (project, count) in enumerate(sizes):
        free = dict.fromkeys(known.hosts, 1) | {DISABLED: 0}
        require = "leaf" if count == 9 else None
        made = planner.plan(topology=known, capacity=free, members={}, count=count, require=require)
        plan = made if isinstance(made, Plan) else None
        stock = Counter(spread[:count])
        leaves = Counter(known.leaf_of(host) for host in spread[:count])
        same: dict[str, Any] = {
            "request_id": f"req-{number:08x}",
            "instance": f"{number:08x}-0000-4000-8000-{number:012x}",
            "group": None,
            "left": count,
            "mode": SHADOW,
        }
        yield DecisionEntry(
            time=f"2026-05-04T08:{number:02}:01.250000",
            project=project,
            seconds=0.004 + 0.001 * number,
            decision="planned" if plan else "refused",
            reason=None if plan else str(made),
            plan=plan and LoggedPlan(dict(plan.leaves), dict(plan.hosts), plan.hop_bytes),
            **same,
        )
        yield DecisionEntry(
            time=f"2026-05-04T08:{number:02}:03.500000",
            decision=LANDED,
            landed=LoggedLanding(
                leaves=dict(leaves),
                hosts=dict(stock),
                hop_bytes=hop_bytes_of_counts(topology=known, counts=stock),
                planned=plan and plan.leaves,
            ),
            **same,
        )


def write(folder: Path) -> None:
    """Write the files that the screens' commands name."""
    folder.mkdir(parents=True, exist_ok=True)
    for example in sorted(path for path in FOLDER.iterdir() if path.is_file()):
        (folder / example.name).write_bytes(example.read_bytes())
    (folder / "topology-new.yaml").write_text(NEW)
    (folder / "broken.yaml").write_text(BROKEN)
    snapshot_file.write(folder / "cloud.json", cloud())
    lines = (json.dumps(entry.as_json()) for entry in shadow_log())
    (folder / "shadow.jsonl").write_text("".join(f"{line}\n" for line in lines))


def picture(name: str) -> str:
    """Return one of the pictures as SVG."""
    if name == "thousand":
        pods = {
            f"pod{pod}": {
                f"leaf{pod}{leaf:02d}": [
                    f"node{20 * (10 * (pod - 1) + leaf - 1) + i:04d}" for i in range(1, 21)
                ]
                for leaf in range(1, 11)
            }
            for pod in range(1, 6)
        }
        return svg.text_of(Topology.from_tree({"core": pods}), "1,000 hosts")
    group, known = places(), fabric()
    states = dict.fromkeys(known.hosts, svg.FREE)
    states |= dict.fromkeys(OTHERS, svg.USED) | dict.fromkeys(group, svg.GROUP)
    states[DISABLED] = svg.OFF
    return svg.text_of(known, "job1", states)
