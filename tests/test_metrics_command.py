"""hpc-sched metrics: equal to fits, printed, in a file, and over HTTP; the cloud is a file.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, two leaves a pod, and a host
takes two VMs of the flavor ``half``.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from hpc_sched.cli import main
from hpc_sched.cli.common import shown_flavors
from hpc_sched.cli.metrics import cloud_metrics
from tests.scraped import samples_in
from tests.snapshots import HOSTS, flavor, group, saved, server

HALF = flavor("half", app_class="sync")
FULL = flavor("full", 16, app_class="sync")
PREFIX = "hpc_sched_cloud_"


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def metrics(capsys, *arguments: str) -> dict[tuple[str, ...], float]:
    """Return the metrics by name and the values of their labels."""
    code, out, err = run(capsys, "metrics", *arguments)
    assert (code, err) == (0, "")
    return {
        (name.removeprefix(PREFIX), *(value for _, value in sorted(labels))): value
        for (name, labels), value in samples_in(out).items()
    }


def random_cloud(folder: Path, seed: int, **fields) -> str:
    """Write a cloud with VMs at random."""
    dice = random.Random(seed)
    vms = [
        server(f"vm{number}", host, HALF if dice.random() < 0.7 else FULL)
        for number, host in enumerate(dice.sample(HOSTS, dice.randrange(len(HOSTS))))
    ]
    off = dice.sample(HOSTS, 2)
    return saved(folder, vms, flavors=[HALF, FULL], disabled=off[:1], down=off[1:], **fields)


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_groups_and_the_free_slots_are_those_of_fits(tmp_path, capsys, seed):
    path = random_cloud(tmp_path, seed)
    found = metrics(capsys, "--snapshot", path)
    compared = 0
    for name in ("half", "full"):
        code, out, _ = run(capsys, "fits", "--snapshot", path, "--flavor", name, "-f", "json")
        assert code == 0
        rows = json.loads(out)
        for row in rows:
            assert found["largest_gang", name, row["Level"]] == row["VMs"]
            compared += 1
        assert found["free_slots", name] == rows[-1]["VMs"]
    assert compared == sum(key[0] == "largest_gang" for key in found) == 6


def test_a_class_that_is_not_placed_by_topology_has_the_level_that_fits_has(tmp_path, capsys):
    path = saved(tmp_path, flavors=[flavor("loose", app_class="async")])
    found = metrics(capsys, "--snapshot", path)
    assert found["largest_gang", "loose", "cloud"] == found["free_slots", "loose"] == 32


def test_fragmentation_is_0_while_a_switch_is_free_and_1_where_no_group_fits(tmp_path, capsys):
    # One host of each leaf is left: four slots of "full", but no two under one leaf.
    vms = [server(f"vm{host}", host, FULL) for host in HOSTS if int(host[1:]) % 4]
    path = saved(tmp_path, vms, flavors=[HALF, FULL])
    found = metrics(capsys, "--snapshot", path)
    assert found["free_slots", "full"] == 4
    assert found["fragmentation", "full", "leaf"] == 1 - 1 / 4
    assert found["fragmentation", "full", "pod"] == 1 - 2 / 4
    assert found["fragmentation", "full", "core"] == 0
    assert found["free_leaves",] == 0
    empty = metrics(capsys, "--snapshot", saved(tmp_path, flavors=[HALF, FULL]))
    assert {v for (name, *_), v in empty.items() if name == "fragmentation"} == {0}
    full = [server(f"vm{host}", host, FULL) for host in HOSTS]
    found = metrics(capsys, "--snapshot", saved(tmp_path, full, flavors=[FULL]))
    assert found["fragmentation", "full", "leaf"] == found["free_slots", "full"] == 0


def test_hosts_and_leaves_are_counted_by_state(tmp_path, capsys):
    vms = [server("a", "n01", HALF), server("b", "n02", HALF)]
    hosts = (*HOSTS[:-1], "x1")
    path = saved(tmp_path, vms, hosts=hosts, disabled=["n05"], down=["n06"], flavors=[HALF])
    found = metrics_with_notes(capsys, "--snapshot", path)
    states = {key[1]: value for key, value in found.items() if key[0] == "hosts"}
    assert states == {"free": 11, "used": 2, "off": 2, "absent": 1}
    assert found["leaves",] == 4
    assert found["free_leaves",] == 1
    assert found["unknown_hosts",] == 1
    assert found["read_timestamp_seconds",] == 1769860800


def metrics_with_notes(capsys, *arguments: str) -> dict[tuple[str, ...], float]:
    code, out, _ = run(capsys, "metrics", *arguments)
    assert code == 0
    return {
        (name.removeprefix(PREFIX), *(value for _, value in sorted(labels))): value
        for (name, labels), value in samples_in(out).items()
    }


def test_nothing_names_a_tenant_or_a_host(tmp_path, capsys):
    vms = [server(f"secret{number}", host, HALF) for number, host in enumerate(HOSTS[:5])]
    path = saved(tmp_path, vms, [group("private", vms)], [HALF])
    _, out, _ = run(capsys, "metrics", "--snapshot", path)
    assert not re.search(r"secret|private|project|uuid|n0\d|leaf0\d", out)


def test_flavors_are_chosen_by_name_or_by_their_class(tmp_path, capsys):
    path = saved(tmp_path, flavors=[HALF, FULL, flavor("web"), flavor("no", app_class="none")])
    shown = {key[1] for key in metrics(capsys, "--snapshot", path) if key[0] == "free_slots"}
    assert shown == {"half", "full"}
    found = metrics(capsys, "--snapshot", path, "--flavor", "web", "--flavor", "web")
    assert [key[1] for key in found if key[0] == "free_slots"] == ["web"]
    code, out, err = run(capsys, "metrics", "--snapshot", path, "--flavor", "wen")
    assert (code, out) == (1, "")
    assert "there is no flavor 'wen': there is web" in err


def test_flavors_are_bounded(tmp_path, capsys):
    many = [flavor(f"f{number:03}", app_class="sync") for number in range(60)]
    code, out, err = run(capsys, "metrics", "--snapshot", saved(tmp_path, flavors=many))
    assert code == 0
    assert out.count("hpc_sched_cloud_free_slots{") == shown_flavors.MAX_FLAVORS
    assert err == "note: 50 of 60 flavors: choose them with --flavor\n"
    named = [text for kind in many for text in ("--flavor", kind.name)]
    assert run(capsys, "metrics", "--snapshot", "x", *named)[0] == 2


def test_a_name_with_quotes_and_line_breaks_is_escaped(tmp_path, capsys):
    name = 'a"}\nhpc_sched_cloud_leaves 99\n# "\\\x1b[2J'
    found = metrics(capsys, "--snapshot", saved(tmp_path, flavors=[flavor(name, app_class="sync")]))
    assert found["leaves",] == 4
    assert found["free_slots", name] == 32


def test_the_file_is_written_whole_or_not_at_all(tmp_path, capsys):
    path, file = saved(tmp_path, flavors=[HALF]), tmp_path / "hpc_sched.prom"
    assert run(capsys, "metrics", "--snapshot", path, "--textfile", str(file)) == (0, "", "")
    before = file.read_text()
    assert before == run(capsys, "metrics", "--snapshot", path)[1]
    assert run(capsys, "metrics", "--snapshot", "/nowhere", "--textfile", str(file))[0] == 1
    assert file.read_text() == before
    missing = tmp_path / "nowhere" / "a.prom"
    code, _, err = run(capsys, "metrics", "--snapshot", path, "--textfile", str(missing))
    assert code == 1
    assert str(missing) in err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--textfile", "metrics.txt"], "ends with .prom"),
        (["--textfile", "a.prom", "--listen", "127.0.0.1:0"], "not allowed with"),
        (["--interval", "5"], "--interval means nothing without --listen"),
        (["--interval", "0", "--listen", "127.0.0.1:0"], "whole number >= 1"),
        (["--listen", "9"], "argument --listen: expected HOST:PORT or [IPv6]:PORT, found '9'"),
        (["--listen", "127.0.0.1:0", "--topology", "-"], "--topology -: --listen reads it again"),
        (["--listen", "127.0.0.1:0", "--topology", "slurm:-"], "save it in a file"),
    ],
    ids=str,
)
def test_wrong_usage_is_exit_code_2(tmp_path, capsys, arguments, error):
    code, out, err = run(capsys, "metrics", "--snapshot", saved(tmp_path), *arguments)
    assert (code, out) == (2, "")
    assert error in err


def test_without_prometheus_client_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("prometheus_client")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, cloud_metrics.__name__)
    code, out, err = run(capsys, "metrics", "--snapshot", saved(tmp_path))
    assert (code, out) == (1, "")
    assert "pip install 'hpc-sched[metrics]'" in err


def test_served_metrics_follow_the_cloud_and_stay_where_it_cannot_be_read(tmp_path):
    path, log = saved(tmp_path, flavors=[HALF]), tmp_path / "stderr"
    nova_conf = tmp_path / "nova.conf"
    nova_conf.write_text("")
    arguments = ["--snapshot", path, "--config-file", str(nova_conf)]
    arguments += ["--listen", "127.0.0.1:0", "--interval", "1"]
    code = "import sys; from hpc_sched.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "metrics", *arguments], stderr=errors
        )
    try:
        port = wait_for_port(process.pid)
        assert served(port)["largest_gang", "half", "leaf"] == 8
        vms = [server(f"vm{host}", host, FULL) for host in HOSTS]
        saved(tmp_path, vms, flavors=[HALF])
        wait(lambda: served(port)["largest_gang", "half", "leaf"] == 0)
        assert served(port)["read_good",] == 1
        Path(path).write_text("{")
        wait(lambda: served(port)["read_good",] == 0)
        assert served(port)["largest_gang", "half", "leaf"] == 0
        assert path in log.read_text()
        saved(tmp_path, flavors=[HALF])
        wait(lambda: served(port)["read_good",] == 1)
        for wrong in (b"# \xe9\n", b"[hpc_sched]\ndecision_log = $nowhere\n"):
            nova_conf.write_bytes(wrong)
            wait(lambda: served(port)["read_good",] == 0)
            assert served(port)["largest_gang", "half", "leaf"] == 8
            nova_conf.write_text("")
            wait(lambda: served(port)["read_good",] == 1)
        assert f"{nova_conf}: cannot be read: 'utf-8' codec" in log.read_text()
        assert f"{nova_conf}: [hpc_sched] decision_log is not valid" in log.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()


def served(port: int) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        found = samples_in(answer.read().decode())
    return {
        (name.removeprefix(PREFIX), *(value for _, value in sorted(labels))): value
        for (name, labels), value in found.items()
    }


def wait(condition):
    end = time.monotonic() + 120
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return found


def wait_for_port(pid: int) -> int:
    """Return the port on which a process listens."""

    def find() -> int | None:
        sockets = set()
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(descriptor))
            except OSError:
                continue
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                return int(fields[1].rpartition(":")[2], 16)
        return None

    return wait(find)
