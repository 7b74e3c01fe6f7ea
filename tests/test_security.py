"""The page on security: its numbers are those of the code, and the tests that it names exist."""

import ast
import re
from pathlib import Path

import pytest

from hpc_sched import table_file, yaml_nodes
from hpc_sched.core import capacity, extra_spec_names
from hpc_sched.core.constraints import extra_spec, group_size, max_leaves
from hpc_sched.snapshot.log import logged_decisions
from hpc_sched.snapshot.source import snapshot_file
from hpc_sched.topology import hostlist
from hpc_sched.topology.readers import name_map, text_driver
from hpc_sched.topology.readers.infiniband import ibnetdiscover_dump
from hpc_sched.topology.readers.slurm import switch_graph

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "operator" / "security.rst").read_text()


@pytest.mark.parametrize(
    ("row", "limit"),
    [
        ("a value of an extra spec or hint", f"{extra_spec.MAX_VALUE} characters"),
        ("the same, repeated in a fault or log", f"{extra_spec_names.MAX_SHOWN} characters"),
        ("``hpc:group_size``", str(group_size.MOST)),
        ("``hpc:max_leaves``", str(max_leaves.MOST)),
        ("``max_server_per_host``", rf"2\ :sup:`{capacity.UNBOUNDED.bit_length() - 1}`"),
        ("a topology, or what a command prints", f"{text_driver.MAX_BYTES >> 20} MiB"),
        ("the same, and a name map", f"{text_driver.MAX_LINES:,} lines"),
        ("names of hosts in all lists of a topology", f"{hostlist.MAX_NAMES:,}"),
        ("names of switches in all lists of Slurm's", f"{switch_graph.MAX_LISTED:,}"),
        ("names in ``--drain``, ``--add`` or ``--host``", f"{hostlist.MAX_NAMES:,}"),
        ("lists, keys and texts of a YAML file", f"{yaml_nodes.MAX_NODES:,}"),
        ("nodes and cables in a dump of ibnetdiscover", f"{ibnetdiscover_dump.MAX_PARTS:,}"),
        ("entries of a name map", f"{name_map.MAX_ENTRIES:,}"),
        ("an interference index", f"{table_file.MAX_BYTES // 10**6} MB"),
        ("a snapshot", f"{snapshot_file.MAX_BYTES // 10**9} GB"),
        ("values in a snapshot", f"{snapshot_file.MAX_VALUES:,}"),
        ("values in the records of a decision log", f"{logged_decisions.MAX_VALUES:,}"),
    ],
)
def test_the_page_has_the_limits_of_the_code(row: str, limit: str):
    assert re.search(rf"^{re.escape(row)} +{re.escape(limit)} ", PAGE, re.MULTILINE)


def test_the_page_names_tests_that_there_are():
    named = set(re.findall(r"``((?:unit/|functional/)?test_\w+\.py)``", PAGE))
    assert len(named) > 10
    assert {name for name in named if not (ROOT / "tests" / name).exists()} == set()


# What would open a port, make objects of what is read, or read XML.
FORBIDDEN = {
    *("socket", "socketserver", "http", "asyncio", "xmlrpc", "wsgiref"),
    *("pickle", "marshal", "shelve", "xml", "defusedxml", "lxml"),
}


# The simulator's report takes apart the pictures that matplotlib has drawn a moment ago, as SVG;
# nothing that comes from outside is read as XML. The metrics are served by one module, and the
# status check reads them.
OUR_OWN = {
    ("rendering.py", "xml"),
    ("metrics_endpoint.py", "http"),
    *(("endpoint.py", name) for name in ("http", "socket", "socketserver")),
}


def test_only_metrics_open_a_port_and_no_module_reads_objects_or_xml():
    imported = {
        (path.name, name.split(".")[0])
        for path in (ROOT / "hpc_sched").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
    }
    assert len(imported) > 300
    assert {found for found in imported if found[1] in FORBIDDEN} == OUR_OWN
