"""Schedulers in processes of their own, on the databases and the Placement of this process.

Placement is served over HTTP. What nova-api and the conductor write is written here.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from placement import deploy

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue import nova_release
from tests.contention.wsgi_server import Application, make_server
from tests.functional.claims import STAYS_UP, ClaimsOnly
from tests.functional.clouds import ROOT, SAMPLE_CONF
from tests.functional.database_files import write_conf
from tests.functional.tested_cloud import BUSY_MACHINE

needs_files = pytest.mark.skipif(
    not nova_release.is_threaded(),
    reason="on eventlet Nova's fixtures keep the databases in memory, for one process alone",
)


@dataclass
class Scheduler:
    """A scheduler's process."""

    process: subprocess.Popen[str]

    def begin(self, spec: objects.RequestSpec, uuids: list[str]) -> None:
        """Send a request."""
        asked = {"spec": spec.obj_to_primitive(), "uuids": uuids}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Mapping[str, object]:
        """Return what it says next."""
        line = self.process.stdout.readline()
        assert line, "the scheduler has ended"
        return json.loads(line)

    def kill(self) -> None:
        """End the process at once, wherever it is."""
        self.process.kill()
        self.process.wait()


@contextmanager
def served(
    cloud: NovaCloud,
    folder: Path,
    topology: Path,
    wrap: Callable[[Application], Application] = lambda application: application,
) -> Iterator[Path]:
    """Serve the cloud's Placement; yield nova.conf for processes that use the cloud.

    :param wrap: returns what is served in place of Placement
    """
    with placement_served(cloud, wrap) as url, reachable_databases(cloud) as databases:
        ((_, down_time), seconds), *_ = STAYS_UP.items()
        yield write_conf(
            folder / "nova.conf",
            databases,
            {
                "DEFAULT": {"transport_url": "fake://", down_time: str(seconds)},
                "placement": {"auth_type": "none", "endpoint_override": url},
                "hpc_sched": {"topology_file": str(topology), "cell_timeout": str(BUSY_MACHINE)},
            },
            text=SAMPLE_CONF.read_text().partition("[hpc_sched]")[0],
        )


@contextmanager
def placement_served(cloud: NovaCloud, wrap: Callable[[Application], Application]) -> Iterator[str]:
    """Yield the URL of the cloud's Placement, where every request is an admin's."""
    server = make_server(wrap(deploy.loadapp(cloud.placement_fixture.conf_fixture.conf)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def reachable_databases(cloud: NovaCloud) -> Iterator[dict[str, dict[str, str]]]:
    """Yield the options that name the cloud's databases, while its cells name theirs."""
    managers = cloud._cell_databases._ctxt_mgrs
    urls, before = {}, {}
    for name, cell in cloud.cell_mappings.items():
        before[name] = cell.database_connection
        manager = managers[cell.database_connection]
        urls[name] = str(manager.writer.get_engine().url)
        managers[urls[name]] = manager
        cell.database_connection = urls[name]
        cell.save()
    api = str(api_db.context_manager.writer.get_engine().url)
    try:
        yield {"api_database": {"connection": api}, "database": {"connection": urls["cell1"]}}
    finally:
        for name, cell in cloud.cell_mappings.items():
            cell.database_connection = before[name]
            cell.save()


@contextmanager
def started(conf: Path, *logs: Path) -> Iterator[list[Scheduler]]:
    """Yield schedulers that take requests, one for each log; killed afterwards.

    The logs must have no tracebacks.
    """
    found = []
    with ExitStack() as stack:
        for log in logs:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.functional.scheduler_process"),
                    *("--config-file", conf, "--log-file", log),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                text=True,
            )
            found.append(Scheduler(process))
            stack.callback(found[-1].kill)
        for scheduler in found:
            assert scheduler.answer() == "ready"
        yield found
    for log in logs:
        assert "Traceback" not in log.read_text()


def add_group(claims: ClaimsOnly, policy: str, vms: list[str]) -> str:
    """Return a group of VMs that nova-api has accepted and that have no place yet."""
    context = nova_context.get_admin_context()
    group = claims.cloud.server_group(f"group {vms[0]}", policy)
    group_id = objects.InstanceGroup.get_by_uuid(context, group).id
    with api_db.context_manager.writer.using(context) as session:
        session.execute(
            sa.insert(api_models.InstanceGroupMember),
            [{"group_id": group_id, "instance_uuid": vm} for vm in vms],
        )
    return group
