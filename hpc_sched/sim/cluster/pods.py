"""Fabrics of equal pods: hosts under leaf switches, these under pods, and pods under one core."""

from hpc_sched.topology.model import Topology


def pods(number: int, leaves: int, hosts: int) -> Topology:
    """Return the tree of a number of pods; ``n2-3-07`` is a host under ``leaf2-3`` in ``pod2``.

    Numbers are from 1 and as wide as the largest of their kind.

    :param leaves: of a pod
    :param hosts: of a leaf
    """
    return Topology.from_tree(
        {
            "core": {
                f"pod{pod}": {
                    f"leaf{pod}-{leaf}": [f"n{pod}-{leaf}-{host}" for host in _numbers(hosts)]
                    for leaf in _numbers(leaves)
                }
                for pod in _numbers(number)
            }
        }
    )


def _numbers(count: int) -> list[str]:
    width = len(str(count))
    return [f"{number:0{width}}" for number in range(1, count + 1)]
