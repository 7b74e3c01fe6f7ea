"""The fabrics of the soak, one after the other, and what is true of a group on each.

::

                               core
                 /                              \\
               pod1 (gold)                      pod2 (silver)
         /      |      \\                 /      |      \\
      leaf1   leaf2   leaf3           leaf4   leaf5   leaf6
      n01-04  n05-08  n09-12          n13-16  n17-20  n21-24

The others: two hosts of leaf1 and leaf4 swapped, leaf2's hosts below leaf1, leaf6 unnamed.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from tests.functional.trees import write_tree

HOSTS = [f"n{number:02}" for number in range(1, 25)]
BASE = {f"leaf{leaf + 1}": HOSTS[4 * leaf : 4 * leaf + 4] for leaf in range(6)}
SWAPPED = BASE | {"leaf1": ["n13", "n14", "n03", "n04"], "leaf4": ["n01", "n02", "n15", "n16"]}
MERGED = {
    leaf: (hosts + BASE["leaf2"] if leaf == "leaf1" else hosts)
    for leaf, hosts in BASE.items()
    if leaf != "leaf2"
}
UNNAMED = {leaf: hosts for leaf, hosts in BASE.items() if leaf != "leaf6"}
ALL = (BASE, SWAPPED, MERGED, UNNAMED)
TYPES = {"pod1": "gold", "pod2": "silver"}
BAD = ("switches: 7\n", "", "switches: [{name: a, hosts: n1}, {name: a, hosts: n2}]\n", None)

Leaves = Mapping[str, list[str]]


def write(path: Path, leaves: Leaves) -> None:
    """Replace the topology file, as an operator does: by a move."""
    pods = {
        pod: {leaf: hosts for leaf, hosts in leaves.items() if pod_of(leaf) == pod} for pod in TYPES
    }
    write_tree(path.with_suffix(".new"), {"core": pods}, TYPES).replace(path)


def spoil(path: Path, text: str | None) -> None:
    """Replace the topology file by nonsense, or take it away."""
    if text is None:
        path.unlink(missing_ok=True)
    else:
        new = path.with_suffix(".new")
        new.write_text(text)
        new.replace(path)


def pod_of(leaf: str) -> str:
    """Return the pod of a leaf."""
    return "pod1" if leaf in ("leaf1", "leaf2", "leaf3") else "pod2"


def broken_wishes(
    leaves: Leaves, policy: str, said: Mapping[str, str], hosts: Collection[str]
) -> list[str]:
    """Return what a group asked for and does not have.

    :param hosts: of its VMs, one each
    """
    if said.get("hpc:app_class") == "none":
        # It has no wishes, whatever else it says, and its policy is up to Nova's own filters, which
        # do not see VMs in flight.
        return []
    leaf_of = {host: leaf for leaf, below in leaves.items() for host in below}
    # A host that the fabric does not name is a leaf of its own.
    at = [leaf_of.get(host, host) for host in hosts]
    pods = {pod_of(leaf) if leaf in leaves else leaf for leaf in at}
    found = []
    if said.get("hpc:require") == "leaf" and len(set(at)) > 1:
        found.append("require leaf")
    if said.get("hpc:require") == "pod" and len(pods) > 1:
        found.append("require pod")
    if len(set(at)) > int(said.get("hpc:max_leaves", len(HOSTS))):
        found.append("max_leaves")
    if said.get("hpc:homogeneous") == "true" and len({TYPES.get(pod) for pod in pods}) > 1:
        found.append("homogeneous")
    if policy == "anti-affinity" and len(set(hosts)) < len(hosts):
        found.append("anti-affinity")
    if policy == "affinity" and len(set(hosts)) > 1:
        found.append("affinity")
    return found
