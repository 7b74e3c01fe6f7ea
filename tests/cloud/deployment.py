"""The services of the cloud and their nova.conf."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from tests.cloud import broker, edge_apis
from tests.cloud.nova_api import NovaApi
from tests.cloud.processes import Processes
from tests.contention import fabric
from tests.contention.deployment import ROOT, SIDES, placement_served, sample_conf
from tests.functional import engines, servers
from tests.functional.database_files import write_conf
from tests.functional.trees import write_tree

LEAVES = sorted(fabric.LEAVES)[:4]
HOSTS = [host for leaf in LEAVES for host in fabric.LEAVES[leaf]]
TREE = {
    pod: {leaf: hosts for leaf, hosts in leaves.items() if leaf in LEAVES}
    for pod, leaves in fabric.TREE["core"].items()
}
STARTED_IN = 600  # seconds, at most
# Of hpc_sched, in seconds. All processes share the cores of one machine; with other work on them
# a database has been silent for 20 s, and a group that requires a level is refused then.
CELL_TIMEOUT = 60


@dataclass
class Deployment:
    """A cloud that runs, with a choice of schedulers."""

    folder: Path
    processes: Processes
    api: NovaApi
    databases: dict[str, sa.Engine]  # api, cell0, cell1, placement
    placement: str  # URL
    placement_log: Path
    started: int = 0  # schedulers so far
    flavors: set[str] = field(default_factory=set)

    @contextmanager
    def schedulers(self, side: str, count: int) -> Iterator[list[Path]]:
        """Yield the decision logs of schedulers of one side that serve; they end afterwards."""
        names = [f"{side}-{self.started + number}" for number in range(count)]
        self.started += count
        decisions = [self.folder / f"{name}.jsonl" for name in names]
        for name, log in zip(names, decisions, strict=True):
            own = self.folder / f"{name}.conf"
            own.write_text(
                f"{SIDES[side]}\n[DEFAULT]\nhost = {name}\nlog_file = {name}.log\n"
                f"[hpc_sched]\ndecision_log = {log}\n"
            )
            self.processes.start(name, "nova-scheduler", *_files("databases", name))
        try:
            # The first report follows the start of the RPC server.
            reports = "host IN :names AND report_count > 0"
            self._wait_for_rows("services", reports, names)
            yield decisions
        finally:
            self.processes.stop(*names)

    def kill_computes(self, hosts: Sequence[str]) -> None:
        """Kill the computes of some hosts and say so to Nova, as the monitors of hosts do."""
        self.processes.command("nova-computes", "kill", *hosts)
        for host in hosts:
            self.api.force_down(host, True)

    def start_computes(self, hosts: Sequence[str]) -> None:
        """Start computes that were killed, and wait until they have released what is evacuated."""
        statement = sa.text("SELECT host, report_count FROM services WHERE host IN :names")
        statement = statement.bindparams(sa.bindparam("names", list(hosts), expanding=True))

        def reports() -> dict[str, int]:
            with self.databases["cell1"].connect() as connection:
                return dict(connection.execute(statement).all())

        before = reports()
        self.processes.command("nova-computes", "start", *hosts)
        # The first report follows the start of the RPC server, and the release is before it.
        self.processes.wait_for(
            f"computes of {', '.join(hosts)}",
            STARTED_IN,
            lambda: all(count > before[host] for host, count in reports().items()),
        )
        for host in hosts:
            self.api.force_down(host, False)

    def wait_for_computes(self) -> None:
        """Wait until all hosts have reported to Nova and to Placement."""
        self._wait_for_rows("services", "host IN :names", HOSTS)
        self._wait_for_rows("compute_nodes", "host IN :names AND vcpus > 0", HOSTS)
        text = sa.text(
            "SELECT COUNT(*) FROM inventories JOIN resource_providers ON resource_providers.id = "
            "resource_provider_id WHERE resource_class_id = 0"
        )
        self.processes.wait_for(
            "inventories of all hosts",
            STARTED_IN,
            lambda: self.scalar("placement", text) == len(HOSTS),
        )

    def scalar(self, part: str, statement: sa.Executable) -> object:
        """Return the value that a statement reads in one of the databases."""
        with self.databases[part].connect() as connection:
            return connection.scalar(statement)

    def _wait_for_rows(self, table: str, where: str, names: Sequence[str]) -> None:
        statement = sa.text(f"SELECT COUNT(*) FROM {table} WHERE {where}").bindparams(
            sa.bindparam("names", names, expanding=True)
        )
        self.processes.wait_for(
            f"{table} of {names[0]} to {names[-1]}",
            STARTED_IN,
            lambda: self.scalar("cell1", statement) == len(names),
        )


@contextmanager
def deployed(folder: Path, conflict_retries: int) -> Iterator[Deployment]:
    """Yield a cloud without schedulers; all its processes, databases and queues go afterwards.

    Skips the test where no database server or no broker answers.

    :param folder: for logs and configuration
    :param conflict_retries: Placement's ``allocation_conflict_retry_count``
    """
    with ExitStack() as stack:
        placement_url = stack.enter_context(servers.databases_on("mariadb"))("placement")
        database = str(sa.make_url(placement_url).database)
        transport = stack.enter_context(broker.virtual_host(database))
        nova = stack.enter_context(engines.migrated("mariadb", ["cell1"], transport))
        endpoint, log = stack.enter_context(
            placement_served(placement_url, folder, conflict_retries)
        )
        edge = stack.enter_context(edge_apis.served(folder / "edge.log"))
        _write_configuration(folder, nova, transport, endpoint, edge)
        processes = Processes(folder)
        stack.callback(processes.stop)
        processes.start("nova-conductor", "nova-conductor", *_files("databases", "conductor"))
        paths = (
            folder / "api-paste.ini",
            *(folder / f"{name}.conf" for name in ("nova", "databases", "api")),
        )
        environment = {"OS_NOVA_CONFIG_FILES": ";".join(map(str, paths))}
        processes.start("nova-api", "nova-api", **environment)
        api = NovaApi(f"http://127.0.0.1:{processes.port('nova-api')}/v2.1")
        processes.start("nova-computes", "nova-computes", *_files(), "--", *HOSTS)
        engine = sa.create_engine(placement_url, poolclass=sa.NullPool)
        found = Deployment(
            folder, processes, api, {**nova.engines, "placement": engine}, endpoint, log
        )
        found.wait_for_computes()
        _discover_hosts(folder)
        yield found


def _write_configuration(
    folder: Path, nova: engines.Databases, transport: str, placement: str, edge: str
) -> None:
    no_quota = ("instances", "cores", "ram", "server_groups", "server_group_members")
    topology = write_tree(folder / "topology.yaml", {"core": TREE})
    write_conf(
        folder / "nova.conf",
        {
            "DEFAULT": {
                "transport_url": transport,
                "compute_driver": "fake.HostDriver",
                # All processes share the cores of one machine.
                "rpc_response_timeout": "300",
                "service_down_time": "600",
                "reserved_host_memory_mb": "0",
                "initial_cpu_allocation_ratio": "1.0",
            },
            "oslo_concurrency": {"lock_path": str(folder / "locks")},
            "quota": dict.fromkeys(no_quota, "-1"),
            "placement": {"auth_type": "none", "endpoint_override": placement},
            "glance": {"api_servers": edge},
            "neutron": {"auth_type": "none", "endpoint_override": edge},
            "vnc": {"enabled": "false"},
            "scheduler": {"workers": "1"},
            "conductor": {"workers": "2"},
            "hpc_sched": {"cell_timeout": str(CELL_TIMEOUT), "topology_file": str(topology)},
        },
        text=sample_conf(),
    )
    # nova-compute has none.
    write_conf(
        folder / "databases.conf",
        {
            "api_database": {"connection": nova.urls["api"]},
            "database": {"connection": nova.urls["cell1"]},
        },
    )
    for name in ("conductor", "api"):
        write_conf(folder / f"{name}.conf", {"DEFAULT": {"log_file": f"{name}.log"}})
    for host in HOSTS:
        state = folder / "hosts" / host
        state.mkdir(parents=True)
        own = {"host": host, "state_path": str(state), "log_file": f"{host}.log"}
        write_conf(folder / f"{host}.conf", {"DEFAULT": own})
    # The middleware that asks Keystone is left out; the next one reads the headers that it sets.
    paste = Path(sys.prefix, "etc", "nova", "api-paste.ini").read_text()
    (folder / "api-paste.ini").write_text(
        paste.replace(" authtoken keystonecontext", " keystonecontext")
    )


def _discover_hosts(folder: Path) -> None:
    command = ("-m", "tests.cloud.service", "nova-manage", *_files("databases"))
    done = subprocess.run(
        [sys.executable, *command, "cell_v2", "discover_hosts"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def _files(*names: str) -> list[str]:
    return [part for name in ("nova", *names) for part in ("--config-file", f"{name}.conf")]
