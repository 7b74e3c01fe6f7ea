"""A cloud of any size to choose hosts in: Nova's own objects and tables, no services.

The host manager and the scheduler's manager are Nova's, HostStates are updated from ComputeNode
objects, and what the plugin reads of VMs and groups stands in real tables, on SQLite. Placement
is canned at Nova's client for it: it offers every host, and every claim is won.

::

    core1 - pod000 .. - leaf000-00 .. - n000-00-00 ..    20 hosts a leaf, 25 leaves a pod
"""

# Nova wants its threads chosen before anything else of it is imported.
from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

from nova import objects

objects.register_all()

import datetime
import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nova.conf
import sqlalchemy as sa
from nova import config as nova_config
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.objects.cell_mapping import CellMapping
from nova.scheduler import manager
from nova.scheduler.client import report
from oslo_utils import timeutils, uuidutils

from hpc_sched import conf
from hpc_sched.enabled_plugins import COUNTING_FILTERS
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.read.caps import counting_filters
from hpc_sched.topology.readers.yaml_file import YamlFileDriver

# Started as a script, a benchmark has its own folder in the path alone.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.functional import build_requests, nova_objects
from tests.functional.nova_objects import DISK_GB

CONF = nova.conf.CONF

HOSTS_A_LEAF, LEAVES_A_POD = 20, 25
# One VM of a group, and what stands on the hosts already: up to MOST_THERE a host.
VM_VCPUS, VM_MEMORY_MB, VM_DISK_GB = 4, 16384, 20
MOST_THERE = 2
# As hypervisors of one kind report it.
CPU_INFO = json.dumps(
    {
        "arch": "x86_64",
        "vendor": "Intel",
        "model": "Icelake-Server",
        "topology": {"sockets": 2, "cores": 8, "threads": 1},
        "features": ["avx2", "avx512f", "sse4.2"],
    }
)
NOVA_FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
NOVA_WEIGHERS = "nova.scheduler.weights.all_weighers"


@dataclass(frozen=True)
class Side:
    """One way to configure the scheduler."""

    name: str
    filters: tuple[str, ...] = NOVA_FILTERS
    weighers: tuple[str, ...] = (NOVA_WEIGHERS,)
    has_claims: bool = True
    mdobp_classes: tuple[str, ...] = ("sync", "async")
    has_metrics: bool = False
    mode: str = "active"
    most_on_host: int = 64  # operations, and VMs, of which filters of Nova pass a host
    asks_caps: bool = True  # whether plans take these filters into account
    whole_leaf_multiplier: float = 0.0  # of WholeLeafWeigher

    def enable(self) -> None:
        """Configure this process so."""
        available = ["nova.scheduler.filters.all_filters"]
        if self.name != STOCK.name:
            available.append("hpc_sched.filters.all_filters")
        for name, value in (
            ("available_filters", available),
            ("enabled_filters", list(self.filters)),
            ("weight_classes", list(self.weighers)),
        ):
            CONF.set_override(name, value, "filter_scheduler")
        for name in ("max_io_ops_per_host", "max_instances_per_host"):
            CONF.set_override(name, self.most_on_host, "filter_scheduler")
        counting_filters.enabled = _COUNTING if self.asks_caps else tuple
        CONF.set_override("mode", self.mode, "hpc_sched")
        CONF.set_override("gang_claims", self.has_claims, "hpc_sched")
        CONF.set_override("mdobp_classes", list(self.mdobp_classes), "hpc_sched")
        multiplier = "whole_leaf_weight_multiplier"
        CONF.set_override(multiplier, self.whole_leaf_multiplier, "hpc_sched")
        # Any port; the time of the thread that writes them counts.
        address = "127.0.0.1:0" if self.has_metrics else None
        CONF.set_override("metrics_address", address, "hpc_sched")
        worker.prepare(PLUGIN.name)
        # As in a worker that runs: the endpoint is there soon, if there are metrics.
        worker.start()


_COUNTING = counting_filters.enabled
STOCK = Side("stock")
# As etc/nova.conf.sample has it.
PLUGIN = Side(
    "plugin",
    (*NOVA_FILTERS, "HPCHomogeneityFilter", "HPCGroupFilter", "HPCRackCapacityFilter"),
    (NOVA_WEIGHERS, "hpc_sched.weighers.hop_byte.HopByteWeigher"),
)
# All hosts within the constraints of a group stay, for others may take those of its plan.
PLANS = replace(PLUGIN, name="plans", has_claims=False)
# With metrics, that is.
METRICS = replace(PLUGIN, name="metrics", has_metrics=True)
# And as it has it where hosts are shared by applications.
SHARING = Side(
    "sharing",
    (
        *NOVA_FILTERS,
        "HPCDedicatedHostFilter",
        "HPCInterferenceFilter",
        *PLUGIN.filters[len(NOVA_FILTERS) :],
    ),
    (*PLUGIN.weighers, "hpc_sched.weighers.mdobp.MDOBPWeigher"),
)
# And requests that are not HPC are packed too.
PACKING = replace(SHARING, name="packing", mdobp_classes=("sync", "async", "none"))
# Nothing is placed otherwise than by stock Nova; the plans are made all the same.
SHADOW = replace(PLUGIN, name="shadow", mode="shadow")
SHADOW_SHARING = replace(SHARING, name="shadow-sharing", mode="shadow")
# Nova's filters that count VMs, which plans take into account: all pass, or few.
CAPS = replace(
    PLUGIN,
    name="caps",
    filters=(*NOVA_FILTERS, *COUNTING_FILTERS, *PLUGIN.filters[len(NOVA_FILTERS) :]),
)
CAPS_REACHED = replace(CAPS, name="caps-reached", most_on_host=4)
# The same filters, ignored in plans: what the caps cost alone.
UNCOUNTED = replace(CAPS, name="uncounted", asks_caps=False)
# VMs that are in no group fill broken leaves.
WHOLE_LEAVES = replace(
    PLUGIN,
    name="whole-leaves",
    weighers=(*PLUGIN.weighers, "hpc_sched.weighers.whole_leaf.WholeLeafWeigher"),
    whole_leaf_multiplier=100000.0,
)
# A weigher alone, without the filter that prunes.
BUNCH = Side("bunch", weighers=(NOVA_WEIGHERS, "hpc_sched.weighers.bunch.BunchWeigher"))


@dataclass
class CannedAnswer:
    """An answer of Placement's API."""

    body: dict[str, Any]
    status_code: int = 200

    def json(self) -> dict[str, Any]:
        """Return the body."""
        return self.body


class CannedPlacement:
    """What Nova's client for Placement answers: every claim is won, nobody else has any."""

    def __init__(self, nodes: Sequence[objects.ComputeNode]) -> None:
        self._nodes = {node.uuid: node for node in nodes}

    def get(self, url: str, **_query: object) -> "CannedAnswer":
        """Return inventories or usages of a host, which are those that its compute reports."""
        _, _, uuid, what = url.split("/")
        node = self._nodes[uuid]
        amounts = {
            "VCPU": (node.vcpus, node.vcpus_used),
            "MEMORY_MB": (node.memory_mb, node.memory_mb_used),
            "DISK_GB": (node.local_gb, node.local_gb_used),
        }
        if what == "usages":
            return CannedAnswer({what: {name: used for name, (_, used) in amounts.items()}})
        whole = {"reserved": 0, "allocation_ratio": 1.0}
        found = {name: {"total": total, **whole} for name, (total, _) in amounts.items()}
        return CannedAnswer({what: found})

    def post(self, *_args: object, **_query: object) -> "CannedAnswer":
        """Make a transaction."""
        return CannedAnswer({}, 204)

    def claim_resources(self, *_args: object, **_kwargs: object) -> bool:
        """Win a claim."""
        return True

    def delete_allocation_for_instance(self, *_args: object, **_kwargs: object) -> bool:
        """Take a claim back."""
        return True

    def get_allocs_for_consumer(self, *_args: object) -> dict[str, Any]:
        """Return the allocations of a VM: none."""
        return {"allocations": {}}


@dataclass
class Cloud:
    """Hosts with what stands on them, and a scheduler for each side."""

    nodes: list[objects.ComputeNode]
    services: dict[str, objects.Service]
    aggregates: list[objects.Aggregate]
    there: dict[str, list[str]]  # host to the uuids of its VMs
    cell: str
    managers: dict[str, manager.SchedulerManager] = field(default_factory=dict)

    def manager(self, side: Side) -> manager.SchedulerManager:
        """Return the scheduler of a side, with this process configured for it."""
        side.enable()
        if side.name not in self.managers:
            made = self.managers[side.name] = manager.SchedulerManager()
            made.host_manager.update_aggregates(self.aggregates)
            made.host_manager._instance_info = {
                host: {
                    "instances": {uuid: objects.Instance(uuid=uuid) for uuid in uuids},
                    "updated": True,
                }
                for host, uuids in self.there.items()
            }
        return self.managers[side.name]

    def prepare(self, side: Side, count: int, kind: str) -> Callable[[], list[list[Any]]]:
        """Return the choice of hosts for one request, which is all that is measured.

        HostStates, which Nova makes anew for every request, are made here.
        """
        scheduler = self.manager(side)
        context = nova_context.get_admin_context()
        spec, uuids = request(count, kind)
        states = list(
            scheduler.host_manager._get_host_states(context, {self.cell: self.nodes}, self.services)
        )
        # In the order of the nodes, whatever the order of a Python set is.
        place = {node.uuid: number for number, node in enumerate(self.nodes)}
        states.sort(key=lambda state: place[state.uuid])
        scheduler.host_manager.get_host_states_by_uuids = lambda *_: iter(states)
        offered = {state.uuid: [_candidate(state.uuid)] for state in states}

        def choose() -> list[list[Any]]:
            return scheduler._schedule(
                context, spec, uuids, offered, {}, "1.36", return_alternates=True
            )

        return choose

    def forget(self) -> None:
        """Remove what requests have left behind in the host managers and the tables."""
        for made in self.managers.values():
            for host, info in made.host_manager._instance_info.items():
                ours = set(self.there[host])
                for uuid in [uuid for uuid in info["instances"] if uuid not in ours]:
                    del info["instances"][uuid]
        with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
            for model in (
                api_models.BuildRequest,
                api_models.InstanceGroupMember,
                api_models.InstanceGroupPolicy,
                api_models.InstanceGroup,
            ):
                session.execute(sa.delete(model))
            mapping = api_models.InstanceMapping
            session.execute(sa.delete(mapping).where(mapping.cell_id.is_(None)))


def build(folder: Path, hosts: int, seed: int = 1) -> Cloud:
    """Return a cloud of some number of hosts, its databases and fabric being files in a folder."""
    dice = random.Random(seed)
    names = list(_fabric(folder / "topology.yaml", hosts))
    _configure(folder)
    cell = uuidutils.generate_uuid()
    nodes, services, there = [], {}, {}
    for number, name in enumerate(names):
        there[name] = [uuidutils.generate_uuid() for _ in range(dice.randint(0, MOST_THERE))]
        nodes.append(_node(number, name, len(there[name]), dice))
        services[name] = objects.Service(
            id=number, host=name, binary="nova-compute", disabled=False,
            forced_down=False, topic="compute", report_count=1, disabled_reason=None,
            last_seen_up=timeutils.utcnow(), availability_zone=None, deleted=False,
            created_at=timeutils.utcnow(), updated_at=timeutils.utcnow(), deleted_at=None,
            uuid=uuidutils.generate_uuid(),
        )  # fmt: skip
    _write_databases(folder, cell, names, there)
    pods: dict[str, list[str]] = {}
    for name in names:
        pods.setdefault(name.partition("-")[0], []).append(name)
    aggregates = [
        objects.Aggregate(
            id=number,
            uuid=uuidutils.generate_uuid(),
            name=f"zone {pod}",
            hosts=inside,
            metadata={"availability_zone": f"zone-{pod}"},
        )
        for number, (pod, inside) in enumerate(pods.items(), 1)
    ]
    report.PLACEMENTCLIENT = CannedPlacement(nodes)
    return Cloud(nodes, services, aggregates, there, cell)


def request(count: int, kind: str) -> tuple[objects.RequestSpec, list[str]]:
    """Return a RequestSpec as the conductor hands it over, and the uuids of its VMs.

    Build requests, mappings and members of the group are in the tables.

    :param kind: the policy of a new server group; ``none`` for a request that is not HPC: VMs
        without a group, in one request of class none where they are several
    """
    uuids = [uuidutils.generate_uuid() for _ in range(count)]
    group = None
    if kind != "none":
        group = nova_objects.server_group(
            uuidutils.generate_uuid(), kind, name="job", members=list(uuids),
            project_id="project", user_id="user",
        )  # fmt: skip
    _write_request(uuids, group)
    specs = {"hpc:app_class": "none"} if kind == "none" else {}
    spec = nova_objects.request_spec(_flavor(specs), group, count=count, uuid=uuids[0])
    return spec, uuids


def _fabric(path: Path, hosts: int) -> Iterable[str]:
    """Write the fabric and return its hosts."""
    lines = ["levels: [leaf, pod, core]", "switches:", "- name: core1", "  switches:"]
    left = hosts
    for pod in range(-(-hosts // (HOSTS_A_LEAF * LEAVES_A_POD))):
        lines += [f"  - name: pod{pod:03}", "    switches:"]
        for leaf in range(min(LEAVES_A_POD, -(-left // HOSTS_A_LEAF))):
            here = min(HOSTS_A_LEAF, left)
            left -= here
            lines.append(f"    - name: leaf{pod:03}-{leaf:02}")
            lines.append(f"      hosts: n{pod:03}-{leaf:02}-[00-{here - 1:02}]")
    path.write_text("\n".join(lines) + "\n")
    return YamlFileDriver(path=str(path)).load().hosts


def _configure(folder: Path) -> None:
    """Configure this process as nova.conf would, for the files of a folder."""
    text = (
        "[DEFAULT]\ntransport_url = fake://\nservice_down_time = 1000000\n"
        f"[database]\nconnection = sqlite:///{folder}/cell1.sqlite\n"
        f"[api_database]\nconnection = sqlite:///{folder}/api.sqlite\n"
        # The host manager takes what is on the hosts from the benchmark.
        "[filter_scheduler]\ntrack_instance_changes = false\n"
    )
    path = folder / "nova.conf"
    path.write_text(text)
    conf.register_opts(CONF)
    nova_config.parse_args(["benchmark", "--config-file", str(path)])
    CONF.set_override("topology_file", str(folder / "topology.yaml"), "hpc_sched")
    CONF.set_override("metrics_directory", str(folder / "metrics"), "hpc_sched")
    CONF.set_override("topology_reload_interval", 0, "hpc_sched")


def _node(number: int, name: str, vms: int, dice: random.Random) -> objects.ComputeNode:
    """Return a compute node with some VMs, and with other loads than its neighbours."""
    disk_gb_used = vms * VM_DISK_GB
    return nova_objects.compute_node(
        id=number, host=name, service_id=number, vcpus_used=vms * VM_VCPUS,
        memory_mb_used=vms * VM_MEMORY_MB, disk_gb_used=disk_gb_used, running_vms=vms,
        disk_available_least=DISK_GB - disk_gb_used - dice.randrange(100),
        hypervisor_type="QEMU", hypervisor_version=8000000, cpu_info=CPU_INFO,
        supported_hv_specs=[objects.HVSpec(arch="x86_64", hv_type="kvm", vm_mode="hvm")],
        stats={"num_instances": str(vms), "io_workload": str(dice.randrange(4))},
        deleted=False, created_at=timeutils.utcnow(), updated_at=timeutils.utcnow(),
    )  # fmt: skip


def _candidate(provider: str) -> dict[str, Any]:
    """Return what Placement offers on a host."""
    resources = {"VCPU": VM_VCPUS, "MEMORY_MB": VM_MEMORY_MB, "DISK_GB": VM_DISK_GB}
    return {"allocations": {provider: {"resources": resources}}, "mappings": {"": [provider]}}


def _write_databases(
    folder: Path, cell: str, hosts: Sequence[str], there: Mapping[str, Sequence[str]]
) -> None:
    """Write the tables with the VMs that stand on the hosts."""
    mappings = [
        {"uuid": uuid, "name": name, "database_connection": f"sqlite:///{folder}/{name}.sqlite",
         "transport_url": "fake://"}
        for uuid, name in ((CellMapping.CELL0_UUID, "cell0"), (cell, "cell1"))
    ]  # fmt: skip
    uuids = [(uuid, host) for host in hosts for uuid in there[host]]
    spec = json.dumps(
        objects.RequestSpec(
            num_instances=1, scheduler_hints={}, instance_group=None
        ).obj_to_primitive()
    )
    flavor = json.dumps({"cur": _flavor().obj_to_primitive(), "old": None, "new": None})
    # Hours ago, as most VMs of a cloud that runs.
    created_at = timeutils.utcnow() - datetime.timedelta(hours=2)
    instances = [
        {"created_at": created_at, "uuid": uuid, "host": host, "node": host,
         "reservation_id": f"r-{uuid[:8]}", "instance_type_id": 1, "vcpus": VM_VCPUS,
         "memory_mb": VM_MEMORY_MB, "root_gb": VM_DISK_GB, "ephemeral_gb": 0,
         "vm_state": "active", "project_id": "project", "user_id": "user", "hidden": False,
         "deleted": 0}
        for uuid, host in uuids
    ]  # fmt: skip
    _fill(folder / "cell0.sqlite", main_models.BASE.metadata, {})
    _fill(
        folder / "cell1.sqlite",
        main_models.BASE.metadata,
        {
            main_models.Instance: instances,
            main_models.InstanceExtra: [
                {"instance_uuid": uuid, "flavor": flavor, "deleted": 0} for uuid, _ in uuids
            ],
        },
    )
    _fill(
        folder / "api.sqlite",
        api_models.BASE.metadata,
        {
            api_models.CellMapping: mappings,
            api_models.InstanceMapping: [
                {"instance_uuid": uuid, "cell_id": 2, "project_id": "project",
                 "queued_for_delete": False}
                for uuid, _ in uuids
            ],
            api_models.RequestSpec: [
                {"instance_uuid": uuid, "spec": spec} for uuid, _ in uuids
            ],
        },
    )  # fmt: skip


def _flavor(extra_specs: Mapping[str, str] | None = None) -> objects.Flavor:
    return nova_objects.flavor(
        vcpus=VM_VCPUS, memory_mb=VM_MEMORY_MB, disk_gb=VM_DISK_GB, extra_specs=extra_specs
    )


def _fill(path: Path, metadata: sa.MetaData, rows: Mapping[Any, Sequence[Any]]) -> None:
    engine = sa.create_engine(f"sqlite:///{path}")
    metadata.create_all(engine)
    with engine.begin() as connection:
        for model, values in rows.items():
            if values:
                connection.execute(sa.insert(model), values)
    engine.dispose()


def _write_request(uuids: Sequence[str], group: objects.InstanceGroup | None) -> None:
    """Write what nova-api has written when the scheduler is asked."""
    build_requests.add(uuids, f"r-{uuids[0]}")
    context = nova_context.get_admin_context()
    with api_db.context_manager.writer.using(context) as session:
        if group is None:
            return
        row = api_models.InstanceGroup(
            uuid=group.uuid, name=group.name, project_id="project", user_id="user"
        )
        session.add(row)
        session.flush()
        session.execute(
            sa.insert(api_models.InstanceGroupPolicy), {"group_id": row.id, "policy": group.policy}
        )
        session.execute(
            sa.insert(api_models.InstanceGroupMember),
            [{"group_id": row.id, "instance_uuid": uuid} for uuid in uuids],
        )
