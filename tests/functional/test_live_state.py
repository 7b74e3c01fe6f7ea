"""The live state: Nova's API and Placement in this process, reached by openstacksdk for real.

The cloud is drawn at SHOWN in :mod:`tests.functional.cloud_kinds`.
"""

import json
import logging
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest

from hpc_sched.cli import main
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.snapshot.snapshot_model import Hypervisor, Server, Snapshot
from hpc_sched.snapshot.source import connection, live, placement_providers, snapshot_file
from hpc_sched.topology import Topology
from tests.functional import cloud_file
from tests.functional.cloud_kinds import SHOWN
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_landings
from tests.functional.tested_cloud import TestedCloud
from tests.test_fits_wait import scripted

LEAVES = {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "n6"]}
HOSTS = [*LEAVES["leaf1"], *LEAVES["leaf2"], "n7"]


pytestmark = cloud_mark(SHOWN)


class Made:
    """What the tests find in the cloud."""

    def __init__(self, cloud: TestedCloud, folder: Path) -> None:
        self.cloud = cloud
        self.conf = folder / "nova.conf"
        self.log = cloud.folder / "decisions.json"
        self.conf.write_text(
            f"{SAMPLE_CONF.read_text()}\n[hpc_sched]\n"
            f"topology_file = {cloud.folder / 'topology.yaml'}\ndecision_log = {self.log}\n"
        )
        [self.group] = [
            group["id"] for group in cloud.api.get_server_groups() if group["name"] == "job"
        ]
        vms = {vm["name"]: vm["id"] for vm in cloud.api.get_servers(detail=False)}
        self.vms = [vms[name] for name in sorted(vms) if name.startswith("worker")]
        self.nowhere = [vms[name] for name in sorted(vms) if name.startswith("nowhere")]


@pytest.fixture
def made(shared_cloud: TestedCloud, tmp_path: Path) -> Iterator[Made]:
    with cloud_file.written(shared_cloud, tmp_path / "clouds.yaml"):
        yield Made(shared_cloud, tmp_path)


@pytest.fixture
def taken(made: Made) -> Snapshot:
    return live.take("test")


def hypervisor(snapshot: Snapshot, name: str) -> Hypervisor:
    [found] = [node for node in snapshot.hypervisors if node.nodename == name]
    return found


def server(snapshot: Snapshot, uuid: str) -> Server:
    [found] = [vm for vm in snapshot.servers if vm.uuid == uuid]
    return found


def command(capsys, *arguments: str) -> tuple[int, str, str]:
    handlers = list(logging.root.handlers)
    try:
        code = main.main(list(arguments))
    finally:
        # Nova logs in this process: what it logged to the command's standard error would fail
        # its requests once that is closed.
        logging.root.handlers[:] = handlers
    captured = capsys.readouterr()
    # One line a request of the API that runs in this process.
    talk = [line for line in captured.err.splitlines(True) if not line.startswith("127.0.0.1 ")]
    return code, captured.out, "".join(talk)


def test_hosts_have_what_placement_says_and_the_state_of_their_service(taken):
    assert [node.nodename for node in taken.hypervisors] == HOSTS
    empty = hypervisor(taken, "n7")
    assert empty.capacity == {"DISK_GB": 1000, "MEMORY_MB": 65536, "VCPU": 16}
    assert empty.used == {"DISK_GB": 0, "MEMORY_MB": 0, "VCPU": 0}
    assert [node.nodename for node in taken.hypervisors if not node.enabled] == ["n5"]
    assert all(node.up for node in taken.hypervisors)
    assert empty.cpu_info is not None
    assert empty.cpu_info["vendor"] == "Intel"


def test_a_host_that_is_full_is_asked_for_by_itself(taken):
    full = hypervisor(taken, "n2")
    assert full.used == {"DISK_GB": 1, "MEMORY_MB": 65536, "VCPU": 16}
    assert full.capacity == hypervisor(taken, "n7").capacity


def test_providers_below_a_host_are_added_up(taken):
    host = hypervisor(taken, "n6")
    assert (host.capacity["PCPU"], host.capacity["VGPU"], host.capacity["VCPU"]) == (10, 2, 16)


def test_the_tree_of_a_host_has_its_providers_with_the_root_first(taken):
    root, *below = hypervisor(taken, "n6").providers
    assert root.inventories.keys() == {"DISK_GB", "MEMORY_MB", "VCPU"}
    assert {provider.parent for provider in below} == {root.uuid}
    amounts = [{name: s.capacity for name, s in p.inventories.items()} for p in below]
    assert sorted(amounts, key=len) == [{"PCPU": 6}, {"PCPU": 4, "VGPU": 2}]
    assert "COMPUTE_NODE" in root.traits
    assert taken.shared_providers == ()


def test_servers_of_all_projects_have_their_place_and_their_flavor(made, taken):
    vm = server(taken, made.vms[0])
    assert (vm.status, vm.host) == ("ACTIVE", vm.nodename)
    assert (vm.flavor.name, vm.flavor.vcpus, vm.flavor.memory_mb) == ("two", 2, 512)
    assert vm.flavor.extra_specs == {"hpc:app_class": "sync"}
    assert vm.reservation_id is not None
    assert {server(taken, uuid).reservation_id for uuid in made.vms} == {vm.reservation_id}
    assert not vm.boots_from_volume
    lost = server(taken, made.nowhere[0])
    assert (lost.status, lost.host) == ("ERROR", None)


def test_groups_flavors_and_aggregates_are_whole(made, taken):
    [job] = [group for group in taken.groups if group.uuid == made.group]
    assert (job.policy, job.max_per_host) == ("anti-affinity", 2)
    assert set(made.vms) <= set(job.members)
    [whole] = [flavor for flavor in taken.flavors if flavor.name == "whole"]
    assert (whole.vcpus, whole.memory_mb, whole.root_gb) == (16, 65536, 1)
    [fast] = [found for found in taken.aggregates if found.name == "fast"]
    assert (fast.hosts, fast.metadata) == (("n4",), {"hpc:processor": "gold"})


def test_pages_and_bulk_answers_say_the_same_as_one_by_one(made, taken, monkeypatch):
    def same(other: Snapshot) -> bool:
        return [getattr(other, part) for part in parts] == [getattr(taken, part) for part in parts]

    parts = ("hypervisors", "servers", "groups", "flavors", "aggregates", "notes")
    monkeypatch.setattr(live, "PAGE", 2)
    assert same(live.take("test"))
    # Every host by itself, then all by lists.
    monkeypatch.setattr(placement_providers, "ASKED", ())
    assert same(live.take("test"))
    monkeypatch.setattr(placement_providers, "ASKED", ("PCPU:1", "VCPU:1", "DISK_GB:1"))
    monkeypatch.setattr(placement_providers, "FEW", 0)
    assert same(live.take("test"))


def test_the_calls_do_not_grow_with_hosts_that_have_room(made, monkeypatch):
    paths = []
    real = connection.Api.get

    def counted(api: connection.Api, path: str, **query: str) -> Any:
        paths.append(path)
        return real(api, path, **query)

    monkeypatch.setattr(connection.Api, "get", counted)
    live.take("test")
    single = [path for path in paths if path.startswith("/resource_providers/")]
    assert len(single) == 3 + 1  # the full host, and the one kind of several virtual GPUs
    assert len(paths) - len(single) <= 10


@pytest.mark.parametrize(
    ("cloud", "error"),
    [
        ("reader", "Nova: GET /os-hypervisors/detail: HTTP 403: needs the role admin, or reader"),
        ("no-placement", "Placement: GET /resource_providers: Unable to establish connection"),
        ("no-placement-rights", "Placement: GET /resource_providers: HTTP 403: needs the role "),
        ("gone", "cloud gone: "),
        ("nonsense", "cloud nonsense: Cloud nonsense was not found"),
    ],
)
def test_a_cloud_that_cannot_be_read_says_which_call_and_what_right_it_needs(
    made, capsys, cloud, error
):
    code, out, err = command(capsys, "fits", "--cloud", cloud, "--flavor", "two")
    assert (code, out) == (1, "")
    assert error in err


def test_a_nova_that_is_too_old_says_what_it_has(made, capsys, monkeypatch):
    monkeypatch.setattr(connection, "NOVA_VERSION", "2.999")
    code, out, err = command(capsys, "fits", "--cloud", "test", "--flavor", "two")
    assert (code, out) == (1, "")
    assert "Nova: GET /os-hypervisors/detail: HTTP 406: " in err
    assert "maximum is 2." in err


@pytest.mark.parametrize("answer", [{}, {"servers": None}, {"servers": [{"id": "x", "flavor": 5}]}])
def test_an_answer_that_lacks_what_was_asked_for_is_an_error(made, capsys, monkeypatch, answer):
    real = connection.Api.get

    def odd(api: connection.Api, path: str, **query: str) -> Any:
        return answer if path == "/servers/detail" else real(api, path, **query)

    monkeypatch.setattr(connection.Api, "get", odd)
    code, out, err = command(capsys, "fits", "--cloud", "test", "--flavor", "two")
    assert (code, out) == (1, "")
    assert "an answer of Nova or Placement is not what was expected: " in err


def test_without_openstacksdk_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "openstack", None)
    code, out, err = command(capsys, "fits", "--cloud", "test", "--flavor", "two")
    assert (code, out) == (1, "")
    assert "pip install 'hpc-sched[cloud]'" in err


@pytest.mark.default
def test_a_group_is_shown_from_the_cloud_itself(made, capsys):
    args = ("group", "show", "job", "--cloud", "test", "--config-file", str(made.conf))
    code, out, err = command(capsys, *args)
    assert code == 0
    assert err.splitlines()[0] == "note: 1 host (n7) not in the topology, each a leaf of its own"
    # Two on a host, the third on the next; the picture of the other leaf has the disabled host.
    assert "leaf1  " in out
    assert "VMs placed       3 of 12" in out
    assert "Hop-Byte cost    2\nleast possible   2" in out
    code, out, err = command(capsys, *args, "-f", "json")
    places = {row["ID"]: row["Host"] for row in json.loads(out)}
    hosts = made.cloud.hosts_of(made.vms)
    assert {uuid: places[uuid] for uuid in made.vms} == hosts


def test_what_fits_costs_what_nova_then_does(made, capsys, boot):
    args = ("fits", "--cloud", "test", "--config-file", str(made.conf), "-f", "json")
    code, out, _ = command(capsys, *args, "--flavor", "two", "--count", "14", "--summary")
    [answer] = json.loads(out)
    assert (code, answer["Fits"]) == (0, True)
    placed = Counter(made.cloud.hosts_of(boot("two", count=14, name="fits")).values())
    fabric = Topology.from_tree({"core": LEAVES}).including(HOSTS)
    assert hop_bytes_of_counts(topology=fabric, counts=placed) == answer["Hop-Byte"]


@pytest.mark.default
def test_what_does_not_fit_is_what_nova_refuses(made, capsys, boot):
    args = ("fits", "--cloud", "test", "--config-file", str(made.conf))
    code, out, _ = command(capsys, *args, "--flavor", "whole", "-f", "json")
    # n2 is full and n5 disabled, the VMs of the group are on others.
    used = set(made.cloud.hosts_of(made.vms).values())
    most = json.loads(out)[-1]["VMs"]
    assert (code, most) == (0, len(HOSTS) - 2 - len(used))
    assert command(capsys, *args, "--flavor", "whole", "--count", str(most))[0] == 0
    assert command(capsys, *args, "--flavor", "whole", "--count", str(most + 1))[0] == 3
    assert made.cloud.hosts_of(boot("whole", count=most + 1)) == {}


def test_a_group_is_waited_for_until_vms_of_others_are_gone(made, capsys, boot):
    args = ("fits", "--cloud", "test", "--config-file", str(made.conf), "--flavor", "whole")
    most = json.loads(command(capsys, *args, "-f", "json")[1])[-1]["VMs"]
    vms = boot("whole", count=most)
    waiting = (*args, "--count", "2", "--wait", "600", "-f", "json")
    with scripted(at_60=lambda: made.cloud.remove(vms[:2])):
        code, out, err = command(capsys, *waiting)
    assert code == 0
    assert {row["Readings"] for row in json.loads(out)} == {3}
    assert "0 s: group of 2 does not fit" in err
    with scripted() as time:
        assert command(capsys, *args, "--count", "99", "--wait", "600")[0] == 3
    assert time.sleeps == []


@pytest.mark.default
def test_a_snapshot_is_saved_and_answers_as_the_cloud_does(made, capsys, tmp_path):
    path = str(tmp_path / "state.json.gz")
    args = ("--cloud", "test", "--config-file", str(made.conf))
    code, out, err = command(capsys, "snapshot", "save", path, *args)
    assert (code, out) == (0, "")
    assert err.splitlines()[-1].startswith(f"{path}: 7 hosts, 13 servers, 2 server groups, ")
    saved = snapshot_file.read(path)
    assert saved.filters is not None
    assert "HPCGroupFilter" in saved.filters
    assert saved.options["decision_log"] == str(made.log)
    assert saved.topology is not None
    asked = ("fits", "--flavor", "two", "-f", "json")
    live_answer = command(capsys, *asked, *args)
    assert command(capsys, *asked, "--snapshot", path) == live_answer
    assert live_answer[0] == 0
    shown = command(capsys, "group", "show", "job", *args)
    assert command(capsys, "group", "show", "job", "--snapshot", path) == shown
    code, _, err = command(
        capsys, "snapshot", "save", path, *args, "--no-names", "--decisions", "0"
    )
    assert code == 0
    nameless = snapshot_file.read(path)
    assert not any("worker" in vm.name for vm in nameless.servers)
    assert nameless.decisions == ()


def test_a_snapshot_is_its_writers_alone_and_has_no_password_of_cloud_and_nova(
    made, capsys, tmp_path
):
    secret = tmp_path / "secret.conf"
    secret.write_text(
        "[DEFAULT]\ntransport_url = rabbit://nova:SecretQueue@host/\n"
        "[api_database]\nconnection = mysql://nova:SecretDb@host/nova_api\n"
        "[placement]\npassword = SecretPlacement\n"
    )
    path = tmp_path / "state.json"
    before = os.umask(0)
    try:
        configs = ("--config-file", str(made.conf), "--config-file", str(secret))
        assert command(capsys, "snapshot", "save", str(path), "--cloud", "test", *configs)[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_text()
    assert "HPCGroupFilter" in content
    assert "Secret" not in content
    # Nor where the cloud is, which clouds.yaml names next to the token.
    assert made.cloud.api.base_url not in content
    assert made.cloud.placement_fixture.endpoint not in content
    assert '"token"' not in content


def test_a_snapshot_without_a_nova_conf_says_what_it_lacks(made, capsys, tmp_path):
    path = tmp_path / "state.json"
    code, _, err = command(capsys, "snapshot", "save", str(path), "--cloud", "test")
    assert code == 0
    assert "note: no nova.conf here: saved without its options and decision log" in err
    assert "without the fabric" in err
    code, _, err = command(capsys, "fits", "--snapshot", str(path), "--flavor", "two")
    assert code == 1
    assert "name a topology" in err


@pytest.mark.default
def test_decisions_are_found_by_server_group_and_request(made, capsys, tmp_path):
    log = ("--decision-log", str(made.log))
    cloud = ("--cloud", "test")
    code, out, err = command(capsys, "explain", made.group, *log)
    assert (code, err) == (0, "")
    first, second = out.split("\n\n")
    assert "planned: server group" in first
    assert "refused: server group" in second
    assert "9 to place" in second
    # Any of the VMs, the newest first; by name through the cloud.
    for vm in made.vms:
        assert command(capsys, "explain", vm, *log, "--last")[1] == first + "\n"
    code, out, err = command(capsys, "explain", "job", *log, *cloud, "--last")
    assert (code, err) == (0, f"note: looking for decisions on {made.group}\n")
    record = json.loads(command(capsys, "explain", made.group, *log, "--last", "--json")[1])
    assert record["request_id"].startswith("req-")
    assert command(capsys, "explain", record["request_id"], *log)[1] == out


def test_the_request_id_is_the_one_that_the_api_tells_its_user(made, capsys):
    landed = len(read_landings(made.log))
    cloud = openstack.connect(cloud="test")
    answer = cloud.compute.post(
        "/servers",
        json={
            "server": {
                "name": "asked",
                "imageRef": "155d900f-4e14-4e4c-a73d-069cbf4541e6",
                "flavorRef": "two",
                "networks": "none",
                "min_count": 2,
                "max_count": 2,
            }
        },
        microversion="2.87",
    )
    assert answer.status_code == 202
    request = answer.headers["x-openstack-request-id"]
    uuid = answer.json()["server"]["id"]
    listed = made.cloud.api.get_servers(
        detail=False, search_opts={"name": "asked", "all_tenants": True}
    )
    made.cloud.wait([vm["id"] for vm in listed])
    read_landings(made.log, landed + 1)
    code, out, _ = command(capsys, "explain", request, "--decision-log", str(made.log))
    assert code == 0
    assert f"request     {request}" in out
    # The second VM of a request without a group is found by what they have in common.
    [other] = {vm["id"] for vm in listed} - {uuid}
    found = {
        command(capsys, "explain", vm, "--decision-log", str(made.log), "--cloud", "test")[1]
        for vm in (uuid, other)
    }
    assert found == {out}
    for vm in listed:
        made.cloud.api.delete_server(vm["id"])


@pytest.mark.default
def test_a_vm_of_others_that_was_forced_onto_a_dedicated_host_is_found(made, cloud, capsys):
    command = ["check", "sharing", "--cloud", "test", "--config-file", str(made.conf)]
    assert main.main(command) == 0
    capsys.readouterr()
    extreme = cloud.flavor("extreme", extra_specs={"hpc:app_class": "extreme"})
    plain = cloud.flavor("plain")
    forced = [cloud.boot(kind, host="n7", name=kind)[0] for kind in (extreme, plain)]
    cloud.wait(forced)
    try:
        assert main.main([*command, "-f", "json"]) == 1
    finally:
        cloud.remove(forced)
    [row] = json.loads(capsys.readouterr().out)
    assert (row["Host"], row["Rule"], row["VMs"]) == ("n7", "dedicated host", "extreme plain")
