"""Drivers found by entry point: the right one, none, wrong options, and broken ones.

The plugins of these tests are real distributions in a folder on the path, as a site's are.
"""

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from oslo_config import cfg
from stevedore import _cache
from stevedore.extension import ExtensionManager

from hpc_sched import conf, exceptions, extensions
from hpc_sched.configuration import topology_options
from hpc_sched.topology import TopologyDriver, load
from hpc_sched.topology.readers import driver_options, topology_driver
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


# Reads lines of a leaf and its hosts.
READER = """\
import re
from oslo_config import cfg
from hpc_sched.topology import Topology
from hpc_sched.topology.readers.text_driver import TextDriver


class Driver(TextDriver):
    options = {**TextDriver.options, "spare": cfg.BoolOpt("site_spare", default=True)}
    patterns = (re.compile(rb"^SITE ", re.MULTILINE),)
    others = [(re.compile(rb"^SITE2 "), "site-convert")]

    def __init__(self, *, spare=True, **source):
        super().__init__(**source)
        self.spare = spare

    def parse_text(self, content, name, names):
        _, leaf, *hosts = content.decode().split()
        return Topology.from_tree({leaf: [*hosts, "spare"] if self.spare else hosts})
"""
ENTRY_POINT = "[hpc_sched.topology]\nsite = {}:Driver\n"


def test_a_text_of_another_package_s_driver_is_recognised(install: Install):
    install("site_reader", READER, ENTRY_POINT.format("site_reader"))
    install("site_damaged", "import no_such\n", "[hpc_sched.topology]\ndamaged = site_damaged:D\n")
    assert topology_driver.driver_of(b"SITE sw1 h1\n", "t") == "site"
    assert topology_driver.driver_of(b"switches:\n", "t") == "yaml"
    with pytest.raises(exceptions.TopologyError, match="t: not read by any driver: use site-conv"):
        topology_driver.driver_of(b"SITE2 sw1\n", "t")
    known = "drivers ibnetdiscover, ironic, kubernetes, lldp, site, slurm, yaml reads"
    with pytest.raises(exceptions.TopologyError, match=known):
        topology_driver.driver_of(b"?", "t")


def nova_conf(path: Path, *lines: str) -> cfg.ConfigOpts:
    path.write_text("\n".join(["[hpc_sched]", *lines, ""]))
    options = cfg.ConfigOpts()
    conf.register_opts(options)
    options([], default_config_files=[str(path)])
    return options


@pytest.mark.parametrize(
    ("line", "hosts"),
    [("", ("h1", "spare")), ("site_spare = false", ("h1",)), ("site_spare = yes", ("h1", "spare"))],
)
def test_an_option_of_another_package_s_driver_is_read_from_nova_conf(
    install: Install, tmp_path: Path, line: str, hosts: tuple[str, ...]
):
    install("site_option", READER, ENTRY_POINT.format("site_option"))
    (tmp_path / "fabric").write_text("SITE sw1 h1\n")
    named = ("topology_driver = site", f"topology_file = {tmp_path / 'fabric'}", line)
    driver, options = topology_options.source(nova_conf(tmp_path / "nova.conf", *named))
    assert load(driver, **options).hosts == hosts


def test_an_option_of_another_package_s_driver_is_listed_and_its_value_is_checked(
    install: Install, tmp_path: Path
):
    install("site_listed", READER, ENTRY_POINT.format("site_listed"))
    [(_, listed)] = conf.list_opts()
    assert [opt.dest for opt in listed if opt not in conf.OPTS] == ["site_spare"]
    options = nova_conf(tmp_path / "nova.conf", "topology_driver = site", "site_spare = perhaps")
    with pytest.raises(exceptions.ConfigError, match=r"\[hpc_sched\] site_spare is not valid"):
        topology_options.source(options)


def test_an_option_that_hpc_sched_has_with_another_meaning_is_refused(
    install: Install, tmp_path: Path
):
    code = READER.replace("site_spare", "topology_name")
    install("site_twice", code, ENTRY_POINT.format("site_twice"))
    options = nova_conf(tmp_path / "nova.conf", "topology_driver = site")
    with pytest.raises(exceptions.ConfigError, match=r"site: it has another option .*topology_na"):
        topology_options.source(options)


def test_each_driver_takes_the_options_that_it_declares_and_all_are_known():
    found = {}
    for point in metadata.entry_points(group=topology_driver.NAMESPACE):
        options = topology_driver.options_of(point.name)
        taken = [parameter for cls in point.load().__mro__[:-1] for parameter in taken_by(cls)]
        assert options.keys() <= set(taken), point.name
        found |= options
    assert found == driver_options.OPTIONS


def taken_by(cls: type) -> list[str]:
    return list(inspect.signature(cls.__init__).parameters)


def test_no_reader_is_imported_but_the_configured_one(tmp_path: Path):
    path = tmp_path / "topology.yaml"
    path.write_text("switches:\n- {name: sw1, hosts: h1}\n")
    code = (
        "import sys\n"
        "from oslo_config import cfg\n"
        "from hpc_sched import conf, topology\n"
        "from hpc_sched.configuration import topology_options\n"
        "options = cfg.ConfigOpts()\n"
        "conf.register_opts(options)\n"
        "options([], default_config_files=[])\n"
        f"options.set_override('topology_file', {str(path)!r}, 'hpc_sched')\n"
        "driver, given = topology_options.source(options)\n"
        "assert topology.load(driver, **given).hosts == ('h1',)\n"
        "assert 'msgspec' not in sys.modules\n"
        "readers = 'slurm', 'lldp', 'ironic', 'kubernetes', 'infiniband', 'cabling'\n"
        "names = [f'hpc_sched.topology.readers.{name}' for name in readers]\n"
        "assert not sys.modules.keys() & set(names)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
