"""The digest of a topology: one for every description of a fabric, another for every other fabric.

::

            core
          /      \\
       pod1      pod2
      /    \\       \\
    leaf1  leaf2   leaf3
    a1 a2  b1 b2   c1 c2
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import digests
from hpc_sched.core.sharing.cache_interference import InterferenceIndex
from hpc_sched.topology import Topology, load
from hpc_sched.topology.canonical_text import lines_of
from hpc_sched.topology.compare import settling
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details
from hpc_sched.topology.writers import slurm_writer, yaml_writer
from tests.ib_dumps import three_levels
from tests.lldp_outputs import racks
from tests.unit.test_topology_lldp import ALL, outputs_of, read

TREE = {
    "core": {
        "pod1": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"]},
        "pod2": {"leaf3": ["c1", "c2"]},
    }
}


def digest_of(topology: Topology) -> str:
    return digests.of(lines_of(topology))


def digest(tree: dict, **more: object) -> str:
    return digest_of(Topology.from_tree(tree, **more))


def shuffled(tree: dict, dice: random.Random) -> dict:
    """Return the same switches and hosts in another order."""
    names = dice.sample(list(tree), len(tree))
    return {
        name: shuffled(tree[name], dice)
        if isinstance(tree[name], dict)
        else dice.sample(tree[name], len(tree[name]))
        for name in names
    }


def test_the_order_of_a_description_is_no_difference():
    dice = random.Random(7)
    assert {digest(shuffled(TREE, dice)) for _ in range(20)} == {digest(TREE)}


def test_the_digest_is_the_same_in_every_release_that_compares_itself_with_others():
    """A change of the canonical text needs a change of the version: digests then differ."""
    assert digest(TREE) == "df0270e5"


def test_format_and_driver_are_no_difference(tmp_path):
    discovered = three_levels(3, 2, 3).topology()
    text, conf = tmp_path / "topology.yaml", tmp_path / "topology.conf"
    text.write_text(yaml_writer.text_of(discovered))
    assert digest_of(load("yaml", path=text)) == digest_of(discovered)

    text.write_text(yaml_writer.text_of(Topology.from_tree(TREE)))
    conf.write_text(slurm_writer.text_of(Topology.from_tree(TREE))[0])
    assert digest_of(load("yaml", path=text)) == digest(TREE)
    assert digest_of(load("slurm", path=conf)) == digest(TREE)


def test_a_fabric_whose_upper_switches_nobody_reports_has_the_digest_of_its_file(tmp_path):
    discovered = read(outputs_of(racks(2, 2), *ALL))
    assert any(one.links and one.parent >= 0 for one in discovered.switches)
    text = tmp_path / "topology.yaml"
    text.write_text(yaml_writer.text_of(discovered))
    assert digest_of(load("yaml", path=text)) == digest_of(discovered)


def test_merged_switches_and_rates_down_are_no_difference():
    uplinks = Cables.of([200])
    digests_of_rates = {
        digest(TREE, details=Details(links={"leaf1": Links(down, uplinks)}, members=members))
        for down in (400, 800, None)
        for members in ({}, {"core": ("spine1", "spine2")})
    }
    assert len(digests_of_rates) == 1


def test_uplinks_hosts_links_and_oversubscription_are_a_difference():
    two, four = (Cables.of([100] * number) for number in (2, 4))
    found = [
        digest(TREE),
        *(digest(TREE, details=Details(links={"leaf1": Links(400, one)})) for one in (two, four)),
        *(digest(TREE, host_links={"a1": one}) for one in (two, four)),
        *(digest(TREE, oversubscription={level: 2.0}) for level in ("leaf", "pod")),
        digest(TREE, oversubscription={"leaf": 4.0}),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("tree", "switches", "lower"),
    [
        pytest.param(TREE, ["pod1"], ["leaf1", "leaf2"], id="a pod"),
        pytest.param(TREE, ["core"], ["leaf1", "leaf2", "leaf3"], id="the root"),
        pytest.param(TREE["core"], ["pod1"], ["leaf1", "leaf2"], id="an island"),
    ],
)
def test_it_does_not_matter_where_a_processor_type_is_stated(tree, switches, lower):
    on_switches = digest(tree, processors=dict.fromkeys(switches, "icelake"))
    assert digest(tree, processors=dict.fromkeys(lower, "icelake")) == on_switches
    described = Topology.from_tree(tree)
    hosts = [host for leaf in lower for host in described.hosts_of(leaf)]
    assert digest(tree, host_processors=dict.fromkeys(hosts, "icelake")) == on_switches
    assert on_switches != digest(tree)


def test_a_type_that_no_host_takes_from_its_switch_is_no_difference():
    own = dict.fromkeys(Topology.from_tree(TREE).hosts, "icelake")
    assert digest(TREE, processors={"core": "old"}, host_processors=own) == digest(
        TREE, host_processors=own
    )


TYPES = st.sampled_from(["old", "new", "unknown"])
CABLES = st.lists(st.sampled_from([100.0, 200.0]), min_size=1, max_size=2).map(Cables.of)


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    tree = draw(st.sampled_from([TREE, TREE["core"], TREE["core"]["pod1"]]))
    switches = [switch.name for switch in Topology.from_tree(tree).switches]
    return Topology.from_tree(
        tree,
        processors=draw(st.dictionaries(st.sampled_from(switches), TYPES, max_size=2)),
        host_processors=draw(st.dictionaries(st.sampled_from(["a1", "b2"]), TYPES, max_size=2)),
        host_links=draw(st.dictionaries(st.sampled_from(["a1", "b2"]), CABLES, max_size=2)),
    )


@given(fabrics(), fabrics())
def test_fabrics_of_different_digests_differ_so_that_a_scheduler_takes_the_new_one(old, new):
    assert bool(settling.changes(old, new)) == (lines_of(old) != lines_of(new))


@pytest.mark.parametrize(
    ("tree", "more"),
    [
        pytest.param(
            {
                "core": {
                    "pod1": {"leaf1": ["a1", "b2"], "leaf2": ["b1", "a2"]},
                    "pod2": {"leaf3": ["c1", "c2"]},
                }
            },
            {},
            id="hosts under other leaves",
        ),
        pytest.param(
            {"core": {**TREE["core"], "pod2": {"leaf3": ["c1"]}}}, {}, id="a host is missing"
        ),
        pytest.param(
            {"core": {**TREE["core"], "pod2": {"leaf4": ["c1", "c2"]}}}, {}, id="another leaf name"
        ),
        pytest.param(
            {"core": {**TREE["core"]["pod1"], **TREE["core"]["pod2"]}}, {}, id="no level of pods"
        ),
        pytest.param(TREE, {"levels": ["leaf", "row", "core"]}, id="another level name"),
        pytest.param(TREE, {"processors": {"core": "icelake"}}, id="a processor type"),
    ],
)
def test_what_placement_depends_on_is_a_difference(tree, more):
    assert digest(tree, **more) != digest(TREE)


def test_names_cannot_be_taken_for_the_words_of_the_text():
    names = ['leaf1" below "core', "leaf1\nhost", "лист", "\ud800"]
    assert len({digest({"core": {name: ["a1"]}}) for name in names}) == len(names)


def test_the_order_of_an_interference_index_is_no_difference():
    pairs = {("lu", "wrf"): 0.9, ("wrf", "lu"): 0.8, ("lu", "lu"): 1.0}
    lines = InterferenceIndex(pairs).lines()
    assert InterferenceIndex(dict(reversed(pairs.items()))).lines() == lines
    assert InterferenceIndex(pairs | {("lu", "lu"): 0.95}).lines() != lines
