"""hpc:group_size is checked against all hosts, also those that the topology has by service host."""

import pytest

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import databases
from tests.functional.pods import FABRIC
from tests.functional.states import host_state, run, spec, wishing

pytestmark = pytest.mark.usefixtures("two_pods")


def node_of(host: str) -> str:
    return f"ip-10-0-0-{int(host[1:])}"


def test_larger_hosts_that_are_full_now_may_hold_the_group(group, monkeypatch):
    class Node:
        """The row of a compute node; hosts that are full now take two VMs while they are empty."""

        def __init__(self, host: str) -> None:
            self.host, self.hypervisor_hostname = host, node_of(host)
            self.vcpus_total = 16 if host in ("n01", "n02", "n03", "n04") else 32
            self.total_usable_ram_mb, self.total_usable_disk_gb = 65536, 1000
            self.cpu_allocation_ratio = self.ram_allocation_ratio = 1.0
            self.disk_allocation_ratio = 1.0

    def read_cells(_context, _arguments, read):
        return databases.CellAnswers(rows=read(None, []))

    monkeypatch.setattr(databases, "read_cells", read_cells)
    monkeypatch.setattr(databases, "cell_rows", lambda *_: [Node(host) for host in FABRIC.hosts])
    group(left=1)
    states = [host_state(host, node_of(host)) for host in ("n01", "n02", "n03", "n04")]
    wanted = spec(extra_specs=wishing(max_leaves=1, group_size=5))
    assert run(states, wanted, HPCGroupFilter()) == states
