"""One fabric in every format, and the sample fabrics from one format into another: equal hops."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hpc_sched.topology import Topology, load
from hpc_sched.topology.writers import slurm_writer, yaml_writer
from tests import sample_data
from tests.ib_dumps import Fabric, rails, three_levels, two_levels


def hops(fabric: Topology) -> NDArray[np.float64]:
    """Return the hops between all pairs of hosts, in the order of their names."""
    order = [fabric.index_of(host) for host in sorted(fabric.hosts)]
    groups = fabric.groups[:, order]
    apart = (groups[:, :, None] != groups[:, None, :]).sum(axis=0)
    found = np.where(apart == fabric.depth, np.inf, 2.0 * apart + 1)
    np.fill_diagonal(found, 0)
    return found


def same(fabric: Topology, other: Topology) -> bool:
    return sorted(fabric.hosts) == sorted(other.hosts) and np.array_equal(hops(fabric), hops(other))


def test_the_table_of_hops_is_that_of_the_topology():
    fabric = three_levels(2, 2, 2).topology()
    table = hops(fabric)
    names = sorted(fabric.hosts)
    for i, a in enumerate(names):
        assert table[i].tolist() == [fabric.hops(a, b) for b in names]


def as_slurm(fabric: Fabric) -> str:
    """Return the fabric with all its switches and links, upward links left out.

    The level of a switch is seen from its name: leaves, spines, cores.
    """
    levels = ("leaf", "spine", "core")
    below: dict[str, set[str]] = {}
    for host, switches in fabric.hosts.items():
        for switch in switches:
            below.setdefault(switch, set()).add(host)
    for a, _, b, _, _ in fabric.cables:
        ends = sorted(
            (next((n for n, word in enumerate(levels) if end.startswith(word)), -1), end)
            for end in (a, b)
        )
        if ends[0][0] >= 0:
            below.setdefault(ends[1][1], set()).add(ends[0][1])
    return "".join(
        f"SwitchName={switch} {'Nodes' if switch.startswith('leaf') else 'Switches'}="
        f"{','.join(sorted(names))}\n"
        for switch, names in sorted(below.items())
    )


TWO = {"root": {f"leaf{i}": [f"n{j:03}" for j in range(4 * i - 3, 4 * i + 1)] for i in (1, 2, 3)}}
THREE = {
    "root": {
        f"pod{pod}": {
            f"l{pod}{leaf}": [f"p{pod}l{leaf}n{i}" for i in range(3)] for leaf in range(2)
        }
        for pod in range(3)
    }
}


@pytest.mark.parametrize(
    ("fabric", "tree"),
    [(two_levels(3, 2, 4), TWO), (three_levels(3, 2, 3), THREE)],
    ids=["two levels", "three levels"],
)
def test_a_fat_tree_is_the_same_with_all_its_spines_nested_and_discovered(
    tmp_path: Path, fabric: Fabric, tree: dict
):
    conf = tmp_path / "topology.conf"
    conf.write_text(as_slurm(fabric))
    slurm = load("slurm", path=conf)
    text = tmp_path / "topology.yaml"
    text.write_text(yaml_writer.text_of(Topology.from_tree(tree)))
    nested, discovered = load("yaml", path=text), fabric.topology()
    assert same(slurm, nested)
    assert same(discovered, nested)
    assert slurm.leaves == discovered.leaves
    assert [s.members for s in slurm.switches if s.level == 2] == [
        s.members for s in discovered.switches if s.level == 2
    ]
    assert slurm.remarks == discovered.remarks == ()


def round_trip(fabric: Topology, folder: Path) -> list[Topology]:
    """Return a fabric as it comes back from both formats."""
    text, conf = folder / "topology.yaml", folder / "topology.conf"
    text.write_text(yaml_writer.text_of(fabric))
    conf.write_text(slurm_writer.text_of(fabric)[0])
    return [load("yaml", path=text), load("slurm", path=conf)]


@pytest.mark.parametrize(
    ("name", "leaves", "hosts"),
    [
        ("ib/ft2-2s4l32h.out", 4, 32),
        ("ib/ft2-18s36l648h.out.gz", 36, 648),
        ("ib/dgx-superpod.out", 8, 121),
    ],
)
def test_the_sample_fabrics_come_back_from_yaml_and_slurm_with_all_their_hops(
    tmp_path: Path, name: str, leaves: int, hosts: int
):
    path = sample_data.path(name)
    if path.suffix == ".gz":
        unpacked = tmp_path / path.stem
        unpacked.write_bytes(gzip.decompress(path.read_bytes()))
        path = unpacked
    fabric = load("ibnetdiscover", path=path)
    assert (len(fabric.leaves), len(fabric.hosts)) == (leaves, hosts)
    for other in round_trip(fabric, tmp_path):
        assert same(fabric, other)
        assert other.depth == fabric.depth


def test_rails_come_back_as_the_leaves_that_they_were_merged_into(tmp_path: Path):
    fabric = rails(3, 4, 4).topology()
    assert len(fabric.leaves) == 3
    for other in round_trip(fabric, tmp_path):
        assert same(fabric, other)
