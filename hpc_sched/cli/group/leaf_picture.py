"""A server group on its leaves, for the screen."""

from hpc_sched import terminal_text
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.group_placement import Standing
from hpc_sched.topology import plurals
from hpc_sched.topology.writers import leaf_rows

LEGEND = "1-9 + VMs of the group   x VMs of others   . none   ! takes no VMs   ? not in Nova"
# A row for each leaf says nothing any more where they fill several screens.
MAX_LEAVES = 48


def render(cloud: Cloud, standing: Standing) -> str:
    """Return the leaves with the VMs of the group and others on their hosts, and the costs."""
    topology = cloud.topology
    shown = list(topology.leaves)
    if len(shown) > MAX_LEAVES:
        shown = [leaf for leaf in shown if leaf in standing.leaves]
    titles = {leaf: leaf_rows.title_of(topology, leaf) for leaf in shown}
    width = max((len(title) for title in titles.values()), default=0) + 2
    lines = [
        titles[leaf].ljust(width)
        + leaf_rows.row_of(topology, leaf, lambda host: _cell(cloud, standing, host))
        for leaf in shown
    ]
    others = len(topology.leaves) - len(shown)
    if others:
        lines.append(f"and {plurals.text(others, 'leaf switch')} without VMs of the group")
    lines += ["", " " * width + LEGEND, ""]
    placed = sum(standing.counts.values())
    lines += [
        f"VMs placed       {placed} of {len(standing.servers)}",
        f"hosts used       {len(standing.counts)}",
        f"leaves used      {len(standing.leaves)}",
        f"Hop-Byte cost    {number(standing.hop_bytes)}",
        f"least possible   {number(standing.least)}",
    ]
    return "\n".join(terminal_text.text_of(line.rstrip()) for line in lines)


def number(cost: float | None) -> str:
    """Return a Hop-Byte cost in words."""
    return "infinite (islands)" if cost is None else f"{cost:.0f}"


def _cell(cloud: Cloud, standing: Standing, host: str) -> str:
    own = standing.counts.get(host, 0)
    if own:
        return str(own) if own < 10 else "+"
    nodes = cloud.hosts.get(host, ())
    if not nodes:
        return "?"
    if not any(cloud.takes_vms(node) for node in nodes):
        return "!"
    return "x" if cloud.servers_on.get(host) else "."
