"""A real Nova in one process: API, conductor, scheduler, Placement and fake computes.

Built from the fixtures of Nova's own functional tests, for the demo and the functional tests,
which extend it (``tests/functional/tested_cloud.py``).
Import it before anything else of Nova: it chooses native threads or, before release 33, eventlet.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_sched.nova_glue import nova_release

if nova_release.is_threaded():
    # Nova's fixtures choose again, and would choose eventlet.
    os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
nova_release.choose_threads()

import fixtures
import nova.conf
import numpy  # noqa: F401 - reads platform data at import, which Nova's fixtures forbid
from futurist import _thread
from nova import test as nova_test
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import fixtures as functional_fixtures
from nova.tests.functional import integrated_helpers

from hpc_sched import conf
from hpc_sched.configuration import config_files
from hpc_sched.demo import thread_fixtures
from hpc_sched.demo.thread_fixtures import CellDatabases

CONF = nova.conf.CONF

Progress = Callable[[str], None]  # called with a stage

DRIVER = "fake.FakeLiveMigrateDriver"
COMPLETED = frozenset({"ACTIVE", "ERROR", "SHELVED_OFFLOADED"})


def _not_shown(_stage: str) -> None:
    pass


class NovaCloud(integrated_helpers.PlacementInstanceHelperMixin, nova_test.TestCase):
    """Nova's services in this process, from :meth:`setUp` to ``doCleanups``.

    Set the attributes below before ``setUp``; start computes after it.
    """

    __test__ = False  # not a test for pytest to collect

    vcpus = 16
    memory_mb = 65536
    local_gb = 1000
    #: options of nova.conf: (section, name) to value, applied before any service starts
    options: Mapping[tuple[str, str], Any] = {}
    with_scheduler = True

    def runTest(self) -> None:
        """Do nothing: TestCase needs a test method."""

    def setUp(self) -> None:
        """Start everything but computes."""
        if nova_release.is_threaded():
            self.useFixture(thread_fixtures.DatabaseFiles())
        if thread_fixtures.LACKS_THREADS:
            # A native thread has no parent with the test's id: this cloud sends all notifications.
            sender = "fixtures.notifications.FakeVersionedNotifier._get_sender_test_case_id"
            self.useFixture(fixtures.MonkeyPatch(f"nova.tests.{sender}", lambda: self.id()))
        self.useFixture(fixtures.MonkeyPatch("nova.tests.fixtures.CellDatabases", self._databases))
        super().setUp()
        # Hundreds of idle threads of Nova 34 would poll for work 100 times a second.
        _thread.ThreadWorker.MAX_IDLE_FOR = 1
        conf.register_opts(CONF)
        # The wheel of Nova installs the pipeline of the API under the environment's etc.
        self.flags(
            api_paste_config=os.path.join(sys.prefix, "etc", "nova", "api-paste.ini"), group="wsgi"
        )
        quotas = ("instances", "cores", "ram", "server_groups", "server_group_members")
        self.flags(**dict.fromkeys(quotas, -1), group="quota")
        # A new compute node reports the initial ratios until its first periodic update.
        ratios = ("cpu", "ram", "disk", "initial_cpu", "initial_ram", "initial_disk")
        self.flags(
            compute_driver=DRIVER,
            reserved_host_memory_mb=0,
            **{f"{ratio}_allocation_ratio": 1.0 for ratio in ratios},
        )
        for size in ("vcpus", "memory_mb", "local_gb"):
            self.useFixture(fixtures.MonkeyPatch(f"nova.virt.{DRIVER}.{size}", getattr(self, size)))
        self.policy = self.useFixture(nova_fixtures.RealPolicyFixture())
        self.neutron = self.useFixture(nova_fixtures.NeutronFixture(self))
        self.glance = self.useFixture(nova_fixtures.GlanceFixture(self))
        self.useFixture(nova_fixtures.CinderFixture(self))
        self.placement_fixture = self.useFixture(functional_fixtures.PlacementFixture())
        self.placement = self.placement_fixture.api
        # With the default, parallel claims overbook hosts (Placement 16.0.0).
        self.placement_fixture.conf_fixture.config(
            allocation_conflict_retry_count=1, group="placement"
        )
        self.useFixture(nova_fixtures.AllServicesCurrent())
        self.notifier = self.useFixture(nova_fixtures.NotificationFixture(self))
        self.start_api()
        self.start_service("conductor")
        if self.with_scheduler:
            self.start_scheduler(self.options)

    def doCleanups(self) -> None:
        """End everything."""
        # Each service waits until its idle threads poll for work, and end.
        _thread.ThreadWorker.MAX_IDLE_FOR = 0.05  # type: ignore[assignment] # futurist says int
        super().doCleanups()

    def _databases(self) -> CellDatabases:
        self._cell_databases = CellDatabases()
        return self._cell_databases

    def start_api(self) -> None:
        """Start Nova's API."""
        fixture = nova_fixtures.OSAPIFixture(api_version="v2.1")
        self.api = self.admin_api = self.useFixture(fixture).admin_api
        self.api.microversion = "latest"

    def start_scheduler(self, options: Mapping[tuple[str, str], Any]) -> None:
        """Start the scheduler with options of nova.conf, by section and name."""
        for (section, name), value in options.items():
            self.flags(**{name: value}, group=None if section == "DEFAULT" else section)
        self.scheduler = self.start_service("scheduler")

    def start_computes(
        self, hosts: Iterable[str], progress: Progress = _not_shown, cell: str | None = None
    ) -> None:
        """Start one compute service a host, in the first cell or the one named."""
        names = list(hosts)
        with self._cell_databases.default_cell(self.cell_mappings[cell or "cell1"]):
            for count, host in enumerate(names, 1):
                self._start_compute(host, cell_name=cell)
                progress(f"compute services {count}/{len(names)}")

    def flavor(
        self,
        name: str,
        *,
        vcpus: int = 1,
        memory_mb: int = 512,
        extra_specs: Mapping[str, str] | None = None,
    ) -> str:
        """Create a flavor through the API and return its id."""
        sizes = {"vcpus": vcpus, "ram": memory_mb, "disk": 1, "OS-FLV-EXT-DATA:ephemeral": 0}
        created = self.api.post_flavor({"flavor": {"id": name, "name": name, **sizes}})
        if extra_specs:
            self.api.post_extra_spec(created["id"], {"extra_specs": dict(extra_specs)})
        return str(created["id"])

    def server_group(self, name: str, policy: str, rules: Mapping[str, int] | None = None) -> str:
        """Create a server group through the API and return its id."""
        body = {"name": name, "policy": policy} | ({"rules": dict(rules)} if rules else {})
        return str(self.api.post_server_groups(body)["id"])

    def boot(
        self,
        flavor: str,
        *,
        count: int = 1,
        group: str | None = None,
        hints: Mapping[str, Any] | None = None,
        host: str | None = None,
        name: str = "vm",
    ) -> list[str]:
        """Create servers in one request, on ``host`` past filters and weighers; return the ids."""
        server = {
            "name": name,
            "imageRef": "155d900f-4e14-4e4c-a73d-069cbf4541e6",
            "flavorRef": flavor,
            "networks": "none",
            "min_count": count,
            "max_count": count,
            "return_reservation_id": count > 1,
            **({"availability_zone": f"nova:{host}"} if host else {}),
        }
        all_hints = dict(hints or {}) | ({"group": group} if group else {})
        also = {"os:scheduler_hints": all_hints} if all_hints else {}
        answer = self.api.post_server({"server": server} | also)
        if count == 1:
            return [answer["id"]]
        return [server["id"] for server in self._list(reservation_id=answer["reservation_id"])]

    def wait(
        self, servers: Sequence[str], timeout: float = 400, progress: Progress = _not_shown
    ) -> dict[str, dict[str, Any]]:
        """Return servers by id, none being built; TimeoutError names those still in progress."""
        deadline = time.monotonic() + timeout
        wanted = set(servers)
        while True:
            began = time.monotonic()
            building = wanted & {server["id"] for server in self._list(status="BUILD")}
            if building:
                progress(f"servers {len(wanted - building)}/{len(wanted)}")
            else:
                shown = {server["id"]: server for server in self._list(detail=True)}
                done = {
                    uuid for uuid in wanted & shown.keys() if shown[uuid]["status"] in COMPLETED
                }
                progress(f"servers {len(done)}/{len(wanted)}")
                if done == wanted:
                    return {uuid: shown[uuid] for uuid in servers}
            if time.monotonic() > deadline:
                raise TimeoutError(f"still in progress: {sorted(building or wanted - done)}")
            # All of Nova shares this process: frequent polls slow it down.
            time.sleep(max(0.3, 3 * (time.monotonic() - began)))

    def _list(self, *, detail: bool = False, **filters: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api.get_servers(
            detail=detail, search_opts={"all_tenants": True, **filters}
        )
        return found

    def hosts_of(self, servers: Sequence[str], progress: Progress = _not_shown) -> dict[str, str]:
        """Wait until no server is being built; return the host of each active one."""
        return {
            uuid: server["OS-EXT-SRV-ATTR:hypervisor_hostname"]
            for uuid, server in self.wait(servers, progress=progress).items()
            if server["status"] == "ACTIVE"
        }


def read_options(path: Path) -> dict[tuple[str, str], Any]:
    """Return the options of a nova.conf file, as their registered types, by section and name."""
    conf.register_opts(CONF)
    options: dict[tuple[str, str], Any] = {}
    for section, settings in config_files.sections_of(str(path)).items():
        group = None if section == "DEFAULT" else CONF._get_group(section)
        for key, values in settings.items():
            opt = CONF._get_opt_info(key, group)["opt"]
            options[section, key] = (
                [opt.type(value) for value in values] if opt.multi else opt.type(values[-1])
            )
    return options
