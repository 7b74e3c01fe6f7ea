"""16 single creates of one group sent at once by 8 threads, with the plugin and on stock Nova."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.clouds import four_by_eight, leaves_used

pytestmark = pytest.mark.nightly(
    "streams", "a stock Nova and one with the plugin, 16 creates at a time"
)

LEAVES = four_by_eight()
HOSTS = [host for hosts in LEAVES.values() for host in hosts]
COUNT, THREADS = 16, 8


def create_in_parallel(cloud: NovaCloud, policy: str, retry: bool = False) -> dict[str, dict]:
    """Return the servers of 16 single creates sent at once, as the API shows them.

    :param retry: whether the client deletes a server in error and asks again, twice at most
    """
    group = cloud.server_group("parallel", policy)
    start = threading.Barrier(THREADS)

    def client(number: int) -> list[str]:
        start.wait()
        return [cloud.boot("rank", group=group)[0] for _ in range(COUNT // THREADS)]

    with ThreadPoolExecutor(THREADS) as pool:
        servers = [server for made in pool.map(client, range(THREADS)) for server in made]
    shown = cloud.wait(servers, timeout=200)
    for _ in range(2 if retry else 0):
        failed = [uuid for uuid, server in shown.items() if server["status"] == "ERROR"]
        if not failed:
            break
        cloud.remove(failed)
        again = [cloud.boot("rank", group=group)[0] for _ in failed]
        shown = cloud.wait([uuid for uuid in shown if uuid not in failed] + again)
    return shown


def active_hosts(shown: dict[str, dict]) -> list[str]:
    return [
        server["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        for server in shown.values()
        if server["status"] == "ACTIVE"
    ]


def start(start_cloud: Callable[..., NovaCloud], leaves: object) -> NovaCloud:
    cloud = start_cloud(leaves)
    cloud.start_computes(HOSTS)
    # Small enough for several on a host: only the group's policy keeps them apart.
    cloud.flavor("rank")
    return cloud


@pytest.fixture(scope="module")
def active_on_stock_nova(start_cloud: Callable[..., NovaCloud]) -> int:
    """Return how many of the 16 with anti-affinity are ACTIVE without the plugin."""
    return len(active_hosts(create_in_parallel(start(start_cloud, None), "anti-affinity")))


@pytest.fixture(scope="module")
def cloud(start_cloud: Callable[..., NovaCloud], active_on_stock_nova: int) -> NovaCloud:
    """Return a cloud with the plugin, started after stock Nova has had its turn."""
    return start(start_cloud, LEAVES)


def test_with_anti_affinity_three_times_as_many_are_active_as_on_stock_nova(
    cloud, active_on_stock_nova, record_property
):
    shown = create_in_parallel(cloud, "anti-affinity")
    hosts = active_hosts(shown)
    record_property("active_on_stock_nova", active_on_stock_nova)
    record_property("active_with_plugin", len(hosts))
    print(f"ACTIVE of 16: stock {active_on_stock_nova}, plugin {len(hosts)}")
    cloud.remove(shown)
    assert len(hosts) == len(set(hosts))
    assert len(hosts) >= min(3 * active_on_stock_nova, COUNT)


def test_with_anti_affinity_all_are_active_when_the_clients_retry(cloud):
    shown = create_in_parallel(cloud, "anti-affinity", retry=True)
    hosts = active_hosts(shown)
    cloud.remove(shown)
    assert len(set(hosts)) == COUNT


def test_with_soft_anti_affinity_all_are_active_in_at_most_one_leaf_more_than_in_one_request(
    cloud,
):
    at_once = cloud.boot("rank", count=COUNT, group=cloud.server_group("one", "soft-anti-affinity"))
    least = len(leaves_used(LEAVES, cloud.hosts_of(at_once).values()))
    cloud.remove(at_once)
    shown = create_in_parallel(cloud, "soft-anti-affinity")
    hosts = active_hosts(shown)
    print(f"leaves: one request {least}, parallel {leaves_used(LEAVES, hosts)}")
    cloud.remove(shown)
    assert len(hosts) == COUNT
    assert len(leaves_used(LEAVES, hosts)) <= least + 1
