"""A seeded stream of requests and deletions through the API of a Nova, VM by VM.

::

                    core
              /             \\
           leaf1           leaf2
           n1 n2           n3 n4
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional import rules
from tests.functional.clouds import sharing_options
from tests.functional.shared_clouds import CloudKind, cloud_mark
from tests.functional.states import wishing
from tests.functional.tested_cloud import TestedCloud

LEAVES = {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"]}
ALPHA, BETA = 100.0, 60.0
APART = {frozenset({"LU", "CG"})}
FLAVORS = {
    "IS": wishing(app_class="extreme", app_name="IS", cache_score=47),
    "LU": wishing(app_class="sync", app_name="LU", cache_score="16.5"),
    "CG": wishing(app_class="sync", app_name="CG", cache_score="29.3"),
    "FT": wishing(app_class="async", app_name="FT", cache_score="31.7"),
    "EP": wishing(app_class="async", app_name="EP", cache_score="2.5"),
    "web": {},
}
REQUESTS = 14


def options(folder: Path) -> dict[tuple[str, str], Any]:
    """Return options of a cloud where applications share hosts."""
    index = folder / "index.yaml"
    index.write_text("- [LU, CG, 0.7, 0.98]\n- [LU, LU, 0.99, 0.99]\n")
    return sharing_options(
        folder,
        cache_score_limit=ALPHA,
        sync_cache_score_limit=BETA,
        interference_file=str(index),
        # A machine that stalls must not make a cell one that does not answer.
        cell_timeout=600,
    )


pytestmark = cloud_mark(
    CloudKind(
        "shared by applications",
        {"core": LEAVES},
        options=options,
        attributes={"vcpus": 6, "memory_mb": 32768},
    )
)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    for name, said in FLAVORS.items():
        shared_cloud.flavor(name, memory_mb=2048, extra_specs=said)
    return shared_cloud


@pytest.fixture
def jobs(cloud: TestedCloud) -> Iterator[list[list[str]]]:
    """The servers of each request that found room; deleted after the test."""
    made: list[list[str]] = []
    yield made
    cloud.remove([uuid for servers in made for uuid in servers])


def on_hosts(cloud: TestedCloud, groups: dict[str, str]) -> dict[str, list[rules.Running]]:
    """Return what the API shows on each host.

    :param groups: server to what it belongs to with others
    """
    found: dict[str, list[rules.Running]] = defaultdict(list)
    for server in cloud._list(detail=True):
        host = server["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        if host is not None:
            said = server["flavor"]["extra_specs"]
            group = groups.get(server["id"], server["id"])
            vm = rules.running(server["id"], said, group, server["id"] in groups)
            found[host].append(vm)
    return found


def test_what_the_api_shows_breaks_no_rule_whatever_came_and_went(cloud, jobs):
    dice = random.Random(1)
    groups: dict[str, str] = {}
    growing: dict[str, str] = {}  # server group to its flavor
    refused = 0
    for _ in range(REQUESTS):
        while jobs and dice.random() < 0.4:
            cloud.remove(jobs.pop(dice.randrange(len(jobs))))
        flavor, group = dice.choice(sorted(FLAVORS)), None
        if growing and dice.random() < 0.3:
            group, flavor = dice.choice(list(growing.items()))
        elif dice.random() < 0.3:
            group = cloud.server_group("job", "soft-affinity")
            growing[group] = flavor
        servers = cloud.boot(flavor, count=dice.choice((1, 2, 3, 5)), group=group)
        if group or len(servers) > 1:
            groups |= dict.fromkeys(servers, group or servers[0])
        hosts = cloud.hosts_of(servers)
        if hosts:
            assert hosts.keys() == set(servers)
            jobs.append(servers)
        else:
            refused += 1
            cloud.remove(servers)
        for host, there in on_hosts(cloud, groups).items():
            assert rules.broken(there, ALPHA, BETA, APART) == [], host
    assert refused
