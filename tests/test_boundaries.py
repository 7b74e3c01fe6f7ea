"""What the layout promises: imports point inward, entry points resolve."""

import ast
import importlib.metadata
import subprocess
import sys
from collections import Counter
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hpc_sched"

# The parts that must run where no Nova is installed, with the modules at the top.
PURE = {
    *("topology", "core", "page", "sim", "experiments", "snapshot", "cli", "metrics", "osc"),
    "configuration",
}
# Without a part of their own: any part may import these.
BASE = {
    *("clock", "exceptions", "files", "decimals", "digests", "extensions", "json_values"),
    *("table_file", "yaml_nodes"),
}
# Who may import what of the package: arrows point inward.
ALLOWED = {
    "clock": set(),
    "configuration": {"configuration", "exceptions", "masking", "topology"},
    "files": {"exceptions"},
    "decimals": set(),
    "digests": set(),
    "extensions": set(),
    "enabled_plugins": set(),
    "json_values": {"exceptions"},
    "masking": set(),
    "table_file": {"exceptions", "decimals", "yaml_nodes"},
    "terminal_text": set(),
    "yaml_nodes": {"exceptions"},
    "topology": {"topology", *BASE},
    "core": {"core", "topology", *BASE},
    "conf": {"configuration", "core", "exceptions", "topology"},
    "metrics": {"metrics", "clock", "core", "exceptions"},
    "snapshot": {"snapshot", "core", "topology", "conf", "enabled_plugins", "terminal_text", *BASE},
    # Its modules name the commands by texts: python-openstackclient imports it for all commands.
    "osc": {"cli", "exceptions"},
    "page": {"page"},
    "sim": {"sim", "page", "snapshot", "core", "topology", *BASE},
    "experiments": {"experiments", "sim", "page", "core", "topology", *BASE},
    "nova_glue": {
        "nova_glue",
        "clock",
        "enabled_plugins",
        "core",
        "topology",
        "conf",
        "digests",
        "exceptions",
        "masking",
        "metrics",
        "configuration",
    },
    "weighers": {
        "weighers",
        "nova_glue",
        "core",
        "topology",
        "conf",
        "enabled_plugins",
        "exceptions",
        "extensions",
        "metrics",
    },
    "status": {
        "status",
        "metrics",
        "snapshot",
        "enabled_plugins",
        "filters",
        "weighers",
        "nova_glue",
        "masking",
        "core",
        "topology",
        "conf",
        "configuration",
        *BASE,
    },
    "filters": {
        "filters",
        "nova_glue",
        "core",
        "topology",
        "conf",
        "exceptions",
        "extensions",
        "metrics",
    },
}
# What nova-scheduler imports reads no snapshots. Of readers it imports the configured driver's.
IN_SCHEDULER = {"core", "topology", "nova_glue", "filters", "weighers"}
READERS = PACKAGE / "topology" / "readers"
MAY_IMPORT_NOVA = {"nova_glue", "weighers", "filters", "demo", "status"}
# Modules in one folder, without __init__.
MOST_IN_A_FOLDER = 13


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def name_of(path: Path) -> str:
    """Return the name by which a module is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def import_graph() -> networkx.DiGraph:
    """Return the graph of imports in the package, also those in functions and for types."""
    known = {name_of(path) for path in modules()}
    graph = networkx.DiGraph()
    for path in modules():
        for name in imports_of(path):
            # The name imported is a module, or something in one.
            for module in (name, name.rpartition(".")[0]):
                if module in known:
                    graph.add_edge(name_of(path), module)
                    break
    return graph


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_inward(path: Path):
    part = part_of(path)
    names = imports_of(path)
    if part not in MAY_IMPORT_NOVA:
        assert not {name for name in names if name.split(".")[0] == "nova"}
    if part in IN_SCHEDULER and READERS not in path.parents:
        assert "msgspec" not in {name.split(".")[0] for name in names}
    if part in ALLOWED:
        inside = {name.split(".")[1] for name in names if name.startswith("hpc_sched.")}
        assert inside <= ALLOWED[part]


def test_no_imports_go_round_in_a_circle():
    graph = import_graph()
    assert len(graph) > 200
    assert not list(networkx.selfloop_edges(graph))
    circles = [c for c in networkx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles, [sorted(circle) for circle in circles]


def test_the_glue_imports_in_one_direction():
    inward = ["io", "exporter", "read", "decide", "claim", "answer", "record", "phases", "session"]
    for i, part in enumerate(inward):
        folder = PACKAGE / "nova_glue" / part
        for path in [*folder.rglob("*.py"), *folder.parent.glob(f"{part}.py")]:
            glue = {name.split(".")[2] for name in imports_of(path) if ".nova_glue." in name}
            assert glue.isdisjoint(inward[i + 1 :]), path


def test_no_folder_has_more_modules_than_one_looks_through():
    found = Counter(path.parent for path in modules() if path.name != "__init__.py")
    many = {str(folder.relative_to(ROOT)): n for folder, n in found.items() if n > MOST_IN_A_FOLDER}
    assert not many


def test_the_pure_parts_import_where_nova_is_blocked():
    pure = [name_of(path) for path in modules() if part_of(path) in PURE or path.parent == PACKAGE]
    assert len(pure) > 150
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'nova':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import importlib\n"
        f"for name in {pure!r}:\n"
        "    importlib.import_module(name)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'nova']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_commands_of_hpc_sched_need_no_openstackclient():
    theirs = {"openstackclient", "osc_lib"}
    for path in modules():
        if part_of(path) != "osc":
            assert theirs.isdisjoint(name.split(".")[0] for name in imports_of(path)), path


def test_nothing_registers_options_at_import():
    code = (
        "from oslo_config import cfg\n"
        "import hpc_sched.conf\n"
        "assert 'hpc_sched' not in cfg.CONF._groups\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_entry_point_resolves():
    ours = importlib.metadata.distribution("hpc-sched").entry_points
    assert {point.group for point in ours} >= {
        "console_scripts",
        "hpc_sched.topology",
        "hpc_sched.weighers",
        "hpc_sched.filters",
        "hpc_sched.policies",
        "hpc_sched.queues",
        "nova.api.extra_spec_validators",
        "openstack.cli.extension",
        "openstack.hpc.v1",
        "oslo.config.opts",
    }
    # Nova's modules want its objects registered and its threads chosen first, as a service does.
    code = (
        "import hpc_sched.demo.nova_cloud, importlib.metadata\n"
        "for point in importlib.metadata.distribution('hpc-sched').entry_points:\n"
        "    point.load()\n"
        "from hpc_sched import filters, weighers\n"
        "assert [c.__name__ for c in weighers.all_weighers()] == [\n"
        "    'BunchWeigher', 'HopByteWeigher', 'MDOBPWeigher', 'RackCapacityWeigher',\n"
        "    'WholeLeafWeigher']\n"
        "assert [c.__name__ for c in filters.all_filters()] == [\n"
        "    'HPCDedicatedHostFilter', 'HPCGroupFilter', 'HPCHomogeneityFilter',\n"
        "    'HPCInterferenceFilter', 'HPCRackCapacityFilter']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_entry_points_stand_in_pyproject_alone():
    assert "entry_points" not in (ROOT / "setup.cfg").read_text()
