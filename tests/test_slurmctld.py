"""A real slurmctld: it loads what is written for it, and chooses as slurm-tree does."""

import random

import pytest

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies import slurm_tree
from hpc_sched.topology import Topology
from hpc_sched.topology.readers.slurm.slurm_driver import SlurmDriver
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.tree import Details
from hpc_sched.topology.writers import slurm_writer
from tests.ib_dumps import rails, three_levels
from tests.slurmctld import controlled
from tests.unit.naive_slurm import NaiveSlurm
from tests.unit.placing import request
from tests.unit.test_topology_slurm import hops_of

# From this release on the rule is that of 26.05.
CHANGED = (24, 5, 3)
STATES = 100


def odd_names() -> Topology:
    """Return a fabric of names that one or another release of Slurm could refuse.

    ::

                      core[1-2]
              /           |          \\
          pod 1         a-2-x       a-3-x
         /      \\      r1n1 ...    n8 n9 n10
      a-1-x     l#3
      a-1-x ..  UUIDs
    """
    uuids = ["7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a77", "0123e5c0-3f0c-4c4e-9d4e-0c8a0e1b5a78"]
    pods = {
        "pod 1": {"a-1-x": ["a-1-x", "a-2-x", "n1.example.org"], "l#3": uuids},
        "a-2-x": [f"r{rack}n{i}" for rack in range(3) for i in range(8, 12)],
        "a-3-x": ["n8", "n9", "n10", "n010", "m08", "m100", "gpu_1"],
    }
    details = Details(members={"core[1-2]": ("core1", "core2")})
    return Topology.from_tree({"core[1-2]": pods}, details=details)


def deep() -> Topology:
    """Return six levels and a branch of two, and another island.

    ::

        s6 - s5 - s4 - s3 - s2 -- l1: h01        island: h30 h31
          \\                  \\ -- l2: h02 h03
           l3: h20
    """
    tree: dict[str, object] = {"l1": ["h01"], "l2": ["h02", "h03"]}
    for level in range(2, 6):
        tree = {f"s{level}": tree}
    return Topology.from_tree({"s6": {**tree, "l3": ["h20"]}, "island": ["h30", "h31"]})


def large() -> Topology:
    """Return 60 leaves of 20 hosts each in pods of six, below one core."""
    leaves = {f"leaf{i}": [f"rack{i}-node{k:02}-ib" for k in range(20)] for i in range(60)}
    names = list(leaves)
    return Topology.from_tree(
        {
            "core": {
                f"pod{p}": {name: leaves[name] for name in names[6 * p : 6 * p + 6]}
                for p in range(10)
            }
        }
    )


@pytest.mark.parametrize(
    "fabric",
    [
        pytest.param(odd_names, id="odd names"),
        pytest.param(deep, id="six levels and an island"),
        pytest.param(lambda: rails(4, 3, 8).topology(), id="leaves joined from eight rails"),
        pytest.param(lambda: three_levels(3, 4, 5).topology(), id="three levels of a fat tree"),
        pytest.param(large, id="1,200 hosts with text after their numbers"),
    ],
)
def test_a_converted_fabric_is_loaded_with_the_same_leaves(fabric):
    written = fabric()
    with controlled(slurm_writer.text_of(written)[0], written.hosts) as slurm:
        printed = slurm.topology()
    loaded = SlurmDriver(path="scontrol").parse(Text(printed.encode(), "scontrol"))
    assert hops_of(loaded) == hops_of(written)
    assert leaves_of(loaded) == leaves_of(written)
    assert loaded.remarks == ()


def leaves_of(fabric: Topology) -> list[set[str]]:
    return [set(fabric.hosts_of(leaf)) for leaf in fabric.leaves]


def pods_of_equal_leaves() -> Topology:
    """Return three pods of four leaves with six hosts each: many ties."""
    return three_levels(3, 4, 6).topology()


def pods_of_all_sizes() -> Topology:
    """Return three levels whose leaves have 1 to 7 hosts.

    ::

                      core
           /           |            \\
         pod1        pod2          pod3
        a:7 b:1    c:3 d:2 e:2   f:5 g:4 h:3
    """
    sizes = {"pod1": {"a": 7, "b": 1}, "pod2": {"c": 3, "d": 2, "e": 2}}
    sizes["pod3"] = {"f": 5, "g": 4, "h": 3}
    return Topology.from_tree(
        {
            "core": {
                pod: {leaf: [f"{leaf}{i}" for i in range(count)] for leaf, count in below.items()}
                for pod, below in sizes.items()
            }
        }
    )


def branches_and_islands() -> Topology:
    """Return a file whose pods' leaves are mixed, with a leaf below the root and an island.

    ::

               root                   west
         /     |      \\              /    \\
       pod1   pod2    top: t0-4   w1: 5   w2: 5
      z y x    c b a
    """
    lines = []
    for leaf, count in {"z": 4, "c": 4, "top": 5, "y": 3, "w2": 5, "b": 4, "x": 2, "a": 6}.items():
        lines.append(f"SwitchName={leaf} Nodes={leaf}n[0-{count - 1}]")
    lines += ["SwitchName=root Switches=pod[1-2],top", "SwitchName=w1 Nodes=w1n[0-4]"]
    lines += ["SwitchName=pod2 Switches=a,b,c", "SwitchName=pod1 Switches=x,y,z"]
    lines += ["SwitchName=west Switches=w[1-2]"]
    text = "\n".join(lines).encode()
    return SlurmDriver(path="topology.conf").parse(Text(text, "topology.conf"))


@pytest.mark.parametrize("made", [pods_of_equal_leaves, pods_of_all_sizes, branches_and_islands])
def test_slurm_tree_takes_the_nodes_that_srun_names(made):
    """In random states; those that differ are explained by the older rule, see NaiveSlurm."""
    fabric = made()
    draw = random.Random(made.__name__)
    differ = 0
    with controlled(slurm_writer.text_of(fabric)[0], fabric.hosts) as slurm:
        old = slurm.version() < CHANGED
        for _ in range(STATES):
            free = draw.sample(fabric.hosts, draw.randint(4, len(fabric.hosts)))
            slurm.drain(set(fabric.hosts) - set(free), fabric.hosts)
            wanted = draw.randint(1, min(len(free), 14))
            real = slurm.choice(wanted)
            room = dict.fromkeys(free, 1)
            assert real == by_rule(fabric, room, wanted, old=old), (free, wanted)
            if by_rule(fabric, room, wanted, old=True) == by_rule(fabric, room, wanted):
                assert real == chosen(fabric, room, wanted), (free, wanted)
            else:
                differ += 1
    print(
        f"{made.__name__}: {STATES - differ} of {STATES} states are decided alike by all releases"
    )
    assert differ < STATES // 4


def chosen(fabric: Topology, room: dict[str, int], wanted: int) -> set[str] | None:
    """Return the hosts that the policy takes, None if there are not enough."""
    answer = slurm_tree.POLICY.places(request(fabric, room, wanted))
    return None if isinstance(answer, Rejection) else {fabric.hosts[host] for host in answer}


def by_rule(
    fabric: Topology, room: dict[str, int], wanted: int, *, old: bool = False
) -> set[str] | None:
    """Return the hosts of the leaves that a rule takes, in the order of their names."""
    leaves = NaiveSlurm(fabric, room, wanted, old=old).leaves()
    if leaves is None:
        return None
    hosts = [host for leaf in leaves for host in sorted(fabric.hosts_of(leaf)) if host in room]
    return set(hosts[:wanted])
