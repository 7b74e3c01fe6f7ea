"""How commands find nova.conf, on the scheduler's host and elsewhere."""

from pathlib import Path

import pytest
from oslo_config import cfg

from hpc_sched.cli import main
from hpc_sched.snapshot.source import snapshot_file
from tests.snapshots import FABRIC, flavor, saved

READ_NOVA_CONF = [
    "explain",
    "fits",
    "group show",
    "simulate",
    "snapshot save",
    "topology check",
    "topology convert",
    "topology diff",
    "topology show",
    "topology validate",
]
PLACES = "(nova.conf or nova-scheduler.conf in ~/.nova, ~, /etc/nova and /etc)"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that runs hpc-sched on a host without nova.conf."""
    monkeypatch.setattr(cfg, "find_config_files", lambda **_names: [])
    monkeypatch.setattr(cfg, "find_config_dirs", lambda **_names: [])
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Return the path of a snapshot without a topology."""
    return saved(tmp_path, topology=None)


@pytest.mark.parametrize("command", READ_NOVA_CONF)
def test_every_command_that_takes_a_config_file_takes_a_config_dir(call, command):
    _, out, _ = call(*command.split(), "--help")
    assert "--config-file FILE" in out
    assert "--config-dir DIR" in out


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("topology show", "name a topology with SOURCE"),
        ("topology show --snapshot state.json", "name a topology with SOURCE"),
        ("topology diff fabric.yaml", "name a topology with B"),
        ("fits --snapshot state.json --flavor half", "name a topology with --topology"),
        ("group show --snapshot state.json job", "name a topology with --topology"),
        ("explain job", "name a file of records with --decision-log"),
    ],
)
def test_off_the_schedulers_host_the_error_names_places_and_options(call, bare, command, instead):
    Path("fabric.yaml").write_text(FABRIC)
    code, out, err = call(*command.split())
    assert (code, out) == (2 if "diff" in command else 1, "")
    assert f"{PLACES}: {instead}, or a copy of the scheduler's nova.conf with --config-file" in err


def test_the_files_of_a_config_dir_are_read_after_those_of_a_config_file(call, tmp_path):
    scored = flavor("scored", 1, cache_score="20")
    path = saved(tmp_path, flavors=[scored])
    Path("nova.conf").write_text(
        "[filter_scheduler]\nenabled_filters = HPCInterferenceFilter\n"
        "[hpc_sched]\nsync_cache_score_limit = 80\n"
    )
    folder = tmp_path / "nova.conf.d"
    folder.mkdir()
    (folder / "10-limits.conf").write_text("[hpc_sched]\nsync_cache_score_limit = 40\n")
    fits = ("fits", "--snapshot", path, "--flavor", "scored", "-f", "value", "-c", "VMs")
    first = call(*fits, "--config-file", "nova.conf")
    assert first == (0, "16\n32\n64\n", "")
    both = call(*fits, "--config-dir", str(folder), "--config-file", "nova.conf")
    assert both == (0, "8\n16\n32\n", "")


def test_a_config_dir_alone_is_enough(call, tmp_path):
    folder = tmp_path / "nova.conf.d"
    folder.mkdir()
    Path("fabric.yaml").write_text(FABRIC)
    (folder / "hpc.conf").write_text("[hpc_sched]\ntopology_file = fabric.yaml\n")
    assert call("topology", "validate", "--config-dir", str(folder))[0] == 0


def test_a_config_dir_that_is_missing_is_an_error_that_names_it(call):
    code, _, err = call("topology", "show", "--config-dir", "nowhere.d")
    assert code == 1
    assert "nowhere.d" in err


NO_TOPOLOGY = "note: the snapshot has no topology: commands that read it will need --topology"


def test_a_snapshot_saved_without_a_nova_conf_says_that_it_lacks_the_topology(call, bare):
    code, out, err = call("snapshot", "save", "--snapshot", bare, "saved.json")
    assert (code, out) == (0, "")
    assert NO_TOPOLOGY in err
    assert "name a copy of the scheduler's with --config-file" in err
    assert "without the fabric" in err


def test_a_snapshot_saved_with_a_topology_does_not(call, bare):
    Path("fabric.yaml").write_text(FABRIC)
    code, _, err = call(
        "snapshot", "save", "--snapshot", bare, "b.json", "--topology", "fabric.yaml"
    )
    assert code == 0
    assert NO_TOPOLOGY not in err
    assert snapshot_file.read("b.json").topology is not None
