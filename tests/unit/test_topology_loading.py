"""Drivers found by entry point: the right one, none, wrong options, and broken ones.

The plugins of these tests are real distributions in a folder on the path, as a site's are.
"""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from stevedore import _cache
from stevedore.extension import ExtensionManager

from hpc_sched import exceptions, extensions
from hpc_sched.topology import TopologyDriver, load
from hpc_sched.topology.readers import topology_driver
from hpc_sched.topology.readers.yaml_file import YamlFileDriver

Install = Callable[[str, str, str], None]

OURS = sorted(point.name for point in metadata.entry_points(group=topology_driver.NAMESPACE))

GOOD = """\
from hpc_sched.topology import Topology, TopologyDriver


class Driver(TopologyDriver):
    def __init__(self, leaf="sw1"):
        self.leaf = leaf

    def load(self):
        return Topology.from_tree({self.leaf: ["h1", "h2"]})


class Other(Driver):
    pass
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution of one module with the given entry points of one group."""
    monkeypatch.syspath_prepend(tmp_path)
    # stevedore remembers the entry points of a group as long as the process lives, and those of
    # a path in the user's folder.
    monkeypatch.setattr(ExtensionManager, "ENTRY_POINT_CACHE", {})
    monkeypatch.setattr(_cache._c, "_dir", str(tmp_path / "cache"), raising=False)

    def install_(module: str, code: str, entry_points: str) -> None:
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)

    return install_


def test_the_yaml_driver_is_installed():
    assert "yaml" in topology_driver.driver_names()


def test_a_driver_of_another_package_is_found_and_gets_its_options(install: Install):
    install("site_good", GOOD, "[hpc_sched.topology]\nsite = site_good:Driver\n")
    assert load("site").leaves == ("sw1",)
    assert load("site", leaf="sw9").leaves == ("sw9",)
    assert topology_driver.driver_names() == sorted([*OURS, "site"])


def test_an_unknown_driver_is_refused_with_the_names_of_the_installed_ones(install: Install):
    install("site_known", GOOD, "[hpc_sched.topology]\nsite = site_known:Driver\n")
    with pytest.raises(
        exceptions.TopologyError,
        match=r"no topology driver 'nope' in the entry points of hpc_sched.topology; "
        rf"installed: {', '.join(sorted([*OURS, 'site']))}\Z",
    ):
        load("nope")


def test_two_packages_with_a_driver_of_one_name_are_refused(install: Install):
    install("site_one", GOOD, "[hpc_sched.topology]\nsite = site_one:Driver\n")
    install("site_two", GOOD, "[hpc_sched.topology]\nsite = site_two:Other\n")
    with pytest.raises(
        exceptions.TopologyError, match=r"several packages bring a topology driver 'site'"
    ):
        load("site")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param(
            {"path": "x", "paht": "y"},
            "'yaml' does not take these options: .*'paht'",
            id="an option too many",
        ),
        pytest.param({}, "a file .* or a command .*, found neither", id="no source"),
        pytest.param({"path": None}, "a file .* or a command .*, found neither", id="no path"),
        pytest.param(
            {"path": "x", "command": ["y"]},
            "a file .* or a command .*, found both",
            id="two sources",
        ),
        pytest.param({"path": 7}, "'yaml' does not take these options", id="a number for a path"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], error: str):
    with pytest.raises(exceptions.TopologyError, match=error):
        load("yaml", **options)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        pytest.param("import no_such_module\n", ImportError, id="it imports what is not there"),
        pytest.param("raise RuntimeError('no licence')\n", RuntimeError, id="it fails at import"),
        pytest.param("class Driver\n", SyntaxError, id="it is not Python"),
        pytest.param("class Elsewhere: pass\n", Exception, id="its class is called otherwise"),
    ],
)
def test_a_driver_that_cannot_be_imported_is_named_with_the_cause(
    install: Install, tmp_path: Path, code: str, cause: type[Exception]
):
    # Python keeps what it imported: every case is a module of its own.
    module = f"site_{tmp_path.name}"
    install(module, code, f"[hpc_sched.topology]\nsite = {module}:Driver\n")
    with pytest.raises(
        exceptions.TopologyError, match=r"topology driver 'site' cannot be loaded: \S"
    ) as caught:
        load("site")
    assert isinstance(caught.value.__cause__, cause)


def test_a_broken_driver_does_not_hurt_a_good_one(install: Install, tmp_path: Path):
    install("site_bad", "import no_such\n", "[hpc_sched.topology]\nsite = site_bad:Driver\n")
    path = tmp_path / "topology.yaml"
    path.write_text("switches:\n- {name: sw1, hosts: [h1]}\n")
    assert load("yaml", path=path).hosts == ("h1",)
    assert topology_driver.driver_names() == sorted([*OURS, "site"])


def test_the_error_of_a_driver_is_passed_on_unchanged(install: Install):
    code = GOOD.replace('["h1", "h2"]', "[]")
    install("site_empty", code, "[hpc_sched.topology]\nsite = site_empty:Driver\n")
    with pytest.raises(exceptions.TopologyError, match=r"\Aleaf 'sw1' has no hosts\Z"):
        load("site")


def test_the_yaml_driver_is_a_driver_and_never_falsy(tmp_path: Path):
    driver = YamlFileDriver(tmp_path)
    assert isinstance(driver, TopologyDriver)
    assert not hasattr(driver, "__len__")
    assert not hasattr(driver, "__bool__")


def test_the_classes_of_a_group_are_sorted_by_entry_point(install: Install):
    install("site_classes", GOOD, "[site.test]\nb = site_classes:Driver\na = site_classes:Other\n")
    assert [found.__name__ for found in extensions.classes("site.test")] == ["Other", "Driver"]
    assert extensions.classes("site.nothing") == []


def test_a_class_that_is_named_and_cannot_be_had_does_not_go_missing_silently(install: Install):
    install("site_half", GOOD, "[site.test]\na = site_half:Driver\nb = site_half.gone:Nothing\n")
    with pytest.raises(ImportError, match="site_half"):
        extensions.classes("site.test")
