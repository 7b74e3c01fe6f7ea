"""The case study of Gupta2013 through Nova's API, placement for placement.

One rack, N1 to N8 of 4 cores and 8 GB::

                 rack1
      /    /    /   |   |   \\    \\    \\
     N1   N2   N3  N4   N5   N6   N7   N8
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional import placement_state
from tests.functional.cloud_kinds import CASE_STUDY, SHARING
from tests.functional.shared_clouds import cloud_mark
from tests.functional.thin_cloud import ThinCloud

# Application, VMs, class, cache score of a VM: in the order of the requests.
APPLICATIONS = {
    "IS.B": (4, "extreme", 47),
    "LU.C": (16, "sync", 16),
    "LU.B": (4, "sync", 29),
    "ChaNGa": (4, "sync", 7.5),
    "EP.B": (4, "async", 2.5),
}

pytestmark = cloud_mark(SHARING)


@pytest.fixture
def cloud(shared_cloud: ThinCloud) -> Iterator[ThinCloud]:
    shared_cloud.flags(cache_score_limit=100, group="hpc_sched")
    for name, (_, app_class, score) in APPLICATIONS.items():
        shared_cloud.flavor(
            name,
            memory_mb=2048,
            extra_specs={
                "hpc:app_class": app_class,
                "hpc:app_name": name,
                "hpc:cache_score": str(score),
            },
        )
    with shared_cloud.only(CASE_STUDY):
        yield shared_cloud


@pytest.fixture
def running(cloud: NovaCloud) -> Iterator[dict[str, list[str]]]:
    """Application to the servers of its requests; all are deleted after the test."""
    servers: dict[str, list[str]] = {}
    yield servers
    cloud.remove([uuid for uuids in servers.values() for uuid in uuids])


@pytest.fixture
def ask(cloud: NovaCloud, running: dict[str, list[str]]) -> Callable[[str], dict[str, int] | str]:
    """Send the request of an application; return its VMs per host, or why it was refused."""

    def ask_(name: str) -> dict[str, int] | str:
        before = placement_state.allocations(cloud)
        servers = cloud.boot(name, count=APPLICATIONS[name][0], name=name)
        running.setdefault(name, []).extend(servers)
        hosts = cloud.hosts_of(servers)
        if hosts:
            assert len(hosts) == len(servers)
            return dict(sorted(Counter(hosts.values()).items()))
        assert placement_state.allocations(cloud) == before
        return cloud.api.get_server(servers[0])["fault"]["message"]

    return ask_


@pytest.fixture
def end(cloud: NovaCloud, running: dict[str, list[str]]) -> Callable[..., None]:
    """Delete the servers of some applications."""

    def end_(*names: str) -> None:
        cloud.remove([uuid for name in names for uuid in running.pop(name)])

    return end_


def each(count: int, hosts: str) -> dict[str, int]:
    """Return that many VMs on each host of a range such as N2-N5."""
    first, _, last = hosts.replace("N", "").partition("-")
    return {f"N{number}": count for number in range(int(first), int(last or first) + 1)}


def test_beta_100_packs_all_five_applications(cloud: NovaCloud, ask):
    cloud.flags(sync_cache_score_limit=100, group="hpc_sched")
    assert ask("IS.B") == each(4, "N1")
    assert ask("LU.C") == each(4, "N2-N5")
    assert ask("LU.B") == each(3, "N6") | each(1, "N7")
    assert ask("ChaNGa") == each(1, "N6") | each(3, "N7")
    assert ask("EP.B") == each(4, "N8")


def test_beta_60_spreads_them_and_refuses_one_before_a_single_claim(cloud: NovaCloud, ask, end):
    cloud.flags(sync_cache_score_limit=60, group="hpc_sched")
    assert ask("IS.B") == each(4, "N1")
    assert ask("LU.C") == each(3, "N2-N6") | each(1, "N7")
    refused = ask("LU.B")
    assert "group of 4 does not fit: largest gang that fits: 3" in refused
    assert "hosts are left out for the VMs that they have" in refused
    assert ask("ChaNGa") == each(1, "N2-N5")
    assert ask("EP.B") == each(1, "N6") | each(3, "N7")
    end("IS.B")
    assert ask("LU.B") == each(2, "N1") | each(2, "N8")


def test_beta_40_has_the_large_application_wait_for_all_others(cloud: NovaCloud, ask, end):
    cloud.flags(sync_cache_score_limit=40, group="hpc_sched")
    assert ask("IS.B") == each(4, "N1")
    assert "group of 16 does not fit" in ask("LU.C")
    assert ask("LU.B") == each(1, "N2-N5")
    assert ask("ChaNGa") == each(1, "N2-N5")
    assert ask("EP.B") == each(1, "N2-N5")
    end("IS.B", "LU.B", "ChaNGa", "EP.B")
    assert ask("LU.C") == each(2, "N1-N8")
