"""The fabric changes while the scheduler runs: in the background, as a whole, last good kept."""

import errno
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest
from nova import context as nova_context
from nova import objects

from hpc_sched import digests, exceptions, topology
from hpc_sched.configuration import topology_options
from hpc_sched.nova_glue.io import loaded_topology, periodic_thread
from hpc_sched.nova_glue.io.aggregates_driver import AggregatesDriver
from hpc_sched.snapshot.snapshot_model import Aggregate
from hpc_sched.topology import canonical_text
from hpc_sched.topology.readers import aggregate_tree
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import faults
from tests.functional.cloud_kinds import TWO_BY_FOUR
from tests.functional.clouds import four_by_eight, write_topology
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.states import configured, host_state, known, place, spec, weigh
from tests.functional.thin_cloud import ThinCloud
from tests.ib_dumps import Fabric

CONF = nova.conf.CONF
LEAVES = four_by_eight()
# The same hosts, leaf4 gone and its hosts under leaf1.
MOVED = {
    **{k: v for k, v in LEAVES.items() if k != "leaf4"},
    "leaf1": LEAVES["leaf1"] + LEAVES["leaf4"],
}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Read the fabric of four leaves of eight from a file."""
    path = write_topology(tmp_path, LEAVES)
    with configured(path):
        yield path


@pytest.fixture
def change(path: Path, tmp_path: Path) -> Callable[[dict[str, list[str]] | str], None]:
    """Replace the file by another, as an operator does: by a move."""

    def change_(new: dict[str, list[str]] | str) -> None:
        folder = tmp_path / "new"
        folder.mkdir(exist_ok=True)
        if isinstance(new, str):
            replacement = folder / "text"
            replacement.write_text(new)
        else:
            replacement = write_topology(folder, new)
        replacement.replace(path)

    return change_


def said(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("hpc_sched") and record.levelname == level
    ]


def test_a_file_that_changes_is_read_again_and_told_in_one_line(change, caplog):
    caplog.clear()
    change(MOVED)
    assert loaded_topology.reload()
    assert len(loaded_topology.current().topology.leaves) == 3
    line, digests = said(caplog, "INFO")
    assert "leaf4" in line
    assert "now 32 hosts, 3 leaves" in line
    assert digests.endswith("(yaml, 32 hosts, 3 leaves, depth 2)")


def test_a_file_that_is_touched_or_only_written_in_another_way_changes_nothing(
    path, change, caplog
):
    before = loaded_topology.current()
    caplog.clear()
    os.utime(path, (1, 1))
    assert not loaded_topology.reload()
    change(path.read_text() + "\n# a remark\n")
    assert not loaded_topology.reload()
    assert loaded_topology.current() is before
    assert said(caplog, "INFO") == []


@pytest.mark.parametrize(
    ("host", "is_changed"),
    [("{name: n1, processor: own}", False), ("n1", True)],
    ids=["each host states its own type", "a host takes it from the root"],
)
def test_another_processor_type_of_the_root_is_seen_where_a_host_has_it(
    path, change, host, is_changed
):
    described = (
        f"switches: [{{name: core, processor: {type_}, switches: [{{name: a, hosts: [{host}]}}]}}]"
        for type_ in ("old", "new")
    )
    change(next(described))
    assert loaded_topology.reload()
    change(next(described))
    assert loaded_topology.reload() == is_changed
    used = loaded_topology.current()
    assert used.digest == digests.of(canonical_text.lines_of(topology.load("yaml", path=path)))


#        core
#      /   |   \
#  leaf1 leaf2 leaf3     uplinks and links of hosts as a test states them
LINKED = """\
{stated}
switches:
- name: core
  switches:
  - {{name: leaf1, hosts: n1}}
  - {{name: leaf2, hosts: n2}}
  - {{name: leaf3, {own}hosts: n3}}
"""


def linked(stated: str = "", own: str = "") -> str:
    return LINKED.format(stated=stated, own=own)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            linked("uplinks: {leaf: 4 x 100}"),
            linked("uplinks: {leaf: 4 x 200}"),
            "links changed: leaf[1-3]",
        ),
        (linked(), linked("uplinks: {leaf: 4 x 100}"), "links changed: leaf[1-3]"),
        (linked("uplinks: {leaf: 4 x 100}"), linked(), "links changed: leaf[1-3]"),
        (
            linked("uplinks: {leaf: 4 x 100}"),
            linked("uplinks: {leaf: 4 x 100}", "uplinks: 3 x 100, "),
            "links changed: leaf3",
        ),
        (
            linked("oversubscription: {leaf: 4}"),
            linked("oversubscription: {leaf: 2}"),
            "oversubscription changed: leaf",
        ),
        (linked(), linked("oversubscription: {leaf: 2}"), "oversubscription changed: leaf"),
        (
            linked("host_links: 1 x 100"),
            linked("host_links: 2 x 100"),
            "host links changed: n[1-3]",
        ),
    ],
)
def test_changed_links_and_ratios_are_used_though_no_place_has_changed(
    change, caplog, old, new, line
):
    change(old)
    assert loaded_topology.reload()
    caplog.clear()
    change(new)
    assert loaded_topology.reload()
    assert said(caplog, "INFO")[0].startswith(f"Topology changed: {line}; now 3 hosts, 3 leaves")
    used, read = (loaded_topology.current().topology, YamlFileDriver(path="t"))
    wanted = read.parse(Text(new.encode(), "t"))
    assert used.details() == wanted.details()
    assert (used.oversubscription, used.host_links) == (wanted.oversubscription, wanted.host_links)


def test_leaves_with_half_of_the_uplinks_are_one_warning_a_load(change, caplog):
    caplog.clear()
    change(linked("uplinks: {leaf: 4 x 100}", "uplinks: 2 x 100, "))
    assert loaded_topology.reload()
    sentence = (
        "Topology: leaf with uplinks of 2 x 100 Gb/s, at most half of the median, 4 x 100 Gb/s: "
        "leaf3"
    )
    assert said(caplog, "WARNING") == [sentence]
    assert not loaded_topology.reload()
    assert said(caplog, "WARNING") == [sentence]


def test_a_level_of_uplink_oversubscription_that_the_fabric_does_not_have_is_named(change, caplog):
    CONF.set_override("uplink_oversubscription", {"leaf": 4.0, "row": 2.0}, "hpc_sched")
    caplog.clear()
    change(MOVED)
    assert loaded_topology.reload()
    assert said(caplog, "WARNING") == [
        "Topology: uplink_oversubscription names level 'row', expected one of leaf, pod"
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("switches: 7\n", ":1: switches: expected a list"),
        ("", ": the file is empty"),
        (None, ": cannot be read: No such file"),
    ],
    ids=["a wrong one", "an empty one", "none"],
)
def test_the_last_good_fabric_is_kept_with_one_error_until_the_file_is_right_again(
    path, change, caplog, text, error
):
    before, good = loaded_topology.current(), path.read_text()
    caplog.clear()
    if text is None:
        path.unlink()
    else:
        change(text)
    for _ in range(3):
        assert not loaded_topology.reload()
    assert loaded_topology.current() is before
    [line] = said(caplog, "ERROR")
    assert f"{path}{error}" in line
    assert "the last good topology stays in use" in line
    change(good)
    assert not loaded_topology.reload()
    assert said(caplog, "INFO") == [f"The topology is right again, and unchanged ({path})"]
    change(MOVED)
    assert loaded_topology.reload()


def test_every_new_mistake_is_an_error_of_its_own(change, caplog):
    caplog.clear()
    for text in ("switches: 7\n", "switches: 8\n", "switches: 8\n"):
        change(text)
        loaded_topology.reload()
    assert len(said(caplog, "ERROR")) == 2


@pytest.mark.parametrize(
    "wrong",
    [ZeroDivisionError("boom"), MemoryError()],
    ids=["a mistake of the driver's", "no memory"],
)
def test_whatever_a_driver_raises_is_one_error_and_it_is_asked_again(
    change, caplog, monkeypatch, wrong
):
    before = loaded_topology.current()
    caplog.clear()
    change(MOVED)
    with monkeypatch.context() as patch:
        patch.setattr(YamlFileDriver, "parse_text", raising(wrong))
        for _ in range(3):
            assert not loaded_topology.reload()
    assert loaded_topology.current() is before
    [line] = said(caplog, "ERROR")
    assert f"{type(wrong).__name__}: {wrong}; the last good topology stays in use" in line
    assert loaded_topology.reload()


def raising(error: Exception) -> Callable[..., None]:
    def broken(*_args: object) -> None:
        raise error

    return broken


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("topology_reload_interval", "60s", "invalid literal for int"),
        ("topology_reload_interval", "-1", "greater than or equal to 0"),
        ("topology_command_timeout", "nan", "expected a finite number"),
        ("topology_host_pattern", "(", "not a regular expression"),
    ],
)
def test_an_option_that_becomes_wrong_on_sighup_is_one_error_and_the_watch_goes_on(
    path, change, tmp_path, monkeypatch, caplog, option, value, error
):
    nova_conf = tmp_path / "nova.conf"
    nova_conf.write_text("")
    CONF([], default_config_files=[str(nova_conf)])
    CONF.clear_override("topology_reload_interval", "hpc_sched")
    CONF.set_override("topology_file", str(path), "hpc_sched")
    monkeypatch.setattr(topology_options, "TOPOLOGY_RELOAD_INTERVAL", 0.05)
    HopByteWeigher()
    monkeypatch.setattr(
        loaded_topology,
        "watch",
        periodic_thread.PeriodicThread(loaded_topology.reload, loaded_topology.reload_interval),
    )
    caplog.clear()
    nova_conf.write_text(f"[hpc_sched]\n{option} = {value}\n")
    CONF.mutate_config_files()
    loaded_topology.current()
    faults.wait_until(lambda: bool(said(caplog, "ERROR")))
    time.sleep(0.2)
    [line] = said(caplog, "ERROR")
    assert option in line
    assert error in line
    assert "the last good topology stays in use" in line
    change(MOVED)
    nova_conf.write_text("[hpc_sched]\ntopology_reload_interval = 0\n")
    CONF.mutate_config_files()
    faults.wait_until(lambda: len(loaded_topology.current().topology.leaves) == 3)


def test_in_shadow_mode_a_wrong_option_is_one_error_and_the_fabric_is_read_all_the_same(
    path, change, tmp_path, caplog
):
    nova_conf = tmp_path / "nova.conf"
    nova_conf.write_text("[hpc_sched]\nmode = shadow\nplanning_timeout = long\n")
    CONF([], default_config_files=[str(nova_conf)])
    CONF.set_override("topology_file", str(path), "hpc_sched")
    HopByteWeigher()
    assert not loaded_topology.reload()
    change(MOVED)
    assert loaded_topology.reload()
    assert len(loaded_topology.current().topology.leaves) == 3
    status = loaded_topology.status()
    assert status is not None
    assert not status.is_refused
    [line] = said(caplog, "ERROR")
    assert "planning_timeout" in line


def test_a_new_scheduler_does_not_start_with_what_an_old_one_keeps(change):
    change("switches: 7\n")
    assert not loaded_topology.reload()
    with pytest.raises(ValueError, match="expected a list"):
        HopByteWeigher()


def test_a_request_keeps_the_fabric_that_it_began_with(group, change):
    group(left=8)
    request = spec(count=8)
    states = [host_state(host) for below in LEAVES.values() for host in below]
    weigher = HopByteWeigher()
    first = place(states, weigh(weigher, states, request), request)
    leaf = loaded_topology.current().topology.leaf_of(first)
    change({"all": [host for below in LEAVES.values() for host in below][::-1]})
    assert loaded_topology.reload()
    placed = {first}
    for _ in range(7):
        placed.add(place(states, weigh(weigher, states, request), request))
    assert placed == set(LEAVES[leaf])
    assert len(known(request).group.inputs.topology.leaves) == 4
    assert loaded_topology.current().topology.leaves == ("all",)


def test_options_that_change_are_taken_over_on_sighup(path, change, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    CONF.set_override("topology_file", str(write_topology(other, MOVED)), "hpc_sched")
    # What Nova's service does on SIGHUP; the hook has been there since the first weigher.
    HopByteWeigher()
    CONF.set_override("topology_file", str(path), "hpc_sched")
    CONF.mutate_config_files()
    faults.wait_until(lambda: len(loaded_topology.current().topology.leaves) == 4)


def test_a_command_is_run_again_and_may_take_the_place_of_the_file(path):
    command = [sys.executable, "-c", "print('switches: [{name: a, hosts: [h1]}]')"]
    CONF.set_override("topology_file", None, "hpc_sched")
    CONF.set_override("topology_command", command, "hpc_sched")
    assert loaded_topology.reload()
    assert loaded_topology.current().topology.hosts == ("h1",)


def test_a_command_that_fails_is_one_error_whatever_process_it_names(path, caplog):
    said_by = "import os, sys; sys.exit(f'ibwarn: [{os.getpid()}] cannot open UMAD port')"
    caplog.clear()
    CONF.set_override("topology_file", None, "hpc_sched")
    for command, errors in ((said_by, 1), (said_by, 1), ("import sys; sys.exit('no')", 2)):
        CONF.set_override("topology_command", [sys.executable, "-c", command], "hpc_sched")
        assert not loaded_topology.reload()
        assert len(said(caplog, "ERROR")) == errors
    assert len(loaded_topology.current().topology.leaves) == 4


def test_a_command_that_cannot_be_killed_leaves_the_last_good_topology(path, caplog, unkillable):
    caplog.clear()
    CONF.set_override("topology_file", None, "hpc_sched")
    command = ["sh", "-c", "trap '' TERM; exec sleep 3600"]
    CONF.set_override("topology_command", command, "hpc_sched")
    CONF.set_override("topology_command_timeout", 0.5, "hpc_sched")
    # None of them waits for the hour that the command takes.
    for _ in range(4):
        assert not loaded_topology.reload()
    assert len(loaded_topology.current().topology.leaves) == 4
    timeout, refused = said(caplog, "ERROR")
    stays = "could not be killed: Operation not permitted; the last good topology stays in use"
    assert f"{shlex.join(command)}: no end within 0.5 s; process " in timeout
    assert f"{shlex.join(command)}: not started: process " in refused
    assert timeout.endswith(stays)
    assert refused.endswith(stays)


def test_a_change_is_seen_in_the_background_while_requests_go_on(change, monkeypatch):
    watch = periodic_thread.PeriodicThread(loaded_topology.reload, lambda: 0.05)
    monkeypatch.setattr(loaded_topology, "watch", watch)
    loaded_topology.current()
    change(MOVED)
    faults.wait_until(lambda: len(loaded_topology.current().topology.leaves) == 3)
    change(LEAVES)
    faults.wait_until(lambda: len(loaded_topology.current().topology.leaves) == 4)
    watch.interval = lambda: 0  # the thread ends with the process


def test_the_watch_looks_once_at_its_start_and_then_only_when_it_is_woken():
    looks: list[float] = []
    watch = periodic_thread.PeriodicThread(lambda: looks.append(0), lambda: 3600)
    assert not watch.wake()
    watch.start()
    watch.start()
    faults.wait_until(lambda: len(looks) == 1)
    assert watch.wake()
    faults.wait_until(lambda: len(looks) == 2)
    time.sleep(0.2)
    assert len(looks) == 2


def test_without_an_interval_the_watch_looks_only_when_it_is_woken():
    looks: list[float] = []
    watch = periodic_thread.PeriodicThread(lambda: looks.append(0), lambda: 0)
    watch.start()
    time.sleep(0.2)
    assert looks == []
    watch.wake()
    faults.wait_until(lambda: len(looks) == 1)


def test_the_watch_goes_on_after_an_error(caplog):
    looks: list[float] = []

    def look() -> None:
        looks.append(0)
        raise ZeroDivisionError("boom")

    watch = periodic_thread.PeriodicThread(look, lambda: 0.05)
    watch.start()
    faults.wait_until(lambda: len(looks) >= 3)
    watch.interval = lambda: 0
    assert "The thread 'hpc_sched reload' failed" in caplog.text


def test_many_threads_start_one_watch():
    before = threading.active_count()
    watch = periodic_thread.PeriodicThread(lambda: None, lambda: 0)
    threads = [threading.Thread(target=watch.start) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert threading.active_count() == before + 1


def test_a_request_is_served_where_no_thread_can_be_started(monkeypatch, caplog):
    looks: list[float] = []
    watch = periodic_thread.PeriodicThread(lambda: looks.append(0), lambda: 3600)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", raising(RuntimeError("can't start new thread")))
        watch.start()
        assert not watch.wake()
    assert "The thread 'hpc_sched reload' cannot be started: can't start" in caplog.text
    watch.start()
    faults.wait_until(lambda: len(looks) == 1)


def test_a_worker_that_is_forked_has_a_watch_of_its_own(tmp_path):
    """Nova builds weighers in the parent and forks its workers."""
    code = """
import os, sys, time
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
looks = []
watch = PeriodicThread(lambda: looks.append(os.getpid()), lambda: 0.05)
watch.start()
while not looks: time.sleep(0.01)
child = os.fork()
if not child:
    looks.clear()
    assert not watch.wake()
    watch.start()
    deadline = time.monotonic() + 120
    while not looks and time.monotonic() < deadline: time.sleep(0.01)
    os._exit(0 if looks and set(looks) == {os.getpid()} else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.fixture
def in_aggregates(shared_cloud: ThinCloud) -> Iterator[ThinCloud]:
    """Return a cloud in which a test makes aggregates and reads its fabric from them."""
    before = {name: CONF.hpc_sched[name] for name in ("topology_driver", "topology_file")}
    yield shared_cloud
    context = nova_context.get_admin_context()
    for one in objects.AggregateList.get_all(context):
        # Placement has those of computes; other hosts are rows that a test has written.
        for host in list(one.hosts):
            if host in shared_cloud.thin:
                shared_cloud.api.remove_host_from_aggregate(one.id, host)
            else:
                one.delete_host(host)
        shared_cloud.scheduler.manager.delete_aggregate(context, one)
        objects.Aggregate.get_by_id(context, one.id).destroy()
    shared_cloud.flags(**before, group="hpc_sched")
    loaded_topology.load()


@cloud_mark(TWO_BY_FOUR)
def test_aggregates_that_change_take_effect_without_a_restart(in_aggregates, monkeypatch):
    """Through the API of a real Nova; the fabric is what its database says."""
    cloud, api = in_aggregates, in_aggregates.api

    def aggregate(name: str, hosts: list[str], **metadata: str) -> int:
        made = api.post_aggregate({"aggregate": {"name": name}})
        for host in hosts:
            api.add_host_to_aggregate(made["id"], host)
        said = {f"hpc:{key}": value for key, value in metadata.items()}
        api.post_aggregate_action(made["id"], {"set_metadata": {"metadata": said}})
        return int(made["id"])

    aggregate("rack1", ["n1", "n2"], leaf="l1", pod="p1")
    second = aggregate("rack2", ["n3"], leaf="l2", pod="p1")
    aggregate("no rack", ["n4"], processor="gold")
    cloud.flags(topology_driver="aggregates", topology_file=None, group="hpc_sched")
    HopByteWeigher()
    loaded_topology.reload()
    known = loaded_topology.current().topology
    assert known.leaves == ("l1", "l2")
    assert known.hops("n1", "n3") == 3
    assert "n4" not in known

    monkeypatch.setattr(
        loaded_topology,
        "watch",
        periodic_thread.PeriodicThread(loaded_topology.reload, lambda: 0.1),
    )
    loaded_topology.current()
    api.add_host_to_aggregate(second, "n4")
    faults.wait_until(lambda: loaded_topology.current().topology.hosts_of("l2") == ("n3", "n4"))
    api.post_aggregate_action(second, {"set_metadata": {"metadata": {"hpc:pod": "p2"}}})
    faults.wait_until(lambda: loaded_topology.current().topology.hops("n1", "n3") == 5)
    loaded_topology.watch.interval = lambda: 0
    # A contradiction: n01 would be under two leaves.
    aggregate("rack3", ["n1"], leaf="l3")
    assert not loaded_topology.reload()
    assert "host 'n1' is under leaf 'l1' (aggregate 'rack1')" in cloud.stdlog.logger.output
    assert loaded_topology.current().topology.leaf_of("n1") == "l1"


@cloud_mark(TWO_BY_FOUR)
def test_aggregates_are_read_with_two_queries_however_many_there_are(in_aggregates):
    context = nova_context.get_admin_context()
    for number in range(20):
        made = objects.Aggregate(context, name=f"a{number}", metadata={"hpc:leaf": f"l{number}"})
        made.create()
        for host in range(5):
            made.add_host(f"n{number}-{host}")
    with collected() as sent:
        found = AggregatesDriver().load()
    assert len(found.hosts) == 100
    assert len(sent) == 2


@cloud_mark(TWO_BY_FOUR)
def test_racks_and_availability_zones_of_aggregates_are_levels_by_their_keys(in_aggregates):
    #            fabric
    #       az1          az2
    #    az1/1  2       az2/1
    #     n1   n2       n3 n4
    api = in_aggregates.api

    def aggregate(name: str, hosts: list[str], zone: str | None = None, **metadata: str) -> int:
        body = {"name": name} | ({"availability_zone": zone} if zone else {})
        made = api.post_aggregate({"aggregate": body})
        for host in hosts:
            api.add_host_to_aggregate(made["id"], host)
        if metadata:
            api.post_aggregate_action(made["id"], {"set_metadata": {"metadata": metadata}})
        return int(made["id"])

    aggregate("east", ["n1", "n2"], "az1")
    aggregate("west", ["n3", "n4"], "az2")
    for name, hosts, rack in (("r1", ["n1"], "1"), ("r2", ["n2"], "2"), ("r3", ["n3"], "1")):
        aggregate(name, hosts, rack=rack, **{"hpc:processor": "gold"})
    last = aggregate("r4", ["n4"], rack="1")
    keys = {"leaf": "rack", "pod": "availability_zone"}
    driver = AggregatesDriver(aggregate_key=keys)
    with collected() as sent:
        read = driver.read()
    assert len(sent) == 2
    found = driver.parse(read)
    assert found.leaves == ("2", "az1/1", "az2/1")
    assert [found.hops("n1", host) for host in ("n2", "n3")] == [3, 5]
    assert found.hops("n3", "n4") == 1
    mark = driver.mark(read)
    assert driver.mark(driver.read()) == mark
    api.post_aggregate_action(last, {"set_metadata": {"metadata": {"rack": "9"}}})
    assert driver.mark(driver.read()) != mark
    assert driver.load().hops("n3", "n4") == 3
    # A snapshot has what Nova's API says.
    listed = api.api_get("/os-aggregates").body["aggregates"]
    saved = [Aggregate(one["name"], tuple(one["hosts"]), one["metadata"]) for one in listed]
    assert aggregate_tree.topology_of(saved, keys).switches == driver.load().switches
    # Nova itself refuses a host in two zones; two racks are refused here.
    aggregate("r5", ["n4"], rack="3")
    with pytest.raises(exceptions.TopologyError, match=r"'9' \(aggregate 'r4'\) and .* 'r5'"):
        driver.load()


def test_aggregates_beside_a_file_are_a_mistake_that_is_named():
    with pytest.raises(exceptions.TopologyError, match=r"expected none of topology_file.* path"):
        AggregatesDriver(path="/etc/hpc_sched/topology.yaml")


def test_a_database_that_does_not_answer_is_an_error_that_says_so():
    with (
        faults.api_database_at(faults.closed_port()),
        pytest.raises(
            exceptions.TopologyError,
            match=rf"the API database does not answer: .*Errno {errno.ECONNREFUSED}",
        ),
    ):
        AggregatesDriver().load()


def dump(cables: int) -> str:
    """Return a discovered fabric: leaf1 with some cables to its spine, the others with 4.

    ::

              spine
            /   |   \\
        leaf1 leaf2 leaf3      a host each
    """
    fabric = Fabric()
    for number in (1, 2, 3):
        fabric.host(f"n{number}", f"leaf{number}")
        fabric.link(f"leaf{number}", "spine", cables=cables if number == 1 else 4)
    return fabric.text()


def test_cables_that_stay_down_are_used_after_the_settle_time_with_a_warning(
    change, caplog, turned_clock
):
    CONF.set_override("topology_driver", "ibnetdiscover", "hpc_sched")
    change(dump(4))
    assert loaded_topology.reload()
    caplog.clear()

    def uplinks() -> list[int]:
        switches = loaded_topology.current().topology.switches
        return [one.links.uplinks.number for one in switches if one.links and one.parent >= 0]

    change(dump(2))
    for _ in range(4):
        assert not loaded_topology.reload()
        assert uplinks() == [4, 4, 4]
        turned_clock.turn(60)
    turned_clock.turn(60)
    assert loaded_topology.reload()
    assert uplinks() == [2, 4, 4]
    assert "Topology changed: links changed: leaf1" in said(caplog, "INFO")[0]
    [warning] = said(caplog, "WARNING")
    assert warning.startswith("Topology: leaf with uplinks of 2 x ")
    assert warning.endswith("leaf1")
