"""The cloud of the soak."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest

from hpc_sched.demo.nova_cloud import read_options
from hpc_sched.nova_glue.io import loaded_topology
from tests.functional import rows
from tests.functional.claims import ClaimsOnly, claims_on
from tests.functional.clouds import SAMPLE_CONF, sharing_options
from tests.functional.soak import checks, fabrics
from tests.functional.soak.fleet import Fleet
from tests.functional.soak.life import Life
from tests.functional.soak.run import Soak, run
from tests.functional.tested_cloud import TestedCloud
from tests.functional.workload import INDEX

CONF = nova.conf.CONF


@pytest.fixture(scope="module")
def nova(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClaimsOnly]:
    folder = tmp_path_factory.mktemp("soak")
    index, topology = folder / "index.csv", folder / "topology.yaml"
    index.write_text(INDEX)
    fabrics.write(topology, fabrics.BASE)
    ours = {
        "cache_score_limit": checks.ALPHA,
        "sync_cache_score_limit": checks.BETA,
        "interference_file": str(index),
        # A machine that stalls must not make a cell one that does not answer.
        "cell_timeout": 600,
        "in_flight_lookups": 1000,
        "topology_reload_interval": 1,
        "decision_log": str(folder / "decisions.json"),
    }
    ours["topology_file"] = str(topology)
    options = read_options(SAMPLE_CONF) | sharing_options(folder, **ours)
    with claims_on(cloud_of_module, dict.fromkeys(fabrics.HOSTS, 0), options=options) as claims:
        # Where an earlier module has started the thread it sleeps without an interval.
        loaded_topology.watch.wake()
        yield claims


@pytest.fixture
def live(nova: ClaimsOnly) -> Iterator[Callable[..., Soak]]:
    """Return what lives through a number of events in an empty cloud."""
    path = Path(CONF.hpc_sched.topology_file)
    lives: list[Life] = []

    def live_(number: int, seed: int = 1) -> Soak:
        # Begun here: pytest keeps the records of loggers that are set apart before the test is.
        with checks.listening() as listener:
            lives.append(Life(Fleet(nova), path))
            return run(lives[-1], listener, seed, number, progress=say)

    yield live_
    for life in lives:
        empty(life)
    fabrics.write(path, fabrics.BASE)


def empty(life: Life) -> None:
    """Remove everything, also what should not be there."""
    for consumer in checks.consumers():
        life.nova.cloud.placement.delete(f"/allocations/{consumer}", version="1.28")
    rows.clear(life.nova.cloud)
    life.nova.cloud.notifier.reset()
    life.fleet.vms.clear()
    life.fleet.report(fabrics.HOSTS)
    for host in life.fleet.down:
        rows.set_down(life.nova.cloud, host, False)


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)
