"""Ten thousand hosts and all of Nova's weighers: which decide, the topology, MDOBP or Nova.

::

                       core
         /       /      ...      \\       \\
      leaf001 leaf002         leaf499 leaf500      20 hosts each: l001n01 .. l500n20
"""

import random
from pathlib import Path

import nova.conf
import numpy as np
import pytest
from nova.scheduler import weights

from tests.functional.states import (
    configured,
    databases_say,
    host_state,
    known,
    queue_of,
    spec,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

TREE = {
    "core": {
        f"leaf{leaf:03}": [f"l{leaf:03}n{number:02}" for number in range(1, 21)]
        for leaf in range(1, 501)
    }
}
WEIGHERS = [
    "nova.scheduler.weights.all_weighers",
    "hpc_sched.weighers.hop_byte.HopByteWeigher",
    "hpc_sched.weighers.mdobp.MDOBPWeigher",
]


@pytest.fixture
def states(tmp_path: Path):
    """Hosts that Nova's own weighers like very differently."""
    dice = random.Random(1)
    with configured(write_tree(tmp_path / "topology.yaml", TREE)):
        CONF.set_override("weight_classes", WEIGHERS, "filter_scheduler")
        found = []
        for leaf in TREE["core"].values():
            for host in leaf:
                used = dice.randrange(16)
                found.append(
                    host_state(
                        host,
                        vcpus_used=used,
                        free_ram_mb=4096 * (16 - dice.randrange(used + 1)),
                        free_disk_mb=1024 * dice.randrange(1000),
                        num_io_ops=dice.randrange(20),
                        num_instances=used,
                        metrics=[],
                    )
                )
        dice.shuffle(found)
        yield found


@pytest.mark.ci
def test_the_topology_chooses_the_leaf_and_mdobp_the_host_whatever_nova_prefers(
    monkeypatch, states
):
    databases_say(monkeypatch, queue=queue_of(8), left=8)
    request = spec(count=8, vcpus=2, extra_specs=wishing(app_class="sync"))
    request.flavor.memory_mb = 8192
    handler = weights.HostWeightHandler()
    classes = handler.get_matching_classes(WEIGHERS)
    assert len(classes) > 8
    weighed = handler.get_weighed_objects([made() for made in classes], states, request)
    found = [weighed_.obj.host for weighed_ in weighed if weighed_.obj.vcpus_used <= 14]
    leaves = list(dict.fromkeys(host[:4] for host in found))
    # Leaf after leaf, none of them interrupted by another.
    assert [host[:4] for host in found] == sorted((host[:4] for host in found), key=leaves.index)
    state = known(request)
    # First the plan: the eight hosts with the best angles of its leaf, in the order of the fabric.
    planned, others = found[:8], found[8:]
    assert planned == sorted(planned)
    # And in each leaf in the order of the angles, as far as they differ.
    packing, topology = state.group.request().problem().packing, state.group.inputs.topology
    assert packing is not None
    cosine = _cosines(packing.free / packing.usable, packing.demand / packing.usable)
    for leaf in leaves:
        angles = [cosine[topology.index_of(host)] for host in others if host.startswith(leaf)]
        assert angles == sorted(angles, reverse=True)
        if leaf == leaves[0]:
            assert {host[:4] for host in planned} == {leaf}
            assert min(cosine[topology.index_of(host)] for host in planned) >= max(angles)


def _cosines(shares: np.ndarray, wants: np.ndarray) -> list[float]:
    lengths = np.linalg.norm(shares, axis=1) * np.linalg.norm(wants, axis=1)
    return np.round((shares * wants).sum(axis=1) / lengths, 6).tolist()
