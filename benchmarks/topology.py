"""Times in which the drivers load a fabric of thousands of hosts.

    python benchmarks/topology.py
    python benchmarks/topology.py --runs 20 --drivers ibnetdiscover

Each row is one fabric in the form that one driver reads: a fat tree of two levels, of three, and
hosts with several rails. Best and median are of all the runs, in seconds, from the file to the
Topology.
"""

import argparse
import gc
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hpc_sched import topology

RUNS = 5
COLUMNS = "{:<14} {:<30} {:>8} {:>8} {:>8} {:>7} {:>7}"
RATE = "4xNDR"


@dataclass(frozen=True)
class Fabric:
    """Hosts by leaf, and links of switches."""

    name: str
    leaves: dict[str, tuple[str, ...]]  # a leaf's switches by the name of the leaf
    hosts: dict[str, list[str]]  # by the name of the leaf
    links: list[tuple[str, str]]  # a switch and one above it
    parents: dict[str, str]  # the same as a tree: a leaf or switch to the one above it


def fat_tree(hosts: int, hosts_a_leaf: int, leaves_a_pod: int, spines: int, cores: int) -> Fabric:
    """Return two levels of switches, or three with cores: every spine is linked to each of them."""
    leaves: dict[str, tuple[str, ...]] = {}
    below: dict[str, list[str]] = {}
    links: list[tuple[str, str]] = []
    parents: dict[str, str] = {}
    count = -(-hosts // hosts_a_leaf)
    pods = -(-count // leaves_a_pod)
    for number in range(count):
        leaf, pod = f"leaf{number:04}", number // leaves_a_pod
        leaves[leaf] = (leaf,)
        first = number * hosts_a_leaf
        below[leaf] = [f"n{i:06}" for i in range(first, min(first + hosts_a_leaf, hosts))]
        links += [(leaf, f"spine{pod:03}-{s:02}") for s in range(spines)]
        parents[leaf] = f"pod{pod:03}"
    for pod, s, core in itertools.product(range(pods), range(spines), range(cores)):
        links.append((f"spine{pod:03}-{s:02}", f"core{core:02}"))
    if cores:
        parents |= {f"pod{pod:03}": "core" for pod in range(pods)}
    return Fabric(f"{2 + bool(cores)} levels", leaves, below, links, parents)


def rail_optimised(hosts: int, rails: int, hosts_a_group: int, spines: int) -> Fabric:
    """Return groups of hosts with a rail to each of their leaf switches, all below all spines."""
    leaves: dict[str, tuple[str, ...]] = {}
    below: dict[str, list[str]] = {}
    links: list[tuple[str, str]] = []
    for group in range(-(-hosts // hosts_a_group)):
        leaf = f"group{group:04}"
        first = group * hosts_a_group
        below[leaf] = [f"n{i:06}" for i in range(first, min(first + hosts_a_group, hosts))]
        leaves[leaf] = tuple(f"{leaf}-rail{rail}" for rail in range(rails))
        links += [(s, f"spine{spine:03}") for s in leaves[leaf] for spine in range(spines)]
    return Fabric(f"{rails} rails", leaves, below, links, dict.fromkeys(leaves, "spines"))


def ibnetdiscover_text(fabric: Fabric) -> str:
    """Return the output of ibnetdiscover."""
    ports: dict[str, list[str]] = {}
    guids: dict[str, str] = {}
    descriptions: dict[str, str] = {}

    def node(name: str, kind: str, description: str) -> None:
        if name not in guids:
            guids[name] = f"{kind}-{0x0002C90300000000 + len(guids):016x}"
            descriptions[name] = description
            ports[name] = []

    def link(a: str, b: str) -> None:
        number_a, number_b = len(ports[a]) + 1, len(ports[b]) + 1
        for own, own_port, peer, port in ((a, number_a, b, number_b), (b, number_b, a, number_a)):
            guid = f"({guids[peer][2:]}) " if guids[peer][0] == "H" else ""
            ports[own].append(
                f'[{own_port}]\t"{guids[peer]}"[{port}]{guid}\t\t'
                f'# "{descriptions[peer]}" lid {port} {RATE}'
            )

    for leaf, switches in fabric.leaves.items():
        for rail, switch in enumerate(switches):
            node(switch, "S", f"MF0;{switch}:MQM9700/U1")
            for host in fabric.hosts[leaf]:
                node(f"{host} mlx5_{rail}", "H", f"{host} mlx5_{rail}")
                link(switch, f"{host} mlx5_{rail}")
    for a, b in fabric.links:
        node(a, "S", f"MF0;{a}:MQM9700/U1")
        node(b, "S", f"MF0;{b}:MQM9700/U1")
        link(a, b)
    lines = ["#", "# Topology file: generated on Sat Nov 21 02:18:18 2026", "#"]
    for name, id_ in guids.items():
        word, key = ("Switch", "switch") if id_[0] == "S" else ("Ca", "ca")
        lines += ["", "vendid=0x2c9", "devid=0x1021", f"{key}guid=0x{id_[2:]}"]
        lines.append(f'{word}\t{len(ports[name])} "{id_}"\t\t# "{descriptions[name]}"')
        lines += ports[name]
    return "\n".join(lines) + "\n"


def yaml_text(fabric: Fabric) -> str:
    """Return a topology file with hosts in ranges, as people write them."""
    children: dict[str, list[str]] = {}
    for child, parent in fabric.parents.items():
        children.setdefault(parent, []).append(child)
    roots = [name for name in children if name not in fabric.parents]

    def written(name: str, indent: str) -> Iterator[str]:
        yield f"{indent}- name: {name}"
        if name in fabric.hosts:
            hosts = fabric.hosts[name]
            yield f"{indent}  hosts: n[{hosts[0][1:]}-{hosts[-1][1:]}]"
            return
        yield f"{indent}  switches:"
        for child in children[name]:
            yield from written(child, f"{indent}  ")

    return "\n".join(["switches:", *(line for root in roots for line in written(root, ""))]) + "\n"


def slurm_text(fabric: Fabric) -> str:
    """Return a topology.conf with all spines; the switches of a leaf with rails are one."""
    leaf_of = {switch: leaf for leaf, switches in fabric.leaves.items() for switch in switches}
    below: dict[str, dict[str, None]] = {}
    for child, parent in fabric.links:
        below.setdefault(parent, {})[leaf_of.get(child, child)] = None
    lines = [
        f"SwitchName={leaf} Nodes=n[{hosts[0][1:]}-{hosts[-1][1:]}]"
        for leaf, hosts in fabric.hosts.items()
    ]
    lines += [f"SwitchName={name} Switches={','.join(found)}" for name, found in below.items()]
    return "\n".join(lines) + "\n"


# The writer of each driver's format.
WRITERS: dict[str, Callable[[Fabric], str]] = {
    "ibnetdiscover": ibnetdiscover_text,
    "slurm": slurm_text,
    "yaml": yaml_text,
}


def fabrics(hosts: int) -> list[Fabric]:
    """Return fabrics with a number of hosts."""
    return [
        # All leaves below the same spines, as many links up as down.
        fat_tree(hosts, 20, hosts, 20, 0),
        fat_tree(hosts, 20, 25, 20, 20),
        rail_optimised(hosts, 8, 32, 32),
    ]


def seconds(call: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the best and the median time of a call."""
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times)


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(
        description="Times of the topology drivers, from the file to the Topology, in seconds."
    )
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs a row (default {RUNS})")
    parser.add_argument(
        "--hosts",
        type=int,
        nargs="+",
        default=[10_000],
        help="sizes of the fabrics (default 10000)",
    )
    parser.add_argument(
        "--drivers", nargs="+", choices=sorted(WRITERS), default=sorted(WRITERS), metavar="DRIVER"
    )
    arguments = parser.parse_args()
    print(COLUMNS.format("driver", "fabric", "lines", "hosts", "leaves", "best", "median"))
    with tempfile.TemporaryDirectory() as folder:
        for hosts, driver in itertools.product(arguments.hosts, arguments.drivers):
            for fabric in fabrics(hosts):
                text = WRITERS[driver](fabric)
                path = Path(folder, "topology")
                path.write_text(text)
                loaded = topology.load(driver, path=path)
                times = seconds(lambda: topology.load(driver, path=path), arguments.runs)  # noqa: B023
                print(
                    COLUMNS.format(
                        driver,
                        fabric.name,
                        f"{text.count(chr(10)):,}",
                        f"{len(loaded.hosts):,}",
                        f"{len(loaded.leaves):,}",
                        *(f"{time_:.2f}" for time_ in times),
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
