"""A leaf is pulled out of a fabric that is alive: the scheduler and the operator see it."""

from collections.abc import Iterator
from pathlib import Path

import nova.conf
import pytest

from hpc_sched.cli.main import main
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.topology.writers import yaml_writer
from tests.functional.clouds import four_by_eight, write_topology
from tests.functional.states import configured
from tests.ib_dumps import two_levels
from tests.ibsim import Simulator, simulated

CONF = nova.conf.CONF
CABLED = two_levels(4, 2, 8)


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    """Discover a simulated fabric of four leaves of eight by topology_command."""
    (tmp_path / "ib").mkdir()
    with (
        configured(write_topology(tmp_path, four_by_eight())),
        simulated(CABLED, tmp_path / "ib") as simulator,
    ):
        CONF.set_override("topology_driver", "ibnetdiscover", "hpc_sched")
        CONF.set_override("topology_settle_time", 0, "hpc_sched")
        CONF.set_override("topology_file", None, "hpc_sched")
        CONF.set_override("topology_command", simulator.command, "hpc_sched")
        yield simulator


def test_a_leaf_that_is_pulled_out_shows_in_one_log_line_and_in_topology_diff(
    simulator, tmp_path, caplog, capsys
):
    loaded_topology.load()
    before = tmp_path / "before.yaml"
    before.write_text(yaml_writer.text_of(loaded_topology.current().topology))
    assert len(loaded_topology.current().topology.leaves) == 4
    nova_conf = tmp_path / "nova.conf"
    nova_conf.write_text(
        "[hpc_sched]\ntopology_driver = ibnetdiscover\n"
        f"topology_command = {','.join(simulator.command)}\n"
    )
    caplog.clear()
    assert not loaded_topology.reload()

    simulator.tell(f'Unlink "{CABLED.nodes["leaf3"]}"')
    assert loaded_topology.reload()
    assert len(loaded_topology.current().topology.leaves) == 3
    [line] = [text for text in caplog.messages if text.startswith("Topology changed")]
    assert "hosts gone: n[017-024]; switches gone: leaf3" in line
    assert "now 24 hosts, 3 leaves" in line

    assert main(["topology", "diff", str(before), "--config-file", str(nova_conf)]) == 1
    shown = capsys.readouterr().out
    assert "n[017-024]" in shown
    assert "leaf3" in shown

    simulator.tell(f'ReLink "{CABLED.nodes["leaf3"]}"')
    assert loaded_topology.reload()
    assert main(["topology", "diff", str(before), "--config-file", str(nova_conf)]) == 0


def test_a_leaf_that_comes_back_soon_moves_nothing_and_one_that_stays_away_is_one_line(
    simulator, caplog, turned_clock
):
    CONF.set_override("topology_settle_time", 300, "hpc_sched")
    loaded_topology.load()
    caplog.clear()
    for _ in range(4):
        simulator.tell(f'Unlink "{CABLED.nodes["leaf3"]}"')
        for _ in range(3):
            turned_clock.turn(60)
            assert not loaded_topology.reload()
        simulator.tell(f'ReLink "{CABLED.nodes["leaf3"]}"')
        turned_clock.turn(60)
        assert not loaded_topology.reload()
    assert len(loaded_topology.current().topology.leaves) == 4
    assert not [text for text in caplog.messages if text.startswith("Topology changed")]

    simulator.tell(f'Unlink "{CABLED.nodes["leaf3"]}"')
    for _ in range(10):
        turned_clock.turn(60)
        loaded_topology.reload()
    assert len(loaded_topology.current().topology.leaves) == 3
    [line] = [text for text in caplog.messages if text.startswith("Topology changed")]
    assert "hosts gone: n[017-024]; switches gone: leaf3" in line


def test_a_dump_without_its_end_is_refused_while_there_is_a_good_one(tmp_path, caplog):
    dump = tmp_path / "fabric.txt"
    text = CABLED.text()
    cut = text[: text.index('"leaf3') if '"leaf3' in text else len(text) // 2]
    with configured(write_topology(tmp_path, four_by_eight())):
        CONF.set_override("topology_driver", "ibnetdiscover", "hpc_sched")
        CONF.set_override("topology_file", str(dump), "hpc_sched")
        dump.write_text(cut)
        loaded_topology.load()
        assert any("Topology: incomplete: " in line for line in caplog.messages)
        CONF.set_override("topology_settle_time", 0, "hpc_sched")
        dump.write_text(text)
        assert loaded_topology.reload()
        caplog.clear()
        dump.write_text(cut)
        for _ in range(3):
            assert not loaded_topology.reload()
        assert len(loaded_topology.current().topology.hosts) == 32
        [line] = [text for text in caplog.messages if "last good topology" in text]
        assert f"{dump}: " in line
        assert "topology_accept_incomplete is false; the last good topology stays" in line
        CONF.set_override("topology_accept_incomplete", True, "hpc_sched")
        assert loaded_topology.reload()
        assert len(loaded_topology.current().topology.hosts) < 32


def test_a_dump_without_its_end_is_refused_while_a_change_waits(tmp_path, caplog, turned_clock):
    dump = tmp_path / "fabric.txt"
    changed = two_levels(4, 2, 9).text()
    with configured(write_topology(tmp_path, four_by_eight())):
        CONF.set_override("topology_driver", "ibnetdiscover", "hpc_sched")
        CONF.set_override("topology_file", str(dump), "hpc_sched")
        dump.write_text(CABLED.text())
        loaded_topology.load()
        dump.write_text(changed)
        assert not loaded_topology.reload()
        dump.write_text(changed[: len(changed) // 2])
        caplog.clear()
        for _ in range(10):
            turned_clock.turn(60)
            assert not loaded_topology.reload()
        [line] = [text for text in caplog.messages if "topology" in text.lower()]
        assert line.endswith("the last good topology stays in use")
        assert len(loaded_topology.current().topology.hosts) == 32
        dump.write_text(changed)
        assert loaded_topology.reload()
        assert len(loaded_topology.current().topology.hosts) == 36


def test_the_fabric_of_another_source_does_not_wait_even_after_an_error(tmp_path):
    dump = tmp_path / "fabric.txt"
    with configured(write_topology(tmp_path, {"old": ["n001", "n002"]})):
        loaded_topology.load()
        CONF.set_override("topology_driver", "ibnetdiscover", "hpc_sched")
        CONF.set_override("topology_file", str(dump), "hpc_sched")
        dump.write_text("no dump\n")
        assert not loaded_topology.reload()
        assert loaded_topology.current().topology.leaves == ("old",)
        dump.write_text(CABLED.text())
        assert loaded_topology.reload()
        assert len(loaded_topology.current().topology.leaves) == 4
