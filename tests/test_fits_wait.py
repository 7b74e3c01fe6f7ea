"""hpc-sched fits --wait: when it reads the cloud, what it reports, how it ends. No time passes.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, and a VM of the flavor ``full``
takes a host.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpc_sched import clock, exceptions
from hpc_sched.cli import main
from hpc_sched.cli.common import sources
from hpc_sched.cli.group import fit_wait
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.snapshot.source import connection, live, snapshot_file
from tests import turned_clock
from tests.snapshots import FABRIC, HOSTS, flavor, saved, server, snapshot

FULL = flavor("full", 16)
ONE_LEAF = ("--flavor", "full", "--count", "4", "--level", "leaf")


class ScriptedClock(clock.SystemClock):
    """A clock whose time passes in sleeps alone, which do what is due meanwhile."""

    def __init__(self, **actions: Callable[[], object]) -> None:
        self.now, self.sleeps = 0.0, list[float]()
        self._due = sorted((float(name.lstrip("at_")), act) for name, act in actions.items())

    def monotonic(self) -> float:  # type: ignore[override]
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.sleeps.append(seconds)
        self.now += seconds
        while self._due and self._due[0][0] <= self.now:
            self._due.pop(0)[1]()


@contextmanager
def scripted(**actions: Callable[[], object]) -> Iterator[ScriptedClock]:
    """Install a clock; ``at_60=act`` acts in the sleep in which 60 s have passed."""
    with turned_clock.installed(found := ScriptedClock(**actions)):
        yield found


@pytest.fixture(autouse=True)
def even_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_wait, "SPREAD", 0.0)


def occupied(*free: str) -> Snapshot:
    """Return a cloud whose hosts have a VM each, but for some."""
    vms = [server(f"vm-{host}", host, FULL) for host in HOSTS if host not in free]
    return snapshot(vms, flavors=[FULL], topology=FABRIC)


FREE_LEAF = ("n05", "n06", "n07", "n08")
THREE = FREE_LEAF[:3]  # hosts of one leaf that are free
THREE_FIT = (
    "group of 4 needs one leaf: largest gang that fits under one leaf: 3 on leaf02 (without these "
    "wishes: 3 under one pod on pod1, 3 under one core on core1); VCPU runs out first"
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Save a cloud with three free hosts below a leaf."""
    return write(tmp_path / "state.json", occupied(*THREE))


def write(path: Path, state: Snapshot) -> str:
    snapshot_file.write(path, state)
    return str(path)


def fits(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.main(["fits", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_group_that_fits_is_not_waited_for(tmp_path, capsys):
    free = write(tmp_path / "state.json", occupied(*FREE_LEAF))
    with scripted() as time:
        code, out, err = fits(capsys, "--snapshot", free, *ONE_LEAF, "--wait", "600")
    assert (code, err, time.sleeps) == (0, "", [])
    assert out.splitlines()[0].endswith("least possible 6; waited 0 s, 1 reading")


def test_it_returns_as_soon_as_the_group_fits(path, capsys):
    with scripted(at_60=lambda: write(Path(path), occupied(*FREE_LEAF))) as time:
        code, out, err = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "600")
    assert code == 0
    assert time.sleeps == [30, 45]
    assert out.splitlines()[0].endswith("waited 75 s, 3 readings")
    assert "| leaf02 |" in out
    assert err.splitlines() == [
        f"0 s: {THREE_FIT}",
        "75 s: fits",
    ]


def test_when_the_time_is_over_the_exit_code_is_4_and_the_last_reading_was_then(path, capsys):
    with scripted() as time:
        code, out, err = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "200")
    assert code == 4
    assert time.sleeps == [30, 45, 67.5, 57.5]
    assert out.startswith("group of 4 needs one leaf")
    assert err.splitlines()[-1] == "the time is over: waited 200 s, 5 readings"


def test_a_wait_of_0_reads_once(path, tmp_path, capsys):
    with scripted() as time:
        assert fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "0")[0] == 4
        write(Path(path), occupied(*FREE_LEAF))
        assert fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "0")[0] == 0
    assert time.sleeps == []


def test_pauses_grow_to_ten_times_the_interval_and_a_change_shortens_them_again(path, capsys):
    change = {"at_1000": lambda: write(Path(path), occupied(*THREE[:2]))}
    with scripted(**change) as time:
        arguments = ("--wait", "1500", "--interval", "20")
        assert fits(capsys, "--snapshot", path, *ONE_LEAF, *arguments)[0] == 4
    assert time.sleeps == [
        *(20, 30, 45, 67.5, 101.25, 151.875, 200, 200, 200),  # the last one ends at 1015.625
        *(20, 30, 45, 67.5, 101.25, 151.875, 1500 - 1015.625 - 415.625),
    ]


def test_each_change_of_the_answer_is_one_line(path, capsys):
    changes: dict[str, Any] = {
        "at_100": lambda: write(Path(path), occupied("n05")),
        "at_300": lambda: write(Path(path), occupied("n05", "n09", "n10")),
        "at_400": lambda: write(Path(path), occupied("n06", "n09", "n10")),  # the same answer
    }
    with scripted(**changes):
        _, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "600", "--interval", "50")
    largest = [line.split("under one leaf: ")[1].split(" (")[0] for line in err.splitlines()[:-1]]
    assert largest == ["3 on leaf02", "1 on leaf02", "2 on leaf03"]


def test_notes_are_written_once(path, capsys):
    arguments = ("--property", "hpc:app_class=fast", "--wait", "300")
    with scripted():
        _, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF, *arguments)
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert notes
    assert len(set(notes)) == len(notes)


def test_a_group_that_no_empty_cloud_holds_ends_at_once_with_exit_code_3(path, capsys):
    large = ("--flavor", "full", "--count", "17")
    with scripted() as time:
        code, out, err = fits(capsys, "--snapshot", path, *large, "--wait", "600")
    assert (code, time.sleeps) == (3, [])
    assert out.startswith("group of 17 does not fit: largest gang that fits: 3 on core1")
    assert err == (
        "not waited: without any VM on the hosts, group of 17 does not fit: "
        "largest gang that fits: 16 on core1; VCPU runs out first\n"
    )


def test_a_request_that_is_refused_whatever_is_free_ends_at_once(path, capsys):
    with scripted() as time:
        wrong = ("--policy", "affinity", "--property", "hpc:require=rack")
        code, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF[:4], *wrong, "--wait", "600")
    assert (code, time.sleeps) == (3, [])
    assert "not waited: without any VM on the hosts, hpc:require='rack': expected" in err


def test_a_group_that_drained_hosts_alone_could_hold_is_not_waited_for(path, capsys):
    drained = ("--drain", "n[02-16]")
    with scripted() as time:
        code, _, _ = fits(capsys, "--snapshot", path, *ONE_LEAF, *drained, "--wait", "600")
    assert (code, time.sleeps) == (3, [])


def test_hosts_that_are_down_may_come_back_and_are_waited_for(tmp_path, capsys):
    down = saved(tmp_path, flavors=[FULL], down=HOSTS[:14], disabled=HOSTS[14:])
    back = {"at_30": lambda: saved(tmp_path, flavors=[FULL], down=HOSTS[4:])}
    with scripted(**back):
        assert fits(capsys, "--snapshot", down, *ONE_LEAF, "--wait", "60")[0] == 0


def test_rows_of_data_have_what_was_waited_and_read(path, capsys):
    with scripted(at_30=lambda: write(Path(path), occupied(*FREE_LEAF))):
        _, out, _ = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "60", "-f", "json")
    [row] = json.loads(out)
    assert (row["Leaf"], row["VMs"], row["Waited"], row["Readings"]) == ("leaf02", 4, 30.0, 2)


@pytest.mark.parametrize(
    ("seconds", "expected", "code"),
    [("60", (True, 30.0, 2), 0), ("20", (False, 20.0, 2), 4)],
)
def test_the_summary_has_them_whether_it_fits_or_not(
    path, capsys, seconds: str, expected: tuple, code: int
):
    arguments = ("--summary", "-f", "json", "--wait", seconds)
    with scripted(at_30=lambda: write(Path(path), occupied(*FREE_LEAF))):
        found, out, _ = fits(capsys, "--snapshot", path, *ONE_LEAF, *arguments)
    [row] = json.loads(out)
    assert (row["Fits"], row["Waited"], row["Readings"]) == expected
    assert found == code


def test_rows_of_a_frontier_have_them_too(tmp_path, capsys):
    free = write(tmp_path / "state.json", occupied(*FREE_LEAF))
    arguments = ("--frontier", "--oversubscription", "leaf=4", "--wait", "60", "-f", "json")
    with scripted():
        _, out, _ = fits(capsys, "--snapshot", free, "--flavor", "full", "--count", "2", *arguments)
    assert {(row["Waited"], row["Readings"]) for row in json.loads(out)} == {(0.0, 1)}


def test_a_snapshot_with_another_fabric_is_placed_on_that_one(path, capsys):
    moved = FABRIC.replace("n[05-08]", "n[05-07]").replace("n[09-12]", "n[08-12]")
    later = {"at_20": lambda: write(Path(path), replace(occupied(*FREE_LEAF), topology=moved))}
    with scripted(**later):
        code, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "30")
    assert code == 4
    assert "3 on leaf02 (without these wishes: 3 under one pod on pod1, 4 under" in err


def test_a_file_that_cannot_be_read_at_first_ends_the_command(tmp_path, capsys):
    with scripted() as time:
        code, _, err = fits(
            capsys, "--snapshot", str(tmp_path / "none.json"), *ONE_LEAF, "--wait", "9"
        )
    assert (code, time.sleeps) == (1, [])
    assert "none.json: cannot be read" in err


def test_a_file_that_cannot_be_read_later_is_read_again(path, capsys):
    changes: dict[str, Any] = {
        "at_30": lambda: Path(path).write_text("{"),
        "at_90": lambda: write(Path(path), occupied(*FREE_LEAF)),
    }
    with scripted(**changes):
        code, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "600")
    assert code == 0
    assert [line.split(":")[0] for line in err.splitlines()] == ["0 s", "30 s", "105 s"]
    assert err.splitlines()[1].endswith("; it is read again")


def test_a_file_that_has_not_changed_is_not_parsed_again(path, capsys, monkeypatch):
    parsed = []
    read = snapshot_file.read
    monkeypatch.setattr(snapshot_file, "read", lambda name: parsed.append(name) or read(name))
    with scripted():
        fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "3000")
    assert parsed == [path]


def test_ctrl_c_ends_it_as_other_commands(path, capsys):
    def interrupt() -> None:
        raise KeyboardInterrupt

    with scripted(at_30=interrupt):
        code, out, _ = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "600")
    assert (code, out) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--wait", "-1"], "expected a number from 0 to 1e+08, found '-1'"),
        (["--wait", "inf"], "expected a number from 0 to 1e+08, found 'inf'"),
        (["--wait", "nan"], "expected a number from 0 to 1e+08, found 'nan'"),
        (["--wait", "1e9"], "expected a number from 0 to 1e+08, found '1e9'"),
        (["--wait", "9", "--interval", "0"], "expected a number from 5 to 3600, found '0'"),
        (["--wait", "9", "--interval", "4.9"], "expected a number from 5 to 3600, found '4.9'"),
        (["--interval", "9"], "--interval means nothing without --wait"),
    ],
)
def test_times_out_of_bounds_are_wrong_usage(path, capsys, arguments: list[str], text: str):
    code, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF, *arguments)
    assert code == 2
    assert text in err


def test_without_a_count_there_is_nothing_to_wait_for(path, capsys):
    code, _, err = fits(capsys, "--snapshot", path, "--flavor", "full", "--wait", "9")
    assert code == 2
    assert "--wait means nothing without --count" in err


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "FakeCloud":
    """Replace the APIs of a cloud; commands find its topology in a file."""
    (tmp_path / "topology.yaml").write_text(FABRIC)
    found = FakeCloud(occupied(*THREE), str(tmp_path / "topology.yaml"))
    monkeypatch.setattr(connection, "connect", found.connect)
    monkeypatch.setattr(live, "read", found.read)
    return found


class FakeCloud:
    """A cloud that a test changes, and whose calls it counts."""

    def __init__(self, state: Snapshot, topology: str) -> None:
        self.state: Snapshot | Exception = state
        self.takes = 0.0  # s of a reading
        self.connections = self.readings = 0
        self.arguments = ("--cloud", "test", "--topology", topology, *ONE_LEAF)

    def connect(self, _cloud: object) -> tuple[str, str]:
        self.connections += 1
        return "nova", "placement"

    def read(self, apis: tuple[str, str], _progress: object) -> Snapshot:
        assert apis == ("nova", "placement")
        self.readings += 1
        clock.current.now += self.takes  # type: ignore[attr-defined]
        if isinstance(self.state, Exception):
            raise self.state
        return replace(self.state, topology=None)

    def becomes(self, state: Snapshot | Exception) -> Callable[[], None]:
        def change() -> None:
            self.state = state

        return change


BUSY = exceptions.ReadingError("Placement: GET /resource_providers: HTTP 503: busy")
NO_RIGHT = exceptions.SnapshotError("Nova: GET /servers/detail: HTTP 401: needs the role admin")


def test_a_cloud_is_connected_once_and_its_topology_read_once(cloud, capsys, monkeypatch):
    loaded = []
    fabric_of = sources.fabric_of
    monkeypatch.setattr(
        sources, "fabric_of", lambda *args: loaded.append(args[1]) or fabric_of(*args)
    )
    with scripted():
        assert fits(capsys, *cloud.arguments, "--wait", "1000")[0] == 4
    assert (cloud.connections, len(loaded)) == (1, 1)
    assert cloud.readings > 5


def test_a_failed_call_is_reported_once_and_made_again(cloud, capsys):
    changes = {"at_20": cloud.becomes(BUSY), "at_90": cloud.becomes(occupied(*FREE_LEAF))}
    with scripted(**changes):
        code, out, err = fits(capsys, *cloud.arguments, "--wait", "600")
    assert code == 0
    # Read at 0, 30, 60 and 105 s: a change of the answer shortens the pauses.
    assert err.splitlines()[1:] == [f"30 s: {BUSY}; it is read again", "105 s: fits"]
    assert "waited 105 s, 4 readings" in out


def test_failures_that_differ_in_their_request_ids_are_one_answer(cloud, capsys):
    def failing(number: int) -> Callable[[], None]:
        ids = f'{{"request_id": "req-{number:08x}-0000-4000-8000-00000000000a"}}'
        return cloud.becomes(exceptions.ReadingError(f"Placement: GET /x: HTTP 503: {ids}"))

    with scripted(**{f"at_{20 * number}": failing(number) for number in range(1, 30)}):
        code, _, err = fits(capsys, *cloud.arguments, "--wait", "600")
    assert code == 4
    assert err.count("HTTP 503") == 1
    # Pauses grow: every 30 s there would be 21 readings.
    assert cloud.readings < 10


def test_a_cloud_that_does_not_answer_at_first_is_asked_again(cloud, capsys):
    cloud.state = BUSY
    with scripted(at_20=cloud.becomes(occupied(*FREE_LEAF))):
        code, _, err = fits(capsys, *cloud.arguments, "--wait", "600")
    assert code == 0
    assert err.splitlines() == [f"0 s: {BUSY}; it is read again", "30 s: fits"]


def test_a_cloud_that_never_answers_is_a_failure_when_the_time_is_over(cloud, capsys):
    cloud.state = BUSY
    with scripted():
        code, out, err = fits(capsys, *cloud.arguments, "--wait", "100")
    assert (code, out) == (1, "")
    assert err.splitlines() == [f"0 s: {BUSY}; it is read again", str(BUSY)]


def test_if_the_last_reading_fails_the_answer_is_that_of_the_one_before(cloud, capsys):
    with scripted(at_40=cloud.becomes(BUSY)):
        code, out, err = fits(capsys, *cloud.arguments, "--wait", "60")
    assert code == 4
    assert out.startswith("group of 4 needs one leaf")
    assert err.splitlines()[1:] == [
        f"60 s: {BUSY}; it is read again",
        "the time is over: waited 60 s, 3 readings",
    ]


@pytest.mark.parametrize("at", ["at_0", "at_40"])
def test_a_missing_right_ends_the_wait_at_once(cloud, capsys, at: str):
    if at == "at_0":
        cloud.state = NO_RIGHT
    with scripted(**{at: cloud.becomes(NO_RIGHT)}) as time:
        code, out, err = fits(capsys, *cloud.arguments, "--wait", "600")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == str(NO_RIGHT)
    assert time.now == (0 if at == "at_0" else 75)


def test_an_answer_of_a_reading_that_ends_after_the_time_counts(cloud, capsys):
    cloud.takes = 50
    with scripted(at_80=cloud.becomes(occupied(*FREE_LEAF))) as time:
        code, out, _ = fits(capsys, *cloud.arguments, "--wait", "110")
    # Read from 0 to 50 and, after a pause as long as that, from 100 to 150.
    assert (code, time.now, time.sleeps) == (0, 150, [50])
    assert "waited 150 s, 2 readings" in out


def test_a_flavor_that_is_deleted_meanwhile_ends_the_wait(cloud, capsys):
    gone = replace(occupied(*THREE), flavors=())
    with scripted(at_20=cloud.becomes(gone)):
        code, _, err = fits(capsys, *cloud.arguments, "--wait", "600")
    assert code == 1
    assert "there is no flavor 'full'" in err


def test_what_is_assumed_of_the_cloud_is_assumed_of_each_reading(cloud, capsys):
    drained = ("--drain", "n05")
    with scripted(at_20=cloud.becomes(occupied(*FREE_LEAF))):
        assert fits(capsys, *cloud.arguments, *drained, "--wait", "60")[0] == 4


def test_pauses_are_longer_by_a_part_that_the_seed_determines(monkeypatch):
    monkeypatch.setattr(fit_wait, "SPREAD", 0.2)

    def pauses(seed: str) -> list[float]:
        return list(islice(fit_wait.WaitTimes(0, 10, seed).pauses(), 9))

    even = [10, 15, 22.5, 33.75, 50.625, 75.9375, 100, 100, 100]
    assert pauses("a") == pauses("a") != pauses("b")
    assert all(one <= found <= 1.2 * one for one, found in zip(even, pauses("a"), strict=True))


def test_a_terminal_has_a_live_line_that_is_cleared_in_the_end(path, capsys, monkeypatch):
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with scripted():
        _, _, err = fits(capsys, "--snapshot", path, *ONE_LEAF, "--wait", "60")
    clear = "\r\x1b[K"
    shown = [part for part in err.split(clear) if part]
    assert shown == [
        f"0 s: {THREE_FIT}\n",
        "waiting, 0 of 60 s, 1 reading, the next in 30 s",
        "waiting, 30 of 60 s, 2 readings, the next in 30 s",
        "the time is over: waited 60 s, 3 readings\n",
    ]
    assert err.endswith(f"{clear}the time is over: waited 60 s, 3 readings\n")


class Answering:
    """An adapter of keystoneauth that answers, or raises, what a test says."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get(self, *_args: object, **_settings: object) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Answer:
    """An answer of HTTP."""

    def __init__(self, code: int, document: object = None) -> None:
        self.status_code, self._document, self.text = code, document, "busy"

    def json(self) -> object:
        if self._document is None:
            raise ValueError("not JSON")
        return self._document


def raised_by(answer: Any) -> type[Exception]:
    with pytest.raises(exceptions.SnapshotError) as caught:
        connection.Api("compute", Answering(answer), "2.87").get("/servers")
    return caught.type


def test_failures_that_may_pass_are_told_from_those_that_do_not():
    keystone = pytest.importorskip("keystoneauth1.exceptions")
    passing = [
        *(Answer(429), Answer(500), Answer(503), Answer(404), Answer(200), Answer(200, [])),
        *(keystone.ConnectFailure("no route"), keystone.ConnectTimeout("late")),
        *(keystone.ServiceUnavailable("busy"), keystone.DiscoveryFailure("identity is down")),
    ]
    assert {raised_by(each) for each in passing} == {exceptions.ReadingError}
    lasting = [
        *(Answer(401), Answer(403), Answer(406), keystone.Unauthorized("wrong password")),
        *(keystone.Forbidden("no role"), keystone.SSLError("unknown certificate")),
        *(keystone.EndpointNotFound("placement"), keystone.AuthorizationFailure("no token")),
    ]
    assert {raised_by(each) for each in lasting} == {exceptions.SnapshotError}
