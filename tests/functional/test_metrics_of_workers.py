"""Metrics of two workers that Nova's launcher has forked, scraped over HTTP.

The fabric is that of ``mixed_schedulers.py``. What happened is known from the decision log, from
what Placement was sent, and from what it holds.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.exporter.worker import PERIOD
from tests.functional.claims import ClaimsOnly
from tests.functional.clouds import write_topology
from tests.functional.database_files import write_conf
from tests.functional.mixed_schedulers import LEAVES, ORDER, Mixed, MixedScheduler
from tests.functional.placement_state import held
from tests.functional.scheduler_processes import needs_files, served
from tests.functional.states import read_decisions
from tests.functional.worker_processes import (
    Worker,
    Workers,
    free_port,
    started_workers,
    wait,
)
from tests.scraped import Samples, samples_in

pytestmark = needs_files

PROJECT = "project"  # of the requests of tests.functional.claims


@pytest.fixture(scope="module")
def posts() -> list[str]:
    """Return the statuses of the transactions that Placement was sent."""
    return []


@pytest.fixture(scope="module")
def mixed(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory, posts
) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp("workers")
    claims = ClaimsOnly(start_cloud(with_scheduler=False))
    claims.add_hosts(
        dict.fromkeys(ORDER, 0), {host: 2048 * place for place, host in enumerate(ORDER)}
    )

    def watched(placement):
        def application(environ, start_response):
            def note(status, headers, *more):
                path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
                if (method, path) == ("POST", "/allocations"):
                    posts.append(status[:3])
                return start_response(status, headers, *more)

            return placement(environ, note)

        return application

    topology = write_topology(folder, LEAVES)
    with served(claims.cloud, folder, topology, watched) as conf, ExitStack() as stack:
        yield Mixed(claims, folder, conf, stack)


@pytest.fixture
def workers(mixed: Mixed, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Start a nova-scheduler with two workers and metrics; a parameter has more options."""
    address = f"127.0.0.1:{free_port()}"
    options = getattr(request, "param", {})
    conf = write_conf(
        tmp_path / "workers.conf",
        {
            "DEFAULT": {"host": "ctl1", "state_path": str(tmp_path), "report_interval": "1000"},
            "scheduler": {"workers": "2"},
            "hpc_sched": {
                "decision_log": str(tmp_path / "decisions.jsonl"),
                "metrics_address": address,
                **options,
            },
        },
    )
    conf.write_text(mixed.conf.read_text() + conf.read_text())
    with started_workers(conf, tmp_path, address) as found:
        found.wait_for(2)
        yield found
    mixed.clear()
    # Nova's own say that SQLite, which they share, was locked.
    assert "ERROR hpc_sched" not in found.log.read_text() or options


def place(mixed: Mixed, worker: Worker, count: int, policy: str = "soft-anti-affinity", **specs):
    """Return what became of a group's request that a worker serves."""
    group, [vms] = mixed.group(count, policy=policy)
    one = MixedScheduler(mixed, "ctl1", worker)
    return one.place(vms, group, policy=policy, **specs)


def series(found: Samples, name: str) -> dict[str, float]:
    """Return the values of a metric by its first label that is not the mode, all modes added."""
    values: dict[str, float] = {}
    for (metric, labels), value in found.items():
        if metric == f"hpc_sched_{name}":
            first = next((text for label, text in sorted(labels) if label != "mode"), "")
            values[first] = values.get(first, 0) + value
    return values


def test_metrics_are_there_before_the_first_request(workers):
    found = workers.wait_until("hpc_sched_workers", 2)
    assert series(found, "decisions_total") == {"planned": 0, "no_plan": 0, "refused": 0}
    assert series(found, "topology_hosts") == {"": 8}
    assert series(found, "topology_leaves") == {"": 2}
    assert series(found, "topology_good") == {"": 1}


def test_the_sums_of_both_workers_are_what_happened(workers, mixed, posts, tmp_path):
    posts.clear()
    first, second = workers.wait_for(2)
    outcomes = [
        place(mixed, first, 4, require="leaf"),
        place(mixed, second, 2),
        place(mixed, second, 4, require="leaf"),  # no leaf is free
        place(mixed, first, 9),  # more than hosts
    ]
    assert [bool(outcome.refused) for outcome in outcomes] == [False, False, True, True]
    log = tmp_path / "decisions.jsonl"
    decided = Counter(record["decision"].replace(" ", "_") for record in read_decisions(log))
    assert decided.total() == 4
    found = workers.wait_until("hpc_sched_request_seconds_count", 4)
    assert +Counter(series(found, "decisions_total")) == decided
    transactions = series(found, "claim_transactions_total")
    assert sum(transactions.values()) == len(posts) == 2
    assert transactions["done"] == posts.count("204")
    claimed = series(found, "gang_claims_total")["held"]
    assert claimed == sum("claim" in record for record in read_decisions(log)) == 2
    held_vms = {vm for outcome in outcomes[:2] for vm in outcome.uuids}
    assert held(mixed.claims.cloud).keys() == held_vms


def test_no_metric_names_a_tenant(workers, mixed, tmp_path):
    first, second = workers.wait_for(2)
    outcomes = [place(mixed, first, 2), place(mixed, second, 9)]
    text = workers.scrape()
    workers.wait_until("hpc_sched_request_seconds_count", 2)
    text += workers.scrape()
    groups = [record["group"] for record in read_decisions(tmp_path / "decisions.jsonl")]
    names = [*outcomes[0].uuids, *outcomes[1].uuids, *groups, *LEAVES, "project_id", "user_id"]
    assert len(names) > 15
    assert [name for name in names if name in text] == []
    values = {value for _, labels in samples_in(text) for _, value in labels}
    assert values.isdisjoint({*ORDER, PROJECT})


def test_another_worker_serves_when_the_one_that_did_is_killed(workers, mixed):
    first, second = workers.wait_for(2)
    for worker in (first, second, second):
        assert not place(mixed, worker, 2).refused
    before = workers.wait_until("hpc_sched_decisions_total", 3, answer="planned", mode="active")
    killed = workers.serving()
    os.kill(killed.pid, signal.SIGKILL)
    after = workers.samples()
    counts = [key for key in before if key[0].endswith(("_total", "_count", "_bucket", "_sum"))]
    assert all(after[key] >= before[key] for key in counts)
    # Nova starts another one, which goes on in its place.
    alive = wait(lambda: {w.pid for w in workers.wait_for(2)} - {killed.pid, second.pid, first.pid})
    found = workers.wait_until("hpc_sched_workers", 2)
    [new] = [worker for worker in workers.alive() if worker.pid in alive]
    assert not place(mixed, new, 1).refused
    found = workers.wait_until("hpc_sched_decisions_total", 4, answer="planned", mode="active")
    assert found["hpc_sched_request_seconds_count", frozenset()] == 4
    assert workers.serving().pid != killed.pid


@pytest.mark.parametrize("workers", [{"metrics_project": "true"}], indirect=True)
def test_projects_have_a_counter_of_their_own_where_an_option_says_so(workers, mixed):
    first, _ = workers.wait_for(2)
    place(mixed, first, 2)
    decided = {"answer": "planned", "mode": "active"}
    found = workers.wait_until("hpc_sched_project_decisions_total", 1, **decided, project=PROJECT)
    assert found["hpc_sched_decisions_total", frozenset(decided.items())] == 1


@pytest.mark.parametrize("workers", [{"metrics_address": "192.0.2.1:9"}], indirect=True)
def test_an_address_that_cannot_be_had_is_one_error_and_no_request_notices(workers, mixed):
    first, second = workers.wait_for(2)
    assert not place(mixed, first, 2).refused
    assert not place(mixed, second, 2).refused
    wait(lambda: "metrics_address" in workers.log.read_text())
    time.sleep(3 * PERIOD)
    [line] = [line for line in workers.log.read_text().splitlines() if " ERROR hpc" in line]
    assert "metrics_address: 192.0.2.1:9: Cannot assign" in line
