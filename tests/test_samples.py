"""The sample files say what the code does."""

import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from hpc_sched import conf, topology
from hpc_sched.topology.capacities import HOST_LINK_RATE, LinkDefaults, capacities
from tests.unit.fabrics import check

ROOT = Path(__file__).resolve().parents[1]


def test_the_sample_of_the_options_is_current():
    made = subprocess.run(
        [sys.executable, "-m", "oslo_config.generator", "--namespace", "hpc_sched"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert (ROOT / "etc" / "hpc_sched.conf.sample").read_text() == made, "run: tox -e genconfig"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("cell_timeout = 0", "cell_timeout"),
        ("in_flight_lookups = -1", "in_flight_lookups"),
        ("default_app_class = fast", "default_app_class"),
        ("bunch_weight_multiplier = nan", "bunch_weight_multiplier = nan: expected a finite"),
        ("implicit_groups = perhaps", "implicit_groups"),
        ("processor_speeds = gold:3", "processor_speeds .* expected TYPE=NUMBER,.* 'gold:3'"),
        ("processor_speeds = gold=3,old=nan", "processor_speeds .* old: expected a number above"),
        ("processor_speeds = gold=0", "processor_speeds .* gold: expected a number above 0"),
        ("processor_speeds = gold=1,gold=2", "processor_speeds .* gold again"),
        ("uplink_oversubscription = leaf", "uplink_oversubscription .* NAME:VALUE pairs"),
        ("uplink_oversubscription = leaf:0", "uplink_oversubscription .* greater than or equal"),
        ("uplink_oversubscription = leaf:nan", "uplink_oversubscription = .*nan.*: expected a"),
        ("host_link_rate = nan", "host_link_rate = nan: expected a finite"),
        ("host_link_rate = 0", "host_link_rate .* greater than or equal"),
    ],
)
def test_a_wrong_value_in_the_file_is_found_at_start_and_named(tmp_path: Path, line, error):
    path = tmp_path / "nova.conf"
    path.write_text(f"[hpc_sched]\n{line}\n")
    options = cfg.ConfigOpts()
    conf.register_opts(options)
    options([], default_config_files=[str(path)])
    with pytest.raises(ValueError, match=error):
        conf.check(options)


def test_ratios_by_level_are_read_and_an_invalid_one_counts_for_none(tmp_path: Path):
    path = tmp_path / "nova.conf"
    for text, ratios in (("leaf:4,pod:2", {"leaf": 4.0, "pod": 2.0}), ("leaf:nan", {})):
        path.write_text(f"[hpc_sched]\nuplink_oversubscription = {text}\n")
        options = cfg.ConfigOpts()
        conf.register_opts(options)
        options([], default_config_files=[str(path)])
        assert conf.uplink_oversubscription(options) == ratios
    assert conf.number(options, "host_link_rate") == HOST_LINK_RATE


def test_the_sample_topology_is_the_one_that_its_drawing_shows():
    fabric = topology.load("yaml", path=ROOT / "etc" / "topology.yaml.sample")
    check(fabric)
    assert fabric.levels == ("leaf", "pod", "core")
    assert {leaf: len(fabric.hosts_of(leaf)) for leaf in fabric.leaves} == {
        "leaf01": 8,
        "leaf02": 8,
        "leaf03": 8,
        "leaf04": 8,
    }
    assert fabric.hops("node001", "node032") == 5
    rates = capacities(fabric, LinkDefaults())
    names = [switch.name for switch in fabric.switches]
    assert dict(zip(names, (rates.switches // 1000).tolist(), strict=True)) == {
        "core1": 0,
        **dict.fromkeys(("pod1", "pod2"), 800),
        **dict.fromkeys(fabric.leaves, 400),
    }
    assert fabric.processor_of("node017") == "gold-6338"


def test_the_readme_shows_the_nova_conf_that_the_demo_and_the_tests_use():
    sample = (ROOT / "etc" / "nova.conf.sample").read_text()
    # Without comments and without the alternative, which is a comment too.
    settings = [line for line in sample.splitlines() if line and not line.startswith("#")]
    lines = [line.strip() for line in (ROOT / "README.rst").read_text().splitlines()]
    start = lines.index(settings[0])
    shown = [line for line in lines[start : start + len(settings) + 1] if line]
    assert shown == settings


def test_the_sample_decides_on_groups_without_a_class():
    assert "\ndefault_app_class = " in (ROOT / "etc" / "nova.conf.sample").read_text()


def test_the_topology_of_the_operators_guide_is_a_topology(tmp_path: Path):
    text = (ROOT / "docs" / "operator" / "enable.rst").read_text()
    block = text.split(".. code-block:: yaml\n\n", 1)[1]
    body = []
    for line in block.splitlines():
        if line and not line.startswith("   "):
            break
        body.append(line[3:])
    path = tmp_path / "topology.yaml"
    path.write_text("\n".join(body))
    fabric = topology.load("yaml", path=path)
    loaded = f"{len(fabric.hosts)} hosts, {len(fabric.leaves)} leaves, depth {fabric.depth}"
    assert f"Topology loaded: {loaded}" in text
    assert f"Topology loaded: {loaded}" in " ".join((ROOT / "README.rst").read_text().split())
