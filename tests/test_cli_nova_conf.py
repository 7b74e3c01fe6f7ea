"""How commands find nova.conf, on the scheduler's host and elsewhere."""

import importlib.util
import re
import sysconfig
from pathlib import Path

import pytest
from oslo_config import cfg

from hpc_sched import conf, exceptions
from hpc_sched.cli import main
from hpc_sched.configuration import config_files
from hpc_sched.configuration.option_value import value_of
from hpc_sched.snapshot.source import snapshot_file
from tests.snapshots import FABRIC, flavor, group, saved, server

ROOT = Path(__file__).resolve().parents[1]

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


# On the snapshot of a cloud; all of them read [hpc_sched].
ON_A_CLOUD = [
    ("fits", "--flavor", "half"),
    ("metrics",),
    ("group", "show", "job"),
    ("check", "sharing"),
    ("cost",),
    ("snapshot", "save", "saved.json"),
]


@pytest.fixture
def cloud(tmp_path: Path) -> str:
    """Return the path of a snapshot with a topology and a group."""
    vm = server("vm", "n01")
    return saved(tmp_path, [vm], [group("job", [vm])])


@pytest.mark.parametrize("command", ON_A_CLOUD, ids=" ".join)
def test_every_line_of_the_sample_may_be_uncommented(call, cloud, command):
    sample = (ROOT / "etc" / "hpc_sched.conf.sample").read_text()
    found = re.findall(r"^#(\w+ =.*)$", sample, re.MULTILINE)
    assert len(found) == len(conf.OPTS)
    lines = [line for line in found if not line.endswith("<None>")]  # has no value
    Path("v.conf").write_text("\n".join(["[hpc_sched]", *lines]))
    code, _, err = call(*command, "--snapshot", cloud, "--config-file", "v.conf")
    assert code == 0, err


@pytest.mark.parametrize("command", ON_A_CLOUD, ids=" ".join)
@pytest.mark.parametrize(
    "setting",
    [
        "metrics_directory = $state_path/hpc_sched-metrics",
        "metrics_address = $my_ip:18774",
        "metrics_directory = $log_dir/$host",
        "decision_log = $bindir/../decisions.json",
    ],
)
def test_an_option_may_name_the_paths_of_nova(call, cloud, command, setting):
    Path("v.conf").write_text(f"[DEFAULT]\nstate_path=/var/lib/nova\n[hpc_sched]\n{setting}\n")
    code, _, err = call(*command, "--snapshot", cloud, "--config-file", "v.conf")
    assert code == 0, err


def test_paths_have_the_values_of_nova_conf_or_those_of_nova(call, cloud):
    Path("v.conf").write_text(
        "[DEFAULT]\nlog_dir = /logs\n[hpc_sched]\nmetrics_directory = $state_path/m\n"
        "topology_name_map = ${log_dir}/map\n"
    )
    arguments = ("snapshot", "save", "saved.json", "--snapshot", cloud, "--config-file", "v.conf")
    code, _, err = call(*arguments, "--topology", str(saved_fabric()))
    assert code == 0, err
    options = snapshot_file.read("saved.json").options
    nova = importlib.util.find_spec("nova")
    assert nova is not None
    assert nova.origin is not None
    assert options["metrics_directory"] == f"{Path(nova.origin).parents[1]}/m"
    assert options["topology_name_map"] == "/logs/map"


def test_without_nova_its_modules_are_where_pip_would_install_them(call, cloud, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    Path("v.conf").write_text("[hpc_sched]\nmetrics_directory = $state_path/m\n")
    command = ("snapshot", "save", "saved.json", "--snapshot", cloud)
    code, _, err = call(*command, "--topology", str(saved_fabric()), "--config-file", "v.conf")
    assert code == 0, err
    options = snapshot_file.read("saved.json").options
    assert options["metrics_directory"] == f"{sysconfig.get_path('purelib')}/m"


def test_the_topology_of_nova_conf_may_be_in_a_folder_of_nova(call, bare):
    saved_fabric()
    here = Path.cwd()
    for name in ("pybasedir", "state_path", "log_dir"):
        Path("v.conf").write_text(
            f"[DEFAULT]\n{name} = {here}\n[hpc_sched]\ntopology_file = ${name}/fabric.yaml\n"
        )
        fits = ("fits", "--snapshot", bare, "--flavor", "half", "--config-file", "v.conf")
        code, _, err = call(*fits)
        assert code == 0, err


@pytest.mark.parametrize("name", ["log_dir", "state_path"])
def test_the_decision_log_may_be_in_a_folder_of_nova(call, name):
    Path("decisions.json").write_text("")
    Path("v.conf").write_text(
        f"[DEFAULT]\n{name} = {Path.cwd()}\n[hpc_sched]\ndecision_log = ${name}/decisions.json\n"
    )
    code, _, err = call("explain", "req-1", "--config-file", "v.conf")
    assert code == 1
    assert f"no decision on 'req-1' in {Path.cwd()}/decisions.json" in err


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("{name} = $nowhere/x", "no such option nowhere in group [DEFAULT]"),
        ("{name} = $filter_scheduler.nowhere/x", "no such "),
    ],
)
def test_an_option_that_cannot_be_read_is_named_with_its_file(call, bare, setting, why):
    Path("other.conf").write_text("[hpc_sched]\nmode = active\n")
    for name, command in (
        ("topology_file", ("topology", "show")),
        ("decision_log", ("explain", "req-1")),
        ("interference_file", ("cost", "--snapshot", bare)),
    ):
        Path("v.conf").write_text(f"[hpc_sched]\n{setting.format(name=name)}\n")
        code, _, err = call(*command, "--config-file", "v.conf", "--config-file", "other.conf")
        assert code == 1
        assert f"v.conf: [hpc_sched] {name} is not valid: {why}" in err


def test_a_wrong_value_is_named_with_its_file_and_without_words_of_the_library(call, bare):
    Path("v.conf").write_text("[hpc_sched]\ncell_timeout = many\n")
    code, _, err = call("cost", "--snapshot", bare, "--config-file", "v.conf")
    assert code == 1
    assert "v.conf: [hpc_sched] cell_timeout is not valid: invalid literal for int()" in err
    assert "LocationInfo" not in err


def test_a_wrong_value_of_the_environment_counts_before_the_files_and_is_named(
    call, bare, monkeypatch
):
    monkeypatch.setenv("OS_HPC_SCHED__CELL_TIMEOUT", "many")
    Path("v.conf").write_text("[hpc_sched]\ncell_timeout = 7\n")
    code, _, err = call("cost", "--snapshot", bare, "--config-file", "v.conf")
    assert code == 1
    assert "OS_HPC_SCHED__CELL_TIMEOUT: [hpc_sched] cell_timeout is not valid: " in err
    assert "v.conf" not in err


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["--config-dir=a.d", "--config-dir=b.d"], "b.d/1.conf"),
        (["--config-dir=b.d", "--config-dir=c.d"], "b.d/1.conf"),
        (["--config-dir=b.d", "--config-file=a.d/1.conf"], "a.d/1.conf"),
        (["--config-file=a.d/1.conf", "--config-dir=b.d"], "b.d/1.conf"),
        (["--config-file=a.d/1.conf", "--config-dir=d,e"], "d,e/1.conf"),
        (["--config-dir=~/f.d"], "home/f.d/1.conf"),
    ],
)
def test_the_file_whose_value_counts_is_named_in_any_order_of_files_and_folders(
    monkeypatch, tmp_path, arguments, wrong
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "home")
    for folder in ("a.d", "b.d", "c.d", "d,e", "home/f.d"):
        Path(folder).mkdir(parents=True)
        text = "" if folder == "c.d" else f"cell_timeout = {folder}"
        Path(folder, "1.conf").write_text(f"[hpc_sched]\n{text}\n")
    options = cfg.ConfigOpts()
    assert config_files.paths_read(options) == []
    conf.register_opts(options)
    config_files.parse(options, arguments, project="nova")
    with pytest.raises(exceptions.ConfigError, match=f"^{wrong}: "):
        value_of(options, "cell_timeout")
    named = [argument.partition("=")[2].replace("~", "home") for argument in arguments]
    expected = [name if name.endswith(".conf") else f"{name}/1.conf" for name in named]
    assert config_files.paths_read(options)[-len(expected) :] == expected


@pytest.mark.parametrize("option", ["--config-file", "--config-dir"])
def test_a_file_that_is_not_utf_8_is_named(call, bare, option):
    Path("a.d").mkdir()
    Path("a.d/a.conf").write_text("[hpc_sched]\nmode = active\n")
    Path("a.d/b.conf").write_bytes("[hpc_sched]\n# é\n".encode("latin-1"))
    named = {"--config-file": "a.d/b.conf", "--config-dir": "a.d"}[option]
    for command in (("topology", "show"), ("cost", "--snapshot", bare), ("explain", "req-1")):
        code, _, err = call(*command, option, named)
        assert code == 1
        assert "a.d/b.conf: cannot be read: 'utf-8' codec can't decode byte 0xe9" in err


def test_a_config_file_that_is_a_folder_is_named(call, tmp_path):
    code, _, err = call("topology", "show", "--config-file", str(tmp_path))
    assert code == 1
    assert f"Is a directory: '{tmp_path}'" in err


def saved_fabric() -> Path:
    """Write the topology of :mod:`tests.snapshots` in the current folder; return its path."""
    path = Path("fabric.yaml")
    path.write_text(FABRIC)
    return path
