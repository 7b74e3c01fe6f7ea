"""A real Nova for the functional tests."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import nova.conf
import pytest

from hpc_sched import conf
from hpc_sched.demo import nova_cloud  # first of all Nova: it chooses native threads
from hpc_sched.nova_glue.claim import abandoned_claims
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.read.hold import NO_HOLDS
from hpc_sched.nova_glue.record import landed_record
from tests import tiers
from tests.functional import (
    engines,
    faults,
    host_managers,
    population,
    population_rows,
    servers,
    states,
)
from tests.functional.clouds import SAMPLE_CONF, write_topology
from tests.functional.database_reads import Cloud
from tests.functional.pods import write_fabric
from tests.functional.shared_clouds import RunningCloud
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud

CONF = nova.conf.CONF


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the cloud of a test that fails, and the log of its last request in place of all."""
    outcome = yield
    report = outcome.get_result()
    running = getattr(item, "funcargs", {}).get("running_cloud")
    if report.failed and running is not None:
        kept = [one for one in report.sections if not one[0].startswith("Captured log")]
        report.sections[:] = [*kept, *running.shown()]
        # Of its end Nova logs hundreds of lines.
        item._report_sections[:] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the cloud after its last test: Nova's fixtures change what other tests find."""
    running = getattr(item, "funcargs", {}).get("running_cloud")
    yield
    following = tiers.kind_of(nextitem) if nextitem is not None else None
    if running is not None and following is not tiers.kind_of(item):
        running.end()


@pytest.fixture(autouse=True)
def no_landing_left() -> Iterator[None]:
    """Let no request of a test be logged later, by a thread, where another test reads the log."""
    yield
    with landed_record._lock:
        landed_record._followed.clear()


@pytest.fixture(autouse=True, scope="session")
def no_scan() -> Iterator[None]:
    """Look for claims of dead requests in no thread of this process: a test may have some."""
    with mock.patch.object(abandoned_claims.thread, "start"):
        yield


@pytest.fixture(autouse=True, scope="session")
def no_late_read() -> Iterator[None]:
    """Let no scheduler read what VMs there are after a test has said it."""
    with host_managers.read_before_the_first_request():
        yield


@pytest.fixture
def nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no call to Placement read what is held: for tests that count the other calls."""
    monkeypatch.setattr(store, "read", lambda: NO_HOLDS)


@pytest.fixture(scope="session")
def running_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCloud]:
    """Hold the shared cloud of this process."""
    tmp_path_factory.getbasetemp()  # Nova's fixtures move the place of temporary files
    running = RunningCloud(tmp_path_factory.mktemp)
    yield running
    running.end()


@pytest.fixture
def shared_cloud(
    request: pytest.FixtureRequest, running_cloud: RunningCloud
) -> Iterator[TestedCloud]:
    """Return the cloud of the kind that the test's mark names, as every test finds it."""
    mark = request.node.get_closest_marker("cloud")
    assert mark is not None, "a test on a shared cloud has the mark cloud(kind)"
    yield from running_cloud.used(mark.args[0])


@pytest.fixture(scope="module")
def cloud_of_module(
    request: pytest.FixtureRequest, running_cloud: RunningCloud
) -> Iterator[TestedCloud]:
    """Return the shared cloud to a fixture of a module, which leaves it as it found it.

    For modules whose tests only read what takes long to write.
    """
    mark = request.node.get_closest_marker("cloud")
    assert mark is not None, "a module on a shared cloud has the mark cloud(kind)"
    yield from running_cloud.used(mark.args[0])


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    """Return the shared cloud; a module that adds flavors to it has a fixture of this name."""
    return shared_cloud


@pytest.fixture(scope="module")
def start_cloud(
    tmp_path_factory: pytest.TempPathFactory, running_cloud: RunningCloud
) -> Iterator[Callable[..., nova_cloud.NovaCloud]]:
    """Start a Nova with the plugin enabled as etc/nova.conf.sample does; ended with the module.

    Nova's fixtures allow one cloud at a time in a process: starting another ends the first.
    """
    tmp_path_factory.getbasetemp()  # Nova's fixtures move the place of temporary files
    running: list[nova_cloud.NovaCloud] = []

    def stop() -> None:
        while running:
            running.pop().doCleanups()
        faults.start_afresh()

    def start(
        leaves: dict[str, list[str]] | Path | None = None,
        options: dict[tuple[str, str], Any] | None = None,
        **attributes: Any,
    ) -> nova_cloud.NovaCloud:
        stop()
        running_cloud.end()
        cloud = TestedCloud("runTest")
        for name, value in attributes.items():
            setattr(cloud, name, value)
        if leaves is not None:
            path = (
                leaves
                if isinstance(leaves, Path)
                else write_topology(tmp_path_factory.mktemp("topology"), leaves)
            )
            cloud.options = nova_cloud.read_options(SAMPLE_CONF) | {
                ("hpc_sched", "topology_file"): str(path),
                # Nothing in the background: a test that changes the file says when it is read.
                ("hpc_sched", "topology_reload_interval"): 0,
                ("hpc_sched", "cell_timeout"): BUSY_MACHINE,
                **(options or {}),
            }
        running.append(cloud)
        cloud.setUp()
        return cloud

    yield start
    stop()


@pytest.fixture
def two_pods(tmp_path: Path) -> Iterator[Path]:
    """Read the fabric of :mod:`tests.functional.pods`, without a cloud; return its file."""
    path = write_fabric(tmp_path / "topology.yaml")
    with states.configured(path):
        yield path


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set what the databases say of the group, the edge that has no server here."""

    def set_(members: Mapping[str, int] | None = None, **said: Any) -> None:
        places = {(host, host): count for host, count in (members or {}).items()}
        states.databases_say(monkeypatch, members=places, **said)

    return set_


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what the log says of ignored keys."""

    def found() -> list[str]:
        return [
            record.getMessage().split(": ", 1)[1]
            for record in caplog.records
            if record.levelname == "WARNING" and record.getMessage().startswith("Ignored for ")
        ]

    return found


@pytest.fixture
def boot(cloud: TestedCloud) -> Iterator[Callable[..., list[str]]]:
    """Boot servers that are deleted after the test."""
    made: list[str] = []

    def boot_(*args: object, **kwargs: object) -> list[str]:
        servers = cloud.boot(*args, **kwargs)
        made.extend(servers)
        return servers

    yield boot_
    cloud.remove(made)


SLOW_SERVER = pytest.mark.nightly(
    "databases", "10,000 VMs written to a server, and read with its statistics"
)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(engine, marks=SLOW_SERVER if engine in servers.SERVERS else ())
        for engine in servers.ENGINES
    ],
)
def populated(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """Write a large cloud into databases of each kind; nobody changes it."""
    written = population.made()
    with engines.migrated(request.param) as databases:
        population_rows.write(databases, written)
        yield Cloud(databases, written)


@pytest.fixture
def databases(populated: Cloud) -> Iterator[Cloud]:
    """Let Nova use the large cloud's databases for a test."""
    conf.register_opts(CONF)
    # There is no Placement here: who is on the way to a host is not known.
    CONF.set_override("in_flight_lookups", 0, "hpc_sched")
    CONF.set_override("cell_timeout", BUSY_MACHINE, "hpc_sched")
    try:
        with engines.used(populated.databases):
            yield populated
    finally:
        CONF.clear_override("in_flight_lookups", "hpc_sched")
        CONF.clear_override("cell_timeout", "hpc_sched")
        faults.start_afresh()
