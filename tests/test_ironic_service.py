"""The ``ironic`` driver on the API of a real Ironic; skipped where it is not installed."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.exceptions import TopologyError
from hpc_sched.topology import switch_names
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.readers.ironic import api
from hpc_sched.topology.readers.ironic.ironic_driver import IronicDriver
from tests.ironic_lists import NODE_KEYS, PORT_KEYS, pods
from tests.ironic_service import CLOUD, Service, serving

METAL = pods(4, 10, 25)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service of 1,000 nodes under 40 leaves of two switches in 4 pods."""
    folder = tmp_path_factory.mktemp("ironic")
    with serving(METAL, folder) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(folder / "clouds.yaml"))
        yield found


def test_a_thousand_nodes_are_discovered_without_a_file(service: Service):
    before = len(service.calls())
    fabric = IronicDriver(cloud=CLOUD, node_key={"pod": "CUSTOM_POD_"}).load()
    lists = [call for call in service.calls()[before:] if call.startswith("/v1/")]
    assert [call.partition("?")[0] for call in lists].count("/v1/nodes") == 2
    assert [call.partition("?")[0] for call in lists].count("/v1/ports") == 3
    # And one for the versions.
    assert len(service.calls()) - before == 6
    assert (len(fabric.hosts), len(fabric.leaves)) == (1000, 40)
    assert fabric.levels == ("leaf", "pod", "core")
    assert [switch.name for switch in fabric.switches if switch.level == 2] == [
        "POD_1",
        "POD_2",
        "POD_3",
        "POD_4",
    ]
    assert not fabric.incomplete
    # Nova's nodename is the UUID, and all nodes have one service host.
    names = HostNames(fabric)
    for number, node in enumerate(METAL.nodes):
        host = names.find("ironic-compute", node["uuid"])
        assert host == node["name"]
        leaf = number // 25 + 1
        assert fabric.ancestors(host)[0] == f"leaf{leaf:02}a,leaf{leaf:02}b"
    assert fabric.hops("node0001", "node0025") == 1
    assert fabric.hops("node0001", "node0250") == 3
    assert fabric.hops("node0001", "node0251") == 5
    [known] = switch_names.known_as(fabric, METAL.ports[0]["local_link_connection"]["switch_id"])
    assert known == "leaf01a,leaf01b"


def test_what_was_read_before_has_the_same_mark(service: Service):
    driver = IronicDriver(cloud=CLOUD)
    assert driver.mark(driver.read()) == driver.mark(driver.read())


@pytest.mark.parametrize(("kind", "keys"), [("nodes", NODE_KEYS), ("ports", PORT_KEYS)])
def test_the_recorded_keys_are_those_of_the_installed_ironic(
    service: Service, kind: str, keys: frozenset[str]
):
    request = urllib.request.Request(
        f"{service.url}/v1/{kind}/detail?limit=1",
        headers={"X-OpenStack-Ironic-API-Version": api.VERSION},
    )
    with urllib.request.urlopen(request) as answer:
        page: dict[str, Any] = json.load(answer)
    assert page[kind][0].keys() == keys
    assert page["next"]


def test_a_saved_page_is_known_to_be_incomplete(service: Service, tmp_path: Path):
    path = tmp_path / "ironic.json"
    pages = []
    for kind in ("nodes", "ports"):
        request = urllib.request.Request(
            f"{service.url}/v1/{kind}/detail",
            headers={"X-OpenStack-Ironic-API-Version": api.VERSION},
        )
        with urllib.request.urlopen(request) as answer:
            pages.append(answer.read())
    path.write_bytes(b"\n".join(pages))
    fabric = IronicDriver(path=path).load()
    assert len(fabric.incomplete) == 2
    assert fabric.incomplete[1].startswith(f"{path}: the list of ports goes on (http://127.0.0.1")


def test_a_service_that_does_not_answer_is_named(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(api, "VERSION", "9.99")
    with pytest.raises(TopologyError, match="bare-metal service of cloud 'metal'"):
        IronicDriver(cloud=CLOUD).load()


def test_a_cloud_that_clouds_yaml_does_not_have_is_named(service: Service):
    with pytest.raises(TopologyError, match=r"bare-metal service of cloud 'other': .*other"):
        IronicDriver(cloud="other").load()
