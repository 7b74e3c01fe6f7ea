"""What a scheduler says when it starts with a topology that is missing, wrong or incomplete."""

from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest
from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.demo import nova_cloud
from hpc_sched.nova_glue.io import loaded_topology
from tests.broken_topologies import BROKEN
from tests.functional.cloud_kinds import TWO_BY_FOUR
from tests.functional.clouds import ROOT, SAMPLE_CONF, write_topology
from tests.functional.shared_clouds import cloud_mark

CONF = nova.conf.CONF


@pytest.fixture(scope="module")
def cloud(start_cloud: Callable[..., nova_cloud.NovaCloud]) -> nova_cloud.NovaCloud:
    """Return a Nova without a scheduler and without computes."""
    return start_cloud(with_scheduler=False)


@pytest.fixture
def start(cloud: nova_cloud.NovaCloud) -> Iterator[Callable[..., None]]:
    """Start a scheduler as etc/nova.conf.sample says, with some options changed."""
    changed: list[tuple[str, str]] = []

    def start_(**hpc_sched: object) -> None:
        options = nova_cloud.read_options(SAMPLE_CONF)
        options |= {("hpc_sched", name): value for name, value in hpc_sched.items()}
        changed.extend(options)
        cloud.start_scheduler(options)

    yield start_
    for section, name in changed:
        cloud.reset_flags(name, group=section)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_broken_topology_stops_the_start_with_an_error_that_names_file_and_line(
    start, tmp_path: Path, case
):
    path = tmp_path / "topology.yaml"
    path.write_bytes(case.content)
    with pytest.raises(exceptions.TopologyError, match=case.error) as caught:
        start(topology_file=str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"topology_file": None},
            r"a file \(\[hpc_sched\] topology_file\) or a command .* found neither",
        ),
        ({"topology_file": "/nowhere/t.yaml"}, "/nowhere/t.yaml: cannot be read: No such file"),
        ({"topology_file": "/"}, "/: cannot be read: Is a directory"),
        ({"topology_driver": "nope"}, "no topology driver 'nope' .* installed: .*yaml"),
    ],
    ids=["no file named", "the file is missing", "the file is a directory", "an unknown driver"],
)
def test_a_topology_that_cannot_be_had_stops_the_start(start, options, error):
    with pytest.raises(exceptions.TopologyError, match=error):
        start(**options)


def test_a_command_that_cannot_be_killed_stops_the_start_in_bounded_time(start, unkillable):
    command = ["sh", "-c", "trap '' TERM; exec sleep 3600"]
    # It does not wait for the hour that the command takes.
    with pytest.raises(
        exceptions.TopologyError,
        match=r"3600': no end within 0.5 s; process \d+ of user \w+ could not be killed: Operation",
    ):
        start(topology_file=None, topology_command=command, topology_command_timeout=0.5)


def test_the_sample_files_start_a_scheduler(start, cloud):
    start(topology_file=str(ROOT / "etc" / "topology.yaml.sample"))
    try:
        assert "HopByteWeigher" in [type(weigher).__name__ for weigher in cloud.weighers]
    finally:
        cloud.scheduler.stop()


@cloud_mark(TWO_BY_FOUR)
def test_hosts_that_a_new_topology_does_not_name_are_reported_once(shared_cloud, tmp_path):
    cloud, before = shared_cloud, CONF.hpc_sched.topology_file
    path = write_topology(tmp_path, {"leaf1": ["n1", "n2"], "leaf2": ["n3"]})
    flavor = cloud.flavor("rank", vcpus=16)
    group = cloud.server_group("group", "anti-affinity")
    cloud.flags(topology_file=str(path), group="hpc_sched")
    assert loaded_topology.reload()
    begin = len(cloud.stdlog.logger.output)
    servers = []
    try:
        for _ in range(2):
            servers += cloud.boot(flavor, count=2, group=group)
            assert len(cloud.hosts_of(servers)) == len(servers)
    finally:
        cloud.flags(topology_file=before, group="hpc_sched")
        loaded_topology.reload()
        cloud.remove(servers)
    log = cloud.stdlog.logger.output[begin:]
    told = [line for line in log.splitlines() if "not in the topology" in line]
    assert len(told) == 1
    assert "WARNING" in told[0]
    assert "n[4-8]" in told[0]


def test_options_may_be_registered_twice():
    from hpc_sched import conf

    options = cfg.ConfigOpts()
    conf.register_opts(options)
    conf.register_opts(options)
    assert options.hpc_sched.topology_driver == "yaml"
