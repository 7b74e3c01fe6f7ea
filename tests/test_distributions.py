"""Wheel and sdist hold what they should, and nothing else.

They are built by ``.ci/dist``; where HPC_SCHED_TEST_DIST names a folder, those in it are read.
"""

import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytest.importorskip("build")
pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hpc_sched"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = f"hpc_sched-{PROJECT['version']}"
RELEASED = os.environ.get("HPC_SCHED_TEST_DIST")


def built(target: Path, tree: Path = ROOT, umask: int = 0o022, **variables: str) -> Path:
    """Build both into a folder and return it."""
    done = subprocess.run(
        [sys.executable, tree / ".ci" / "dist", target],
        env={**os.environ, **variables},
        umask=umask,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(RELEASED) if RELEASED else built(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(dist / f"{NAME}-py3-none-any.whl")


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_bytes(wheel.read(f"{NAME}.dist-info/METADATA"))


@pytest.fixture(scope="module")
def sources(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tree of the sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(dist / f"{NAME}.tar.gz") as packed:
        # Before Python 3.11.4 there are no filters; the archive is ours.
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / NAME


def tracked() -> set[str]:
    """Return the files of the checkout, those that are not committed yet too."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_holds_the_package_the_samples_and_nothing_else(wheel: zipfile.ZipFile):
    names = set(wheel.namelist())
    package = {name for name in tracked() if name.startswith("hpc_sched/")}
    etc = ROOT / "etc"
    samples = {str(path.relative_to(etc)) for path in etc.rglob("*") if path.is_file()}
    assert {"hpc_sched/sim/report/templates/page.html", "hpc_sched/conf.py"} <= package
    assert len(samples) >= 5
    information = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt"}
    assert names == {
        *package,
        *(f"{NAME}.data/data/etc/hpc_sched/{name}" for name in samples),
        *(f"{NAME}.dist-info/{name}" for name in [*information, "licenses/LICENSE"]),
    }


def test_samples_of_the_wheel_are_those_of_the_tree(wheel: zipfile.ZipFile):
    for path in (ROOT / "etc").glob("*.sample"):
        packed = wheel.read(f"{NAME}.data/data/etc/hpc_sched/{path.name}")
        assert packed == path.read_bytes()


def test_the_wheel_requires_what_pyproject_says_and_nova_as_an_extra_alone(metadata: Message):
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    always = [str(each) for each in required if each.marker is None]
    stated = [str(Requirement(text)) for text in PROJECT["dependencies"]]
    assert sorted(always) == sorted(stated)
    assert not {canonicalize_name(Requirement(text).name) for text in always} & {
        "nova",
        "placement",
    }
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["Requires-Python"] == ",".join(sorted(PROJECT["requires-python"].split(",")))


def test_the_description_is_what_package_indexes_accept(dist: Path):
    pytest.importorskip("twine")
    files = [str(path) for path in dist.iterdir() if path.name.endswith((".whl", ".tar.gz"))]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(files) == done.stdout.count("PASSED") == 2


def test_the_sdist_holds_every_file_of_the_checkout(sources: Path):
    found = {str(path.relative_to(sources)) for path in sources.rglob("*") if path.is_file()}
    made = {"PKG-INFO", *(name for name in found if name.startswith("hpc_sched.egg-info/"))}
    assert found - made == tracked()
    # setuptools adds a section of its own to this one.
    same = found - made - {"setup.cfg"}
    assert [n for n in sorted(same) if (sources / n).read_bytes() != (ROOT / n).read_bytes()] == []


def test_no_member_of_the_sdist_has_an_owner_or_a_time_of_its_own(dist: Path):
    with tarfile.open(dist / f"{NAME}.tar.gz") as packed:
        members = packed.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
    assert len({m.mtime for m in members}) == 1
    assert {oct(m.mode) for m in members} == {"0o644", "0o755"}
    assert [m.name for m in members] == sorted(m.name for m in members)


@pytest.mark.nightly("processes", "two more builds, each with setuptools from the network")
def test_the_same_bytes_are_built_elsewhere_later_and_from_the_sdist(
    dist: Path, sources: Path, tmp_path: Path
):
    checkout = tmp_path / "checkout"
    for name in sorted(tracked()):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, checkout / name)
        (checkout / name).chmod(0o700 if os.access(ROOT / name, os.X_OK) else 0o600)
    # Leftovers of other builds, which must not get into a package.
    leftovers = ("build/lib/hpc_sched/old.py", "hpc_sched/__pycache__/conf.cpython-311.pyc")
    for name in (*leftovers, "hpc_sched.egg-info/SOURCES.txt"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("hpc_sched/old.py\n")
    with tarfile.open(dist / f"{NAME}.tar.gz") as packed:
        epoch = str(int(packed.getmembers()[0].mtime))
    first = built(tmp_path / "first", checkout, umask=0o077, SOURCE_DATE_EPOCH=epoch)
    second = built(tmp_path / "second", sources)
    for name in (f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"):
        sums = [hashlib.sha256((d / name).read_bytes()).hexdigest() for d in (dist, first, second)]
        assert len(set(sums)) == 1, name


@pytest.mark.skipif(not RELEASED, reason=".ci/release writes it: tox -e release")
def test_the_checksums_are_those_of_all_that_is_published(dist: Path):
    files = sorted(path for path in dist.iterdir() if path.name != "SHA256SUMS")
    made = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    assert (dist / "SHA256SUMS").read_text().splitlines() == made
    assert {path.name for path in files} == {
        f"{NAME}-py3-none-any.whl",
        f"{NAME}.tar.gz",
        f"{NAME}.cdx.json",
    }


@pytest.mark.skipif(not RELEASED, reason=".ci/release writes it: tox -e release")
def test_the_bill_of_materials_names_hpc_sched_and_its_pinned_dependencies(dist: Path):
    bill = json.loads((dist / f"{NAME}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    root = bill["metadata"]["component"]
    assert (root["name"], root["version"]) == ("hpc-sched", PROJECT["version"])
    found = {canonicalize_name(each["name"]): each["version"] for each in bill["components"]}
    wanted = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert {"nova", *wanted} <= found.keys()
    newest = max((ROOT / "constraints").glob("nova-*.txt"))
    pins = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)$", newest.read_text()))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    others = {name: version for name, version in found.items() if name not in ("pip", "hpc-sched")}
    assert others == {name: pinned.get(name) for name in others}
    # How they depend on each other, from hpc_sched on.
    depends = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    names = {each["bom-ref"]: canonicalize_name(each["name"]) for each in bill["components"]}
    assert wanted <= {names[ref] for ref in depends[root["bom-ref"]]}
