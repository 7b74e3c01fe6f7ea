"""Each file of constraints pins what its release of Nova is installed and tested with."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = sorted((ROOT / "constraints").glob("nova-*.txt"))
NEWEST = FILES[-1]
# Extras that need not be the same on every machine, or are for the newest release alone.
UNPINNED = {"browser"}
NEWEST_ALONE = {"deployment", "ironic", "release"}


def pins(path: Path) -> dict[str, Version]:
    """Return the version of each package in a file of constraints."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found: dict[str, Version] = {}
    for line in lines:
        name, exactly, version = line.partition("==")
        assert exactly, f"{path.name}: {line!r}: expected NAME==VERSION"
        assert canonicalize_name(name) not in found, f"{path.name}: {name} again"
        found[canonicalize_name(name)] = Version(version)
    return found


def ranges() -> Iterator[tuple[str, Requirement]]:
    """Yield what pyproject.toml requires of other packages, with the extra, or "" if always."""
    lists = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    for extra, texts in lists.items():
        for requirement in map(Requirement, texts):
            if requirement.name != PROJECT["name"]:
                yield extra, requirement


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_pins_satisfy_the_ranges_of_the_package_and_of_all_its_extras(path: Path):
    pinned = pins(path)
    not_here = UNPINNED | (NEWEST_ALONE if path != NEWEST else set())
    wrong = []
    for extra, requirement in ranges():
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None:
            if extra not in not_here:
                wrong.append(f"{requirement} ({extra or 'always'}): no pin")
        elif not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement} ({extra or 'always'}): pinned to {version}")
    assert not wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_pins_the_release_in_its_name(path: Path):
    release = Version(path.stem.removeprefix("nova-"))
    assert pins(path)["nova"] == release
    # Placement is released with Nova.
    assert pins(path)["openstack-placement"].major == release.major - 18


def test_there_is_a_file_for_every_supported_release_and_an_environment_of_tox():
    [nova] = [each for extra, each in ranges() if extra == "nova"]
    supported = [n for n in range(20, 60) if nova.specifier.contains(Version(f"{n}.0.0"))]
    assert [Version(path.stem.removeprefix("nova-")).major for path in FILES] == supported
    tox = (ROOT / "tox.ini").read_text()
    [listed] = re.findall(r"^env_list = .*nova\{([\d,]+)\}", tox, re.MULTILINE)
    assert [int(each) for each in listed.split(",")] == supported


def test_what_builds_the_package_is_pinned_too():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement in map(Requirement, build):
        assert requirement.specifier.contains(pins(NEWEST)[canonicalize_name(requirement.name)])
