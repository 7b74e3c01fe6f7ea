"""A cloud that lives for an hour: nothing breaks, nothing leaks, nothing is left behind."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_sched.demo.cloud import NovaCloud
from tests.functional.claims import STAYS_UP, ClaimsOnly
from tests.functional.clouds import sharing_options
from tests.functional.soak import checks, fabrics
from tests.functional.soak.life import Life
from tests.functional.soak.run import run, table

EVENTS = int(os.environ.get("HPC_SCHED_SOAK", "300"))
SEED = int(os.environ.get("HPC_SCHED_SOAK_SEED", "1"))
BOUNDS = {"RSS, KiB": 16.0, "blocks of memory": 40.0, "live objects": 0.5}


@pytest.fixture(scope="module")
def nova(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory
) -> ClaimsOnly:
    folder = tmp_path_factory.mktemp("soak")
    index, topology = folder / "index.csv", folder / "topology.yaml"
    index.write_text(checks.INDEX)
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
    cloud = start_cloud(topology, sharing_options(folder, **ours) | STAYS_UP)
    claims = ClaimsOnly(cloud)
    claims.add_hosts(dict.fromkeys(fabrics.HOSTS, 0))
    return claims


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def test_soak(nova):
    # Begun here: pytest keeps the records of loggers that are set apart before the test is.
    with checks.listening() as listener:
        life = Life(nova, Path(nova.cloud.options["hpc_sched", "topology_file"]))
        ran = run(life, listener, SEED, EVENTS, progress=say)
    print("\n".join(table(ran)))
    assert not ran.wrong, "\n".join(ran.wrong)
