"""A fabric that is alive: simulated by ibsim, discovered by the real ibnetdiscover."""

from pathlib import Path

import pytest

from hpc_sched import exceptions, topology
from hpc_sched.topology.readers.topology_driver import driver
from tests.ib_dumps import Fabric, state, two_levels
from tests.ibsim import simulated

SECONDS = 120.0


def test_a_leaf_that_is_pulled_out_is_gone_with_its_hosts(tmp_path: Path):
    fabric = two_levels(4, 2, 3, cables=2)
    with simulated(fabric, tmp_path) as simulator:
        live = driver("ibnetdiscover", command=simulator.command, timeout=SECONDS)
        before = live.load()
        assert before.leaves == ("leaf1", "leaf2", "leaf3", "leaf4")
        assert before.hosts == tuple(f"n{i:03}" for i in range(1, 13))
        assert before.roots == ("spine[1-2]",)
        assert before.remarks == ()

        simulator.tell(f'Unlink "{fabric.nodes["leaf3"]}"')
        after = live.load()
        assert after.leaves == ("leaf1", "leaf2", "leaf4")
        assert set(before.hosts) - set(after.hosts) == {"n007", "n008", "n009"}
        assert after.hops("n001", "n010") == 3

        simulator.tell(f'ReLink "{fabric.nodes["leaf3"]}"')
        assert state(live.load()) == state(before)


def test_what_is_discovered_is_what_was_cabled_wherever_it_begins(tmp_path: Path):
    fabric = two_levels(4, 2, 3)
    wanted = fabric.topology()
    with simulated(fabric, tmp_path) as simulator:
        found = []
        for host in ("n001 mlx5_0", "n012 mlx5_0", "leaf2"):
            at = f"SIM_HOST={fabric.nodes[host]}"
            command = [at if part == "SIM_HOST=" else part for part in simulator.command]
            found.append(topology.load("ibnetdiscover", command=command, timeout=SECONDS))
    for fabric_ in found:
        assert state(fabric_) == state(found[0])
        assert fabric_.hosts == wanted.hosts
        assert [(s.name, s.level, s.members) for s in fabric_.switches] == [
            (s.name, s.level, s.members) for s in wanted.switches
        ]


def test_two_simulations_at_once_do_not_meet(tmp_path: Path):
    folders = [tmp_path / "small", tmp_path / "large"]
    for folder in folders:
        folder.mkdir()
    with (
        simulated(two_levels(2, 1, 1), folders[0]) as small,
        simulated(two_levels(3, 1, 1), folders[1]) as large,
    ):
        for simulator, hosts in ((large, 3), (small, 2)):
            found = topology.load("ibnetdiscover", command=simulator.command, timeout=SECONDS)
            assert len(found.hosts) == hosts


def test_a_fabric_that_does_not_answer_ends_with_the_timeout(tmp_path: Path):
    with simulated(two_levels(2, 1, 1), tmp_path) as simulator:
        # A client waits for its server for ever.
        command = [
            "IBSIM_SOCKNAME=nobody" if part.startswith("IBSIM_SOCKNAME=") else part
            for part in simulator.command
        ]
        with pytest.raises(exceptions.TopologyError, match=r"no end within 0\.5 s"):
            topology.load("ibnetdiscover", command=command, timeout=0.5)


def test_a_report_of_ports_is_the_fabric_that_a_dump_is(tmp_path: Path):
    fabric = two_levels(3, 2, 2, cables=2)
    with simulated(fabric, tmp_path) as simulator:
        dump = topology.load("ibnetdiscover", command=simulator.command, timeout=SECONDS)
        ports = [*simulator.command, "--ports"]
        report = topology.load("ibnetdiscover", command=ports, timeout=SECONDS)
    assert state(report) == state(dump)
    assert report.incomplete == dump.incomplete == ()


def test_each_cable_of_eight_rails_that_is_pulled_changes_no_leaf(tmp_path: Path):
    """
    ::

                 spine1   spine2          linked to each of the 16
               /  ...  |  |  ...  \\
        g0r0 ... g0r7        g1r0 ... g1r7
          hosts of g0          hosts of g1
    """
    fabric = Fabric()
    for group in range(2):
        switches = [f"g{group}r{rail}" for rail in range(8)]
        for i in range(2):
            fabric.host(f"g{group}n{i}", *switches)
        for switch in switches:
            for spine in ("spine1", "spine2"):
                fabric.link(switch, spine)
    with simulated(fabric, tmp_path) as simulator:
        live = driver("ibnetdiscover", command=simulator.command, timeout=SECONDS)
        before = live.load()
        homes = {host: before.leaf_of(host) for host in before.hosts}
        assert len(set(homes.values())) == 2
        assert len(fabric.cables) == 2 * 2 * 8 + 2 * 8 * 2
        for switch, port, _, _, _ in fabric.cables:
            simulator.tell(f'Unlink "{fabric.nodes[switch]}"[{port}]')
            found = live.load()
            assert state(found) != state(before)
            assert {host: found.leaf_of(host) for host in found.hosts} == homes, (switch, port)
            assert found.incomplete == ()
            simulator.tell(f'ReLink "{fabric.nodes[switch]}"[{port}]')
        assert state(live.load()) == state(before)
