"""The few names and arguments that other programs rely on: they are not renamed."""

import inspect

import numpy as np
import pytest

from hpc_sched import exceptions, topology
from hpc_sched.core.classic import listing1
from hpc_sched.core.hopbyte import hop_bytes
from hpc_sched.core.plan import plan
from hpc_sched.topology import Topology

REQUIRED = inspect.Parameter.empty
FABRIC = Topology.from_tree({"core": {"pod1": {"leaf1": ["h1", "h2"]}, "pod2": {"leaf2": ["h3"]}}})


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (hop_bytes, {"topology": REQUIRED, "placement": REQUIRED, "traffic": None}),
        (
            plan,
            {
                **dict.fromkeys(("topology", "capacity", "members", "count"), REQUIRED),
                **{"require": None, "max_leaves": None, "group_id": ""},
            },
        ),
        (listing1, dict.fromkeys(("topology", "capacity", "members", "awaiting"), REQUIRED)),
    ],
    ids=["hop_bytes", "plan", "listing1"],
)
def test_arguments_are_given_by_these_names_alone(function, arguments):
    found = inspect.signature(function).parameters.values()
    assert {argument.kind for argument in found} == {inspect.Parameter.KEYWORD_ONLY}
    assert {argument.name: argument.default for argument in found} == arguments


def test_a_topology_is_loaded_by_the_name_of_a_driver_and_its_options(tmp_path):
    path = tmp_path / "topology.yaml"
    path.write_text("switches: [{name: leaf1, hosts: [h1, h2]}]\n")
    driver, options = inspect.signature(topology.load).parameters.values()
    assert driver.name == "driver"
    assert options.kind is inspect.Parameter.VAR_KEYWORD
    loaded = topology.load("yaml", path=str(path))
    assert isinstance(loaded, Topology)
    assert loaded.hosts == ("h1", "h2")
    with pytest.raises(exceptions.TopologyError):
        topology.load("yaml", path=str(tmp_path / "missing"))


def test_a_topology_shows_hosts_leaves_and_distances():
    assert FABRIC.hosts == ("h1", "h2", "h3")
    assert tuple(FABRIC.leaves) == ("leaf1", "leaf2")
    assert FABRIC.depth == 3
    assert [FABRIC.hops("h1", b) for b in FABRIC.hosts] == [0, 1, 5]
    assert FABRIC.leaf_of("h3") == "leaf2"
    assert tuple(FABRIC.hosts_of("pod1")) == ("h1", "h2")
    assert list(inspect.signature(FABRIC.hops).parameters) == ["a", "b"]
    assert list(inspect.signature(FABRIC.leaf_of).parameters) == ["host"]
    assert list(inspect.signature(FABRIC.hosts_of).parameters) == ["switch"]


def test_results_have_the_types_that_are_promised():
    room = dict.fromkeys(FABRIC.hosts, 1)
    answer = plan(topology=FABRIC, capacity=room, members={}, count=2)
    assert answer.hosts == {"h1": 1, "h2": 1}
    assert answer.hop_bytes == 1
    weights = listing1(topology=FABRIC, capacity=room, members={}, awaiting=2)
    assert weights == {"leaf1": 6, "leaf2": 3}
    placement = {"p": "h1", "q": "h3"}
    assert hop_bytes(topology=FABRIC, placement=placement) == 5
    assert hop_bytes(topology=FABRIC, placement=placement, traffic={("p", "q"): 2}) == 10
    assert hop_bytes(topology=FABRIC, placement=placement, traffic=np.array([[0, 3], [3, 0]])) == 15
