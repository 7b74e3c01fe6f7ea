"""An option of [hpc_sched] without a value stops the start, and no request later."""

from pathlib import Path

import nova.conf
import pytest
from nova import objects
from oslo_config import cfg

from hpc_sched import conf
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import states_of
from tests.functional.states import spec, weigh

CONF = nova.conf.CONF

NUMBERS = [opt.dest for opt in conf.OPTS if isinstance(opt, cfg.FloatOpt | cfg.IntOpt)]


def nova_conf(folder: Path, name: str, value: str = "") -> str:
    path = folder / "nova.conf"
    path.write_text(f"[hpc_sched]\n{name} = {value}\n")
    return str(path)


@pytest.mark.parametrize("name", NUMBERS)
def test_an_option_without_its_number_is_found_at_the_start(tmp_path, name):
    options = cfg.ConfigOpts()
    conf.register_opts(options)
    options([], "nova", default_config_files=[nova_conf(tmp_path, name)])
    with pytest.raises(ValueError, match=name):
        conf.check(options)


@pytest.mark.parametrize("value", ["sync,extreme", "all"])
def test_a_class_that_mdobp_cannot_place_stops_the_start(two_pods, tmp_path, value):
    CONF(["--config-file", nova_conf(tmp_path, "mdobp_classes", value)])
    CONF.set_override("topology_file", str(two_pods), "hpc_sched")
    with pytest.raises(
        ValueError, match=r"mdobp_classes.*Valid values are .sync, async, none., but"
    ):
        loaded_topology.start()


def test_a_list_without_a_class_is_a_list(two_pods, tmp_path):
    CONF(["--config-file", nova_conf(tmp_path, "mdobp_classes")])
    CONF.set_override("topology_file", str(two_pods), "hpc_sched")
    loaded_topology.start()
    assert CONF.hpc_sched.mdobp_classes == []


@pytest.mark.parametrize("value", ["", "much", "-1"])
def test_a_time_for_planning_that_loses_its_number_later_has_its_default(
    two_pods, group, tmp_path, value
):
    group(left=2)
    weigher = HopByteWeigher()
    CONF(["--config-file", nova_conf(tmp_path, "planning_timeout", value)])
    CONF.set_override("topology_file", str(two_pods), "hpc_sched")
    states = states_of("leaf1")
    assert len(weigh(weigher, states, spec(count=2))) == len(states)
    assert conf.number(CONF, "planning_timeout") == 10


@pytest.mark.parametrize("value", ["", "much"])
def test_a_multiplier_that_loses_its_number_later_does_not_end_a_request(
    two_pods, group, tmp_path, value
):
    group(left=2)
    weigher = HopByteWeigher()
    CONF(["--config-file", nova_conf(tmp_path, "hop_byte_weight_multiplier", value)])
    CONF.set_override("topology_file", str(two_pods), "hpc_sched")
    states = states_of("leaf1")
    assert len(weigh(weigher, states, spec(count=2))) == len(states)
    states[0].aggregates = [
        objects.Aggregate(name="a", metadata={"hop_byte_weight_multiplier": "2"})
    ]
    assert len(weigh(weigher, states, spec(count=2))) == len(states)
