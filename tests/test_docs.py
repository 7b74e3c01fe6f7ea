"""What the pages say of commands, files and packages is true."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import hpc_sched
from tests.functional.database_files import write_conf, write_databases

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hpc_sched"
PAGES = [ROOT / "README.rst", *sorted((ROOT / "docs").rglob("*.rst"))]
INSTALL = "pip wheel --no-deps -w dist . && pip install dist/hpc_sched-*.whl"


def test_the_ci_finds_each_command_of_the_readme_once():
    lines = (ROOT / "README.rst").read_text().splitlines()
    commands = [line.strip() for line in lines if line.startswith("   python3 -m venv ")]
    assert [line.rpartition("&& ")[2] for line in commands] == [
        ".venv/bin/hpc-sched demo",
        ".venv/bin/pytest -n logical --dist loadgroup",
    ]
    assert "   git clone <URL of this repository> hpc_sched && cd hpc_sched" in lines


@pytest.mark.ci
def test_the_install_line_installs_the_command(tmp_path: Path):
    for page in ("README.rst", "docs/install.rst"):
        lines = (ROOT / page).read_text().splitlines()
        assert INSTALL in [line.strip() for line in lines], page
    checkout, environment = tmp_path / "checkout", tmp_path / "environment"
    checkout.mkdir()
    for name in ["pyproject.toml", "setup.cfg", "README.rst", "LICENSE"]:
        shutil.copy(ROOT / name, checkout)
    for name in ["hpc_sched", "etc"]:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    venv.create(environment, with_pip=True)
    bin_, site = environment / "bin", Path(_purelib(environment))
    variables = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    subprocess.run(["bash", "-euc", INSTALL], cwd=checkout, env=variables, check=True)
    # The libraries that it depends on are those of the tests' environment.
    (site / "tests_environment.pth").write_text("\n".join(_folders_of_libraries()))
    shown = subprocess.run(
        [bin_ / "hpc-sched", "--version"],
        cwd=tmp_path,
        env=variables,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert shown.split() == ["hpc-sched", hpc_sched.__version__]
    assert (site / "hpc_sched" / "__init__.py").exists()
    assert (environment / "etc" / "hpc_sched" / "nova.conf.sample").exists()


def test_the_policy_names_the_supported_releases_of_nova_and_python():
    text = " ".join((ROOT / "docs" / "support.rst").read_text().split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [nova] = [
        SpecifierSet(text.removeprefix("nova")) for text in project["optional-dependencies"]["nova"]
    ]
    [releases] = re.findall(r"now Nova (.*?)\. :doc:", text)
    assert [int(n) for n in re.findall(r"(\d\d) \(", releases)] == [
        n for n in range(20, 60) if nova.contains(f"{n}.0.0")
    ]
    python = SpecifierSet(project["requires-python"])
    [versions] = re.findall(r"\*\*Python\*\*: (.*?), as far as", text)
    assert re.findall(r"3\.\d+", versions) == [
        f"3.{n}" for n in range(20) if python.contains(f"3.{n}.0")
    ]


def test_the_policy_promises_the_entry_points_that_sites_use_and_the_functions_that_tests_pin():
    text = (ROOT / "docs" / "support.rst").read_text()
    ours = {point.group for point in metadata.distribution("hpc-sched").entry_points}
    promised = set(re.findall(r"``(hpc_sched\.[a-z]+)``", text))
    assert promised == {name for name in ours if name.startswith("hpc_sched.")} - {"hpc_sched.cli"}
    for name in ("topology.load", "hopbyte.hop_bytes", "plan.plan", "classic.listing1"):
        assert f"{name}``" in text


def _purelib(environment: Path) -> str:
    return sysconfig.get_path("purelib", vars={"base": str(environment)})


def _folders_of_libraries() -> list[str]:
    """Return where this process imports libraries from, not the checkout."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def test_the_developers_guide_knows_every_package_and_the_modules_of_none():
    text = (ROOT / "docs" / "developer.rst").read_text()
    table = set(re.findall(r"^``([a-z_/0-9.]+)``  ", text, re.MULTILINE))
    packages = {
        str(path.parent.relative_to(PACKAGE))
        for path in PACKAGE.rglob("__init__.py")
        if path.parent != PACKAGE
    }
    modules = {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    assert table == packages | modules


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path):
    text = page.read_text()
    named = re.findall(r"``([\w./]+/[\w.]+\.(?:py|rst|toml|sample))``", text)
    named += re.findall(r"`[^`<]*<([\w./]+\.rst)>`_", text)
    folders = (ROOT, PACKAGE, ROOT / "tests")
    assert [name for name in named if not any((f / name).exists() for f in folders)] == []


def test_every_command_is_in_the_readme():
    text = (ROOT / "README.rst").read_text()
    commands = {point.name.split("_")[0] for point in metadata.entry_points(group="hpc_sched.cli")}
    assert {name for name in commands if f"``hpc-sched {name}" not in text} == set()


def test_the_log_of_a_failed_start_is_as_the_operators_guide_describes_it(tmp_path: Path):
    (tmp_path / "topology.yaml").write_text(
        "switches:\n- {name: a, hosts: n1}\n- {name: b, hosts: n1}\n"
    )
    log = tmp_path / "nova-scheduler.log"
    sample = (ROOT / "etc" / "nova.conf.sample").read_text()
    conf = write_conf(
        tmp_path / "nova.conf",
        {"DEFAULT": {"transport_url": "fake://", "log_file": str(log)}},
        {"oslo_concurrency": {"lock_path": str(tmp_path)}},
        write_databases(tmp_path),
        text=sample.replace("/etc/hpc_sched/topology.yaml", str(tmp_path / "topology.yaml")),
    )
    code = "import sys; sys.argv[0] = 'nova-scheduler'; from nova.cmd.scheduler import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "--config-file", str(conf)],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    lines = log.read_text().splitlines()
    [reason] = [line for line in lines if " CRITICAL nova " in line]
    assert reason.endswith(
        "Unhandled error: hpc_sched.exceptions.TopologyError: "
        f"{tmp_path}/topology.yaml:3: host 'n1' is under leaf 'a' and leaf 'b'"
    )
    assert lines.index(reason) < len(lines) - 10
