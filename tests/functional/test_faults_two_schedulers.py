"""Two schedulers, processes of their own, place requests of one group at the same time.

Databases and Placement are those of this process; Placement is served over HTTP.

::

                       core
            /           |          \\
         leaf1        leaf2        leaf3
        n01-n08      n09-n16      n17-n24
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref import simple_server

import pytest
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from oslo_utils import uuidutils
from placement import deploy

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue import nova_release
from tests.functional import build_requests, outcomes, rows
from tests.functional.claims import STAYS_UP, ClaimsOnly, request
from tests.functional.clouds import ROOT, SAMPLE_CONF, leaves_used, write_topology
from tests.functional.database_files import write_conf
from tests.functional.states import wishing

pytestmark = pytest.mark.skipif(
    not nova_release.is_threaded(),
    reason="on eventlet Nova's fixtures keep the databases in memory, for one process alone",
)

LEAVES = {f"leaf{n + 1}": [f"n{8 * n + m:02}" for m in range(1, 9)] for n in range(3)}
ROUNDS = 3


class _Threading(ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True


class _Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@contextmanager
def placement_served(cloud: NovaCloud) -> Iterator[str]:
    """Yield the URL of the cloud's Placement, where every request is an admin's."""
    app = deploy.loadapp(cloud.placement_fixture.conf_fixture.conf)

    def as_admin(environ, start_response):
        return app({**environ, "HTTP_X_AUTH_TOKEN": "admin"}, start_response)

    server = simple_server.make_server("127.0.0.1", 0, as_admin, _Threading, _Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reachable_databases(cloud: NovaCloud) -> dict[str, dict[str, str]]:
    """Return the options that name the cloud's databases, and have its cells name theirs."""
    managers = cloud._cell_databases._ctxt_mgrs
    urls = {}
    for name, cell in cloud.cell_mappings.items():
        manager = managers[cell.database_connection]
        urls[name] = str(manager.writer.get_engine().url)
        managers[urls[name]] = manager
        cell.database_connection = urls[name]
        cell.save()
    api = str(api_db.context_manager.writer.get_engine().url)
    return {"api_database": {"connection": api}, "database": {"connection": urls["cell1"]}}


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


@pytest.fixture(scope="module")
def claims(start_cloud: Callable[..., NovaCloud]) -> ClaimsOnly:
    claims = ClaimsOnly(start_cloud(with_scheduler=False))
    claims.add_hosts(dict.fromkeys([host for below in LEAVES.values() for host in below], 0))
    return claims


@pytest.fixture(scope="module")
def schedulers(
    claims: ClaimsOnly, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Scheduler]]:
    """Return two schedulers that have started."""
    folder: Path = tmp_path_factory.mktemp("schedulers")
    topology = write_topology(folder, LEAVES)
    with ExitStack() as stack:
        url = stack.enter_context(placement_served(claims.cloud))
        ((_, down_time), seconds), *_ = STAYS_UP.items()
        options = {
            "DEFAULT": {"transport_url": "fake://", down_time: str(seconds)},
            "placement": {"auth_type": "none", "endpoint_override": url},
        }
        enabled = SAMPLE_CONF.read_text().partition("[hpc_sched]")[0]
        path = write_conf(
            folder / "nova.conf",
            reachable_databases(claims.cloud),
            options,
            {"hpc_sched": {"topology_file": str(topology)}},
            text=enabled,
        )
        found = []
        for number in range(2):
            log = folder / f"log{number}"
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.functional.scheduler_process"),
                    *("--config-file", path, "--log-file", log),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            found.append(Scheduler(process))
        for scheduler in found:
            assert scheduler.answer() == "ready"
        yield found
    for number in range(2):
        text = (folder / f"log{number}").read_text()
        assert "Traceback" not in text


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


def place_at_once(
    claims: ClaimsOnly,
    schedulers: list[Scheduler],
    count: int,
    policy: str = "soft-anti-affinity",
    vcpus: int = 16,
    **constraints: object,
) -> list[outcomes.Outcome]:
    """Have each scheduler place VMs of one group, at the same moment; undo it afterwards."""
    vms = [[uuidutils.generate_uuid() for _ in range(count)] for _ in schedulers]
    group = add_group(claims, policy, [vm for own in vms for vm in own])
    for own in vms:
        build_requests.add(own, f"r-{own[0]}")
    asked = [
        request(
            count=count,
            group=group,
            policy=policy,
            vcpus=vcpus,
            extra_specs=wishing(**constraints),
            uuid=own[0],
        )
        for own in vms
    ]
    for scheduler, spec, own in zip(schedulers, asked, vms, strict=True):
        scheduler.begin(spec, own)
    found = []
    for scheduler, own in zip(schedulers, vms, strict=True):
        said = scheduler.answer()
        found.append(outcomes.Outcome(own, said.get("hosts", []), said.get("refused"), 0.0, 0.0))
        claims.consumers += own
    try:
        outcomes.check_nothing_lost(claims, found)
    finally:
        claims.release()
        rows.clear(claims.cloud)
    return found


@pytest.mark.parametrize("wish", [{"require": "leaf"}, {"max_leaves": 1}], ids=str)
def test_both_place_under_the_same_switch_where_that_has_room(claims, schedulers, wish):
    for _ in range(ROUNDS):
        both = place_at_once(claims, schedulers, 3, **wish)
        assert not any(outcome.refused for outcome in both)
        assert len(leaves_used(LEAVES, [h for outcome in both for h in outcome.hosts])) == 1


def test_both_place_on_the_same_host_where_affinity_is_hard(claims, schedulers):
    for _ in range(ROUNDS):
        both = place_at_once(claims, schedulers, 3, policy="affinity", vcpus=1)
        assert not any(outcome.refused for outcome in both)
        assert len({host for outcome in both for host in outcome.hosts}) == 1


def test_a_group_size_that_no_switch_holds_is_refused_by_both(claims, schedulers):
    both = place_at_once(claims, schedulers, 6, require="leaf", group_size=12)
    assert all(outcome.refused for outcome in both)


def test_one_is_placed_where_no_switch_has_room_for_both(claims, schedulers):
    """Each alone would fit under any switch; together they would break the constraint."""
    for _ in range(ROUNDS):
        both = place_at_once(claims, schedulers, 6, require="leaf")
        assert sum(not outcome.refused for outcome in both) == 1
        assert len(leaves_used(LEAVES, [h for outcome in both for h in outcome.hosts])) == 1
