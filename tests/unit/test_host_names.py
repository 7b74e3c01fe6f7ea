"""Topology hosts of hypervisors."""

from typing import Any

import pytest
from hypothesis import given

from hpc_sched.topology import Topology
from hpc_sched.topology.host_names import HostNames, short_name
from tests.unit import fabrics

UUID = "7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a77"


def names_of(*hosts: str) -> HostNames:
    """Return the finder of one leaf.

    ::

            sw1
           hosts
    """
    return HostNames(Topology.from_tree({"sw1": list(hosts)}))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        pytest.param("cn1", "cn1", id="a name without a domain is short already"),
        pytest.param("cn1.example.org", "cn1", id="a name up to its first dot"),
        pytest.param("10.0.0.1", None, id="an address has no short name"),
        pytest.param("0123", None, id="a number is no name"),
        pytest.param(".example.org", None, id="a domain alone has no short name"),
        pytest.param("", None, id="an empty name has none"),
    ],
)
def test_short_names(name: str, short: str | None):
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("known", "host", "nodename", "found"),
    [
        pytest.param(["cn1", "cn2"], "cn1", "cn2", "cn2", id="the nodename comes first"),
        pytest.param(["cn1"], "cn1", UUID, "cn1", id="then the host"),
        pytest.param([UUID, "ironic1"], "ironic1", UUID, UUID, id="a node of bare metal"),
        pytest.param(["cn1"], "cn1", None, "cn1", id="a host without a nodename"),
        pytest.param(["cn1"], "cn1", "", "cn1", id="a host with an empty nodename"),
        pytest.param(
            ["cn1"], "x", "cn1.example.org", "cn1", id="a nodename with a domain, a file without"
        ),
        pytest.param(
            ["cn1.example.org"], "cn1", "cn1", "cn1.example.org", id="a file with a domain"
        ),
        pytest.param(
            ["cn1.a.org", "cn2.a.org"], "cn2", "cn1", "cn1.a.org", id="short nodename before host"
        ),
        pytest.param(
            ["cn1.a.org", "cn2"], "cn2", "cn1", "cn2", id="a whole host before a short nodename"
        ),
        pytest.param(["cn1"], "cn2", "cn2.example.org", None, id="a stranger"),
        pytest.param(
            ["cn1.a.org", "cn1.b.org"], "cn1", "cn1", None, id="a short name that two hosts have"
        ),
        pytest.param(
            ["cn1.a.org", "cn1.b.org"], "x", "cn1.b.org", "cn1.b.org", id="whole, though ambiguous"
        ),
        pytest.param(
            ["cn1", "cn1.b.org"], "x", "cn1.c.org", None, id="short of one and name of another"
        ),
        pytest.param(["10.0.0.1"], "10.0.0.2", "10.0.0.2", None, id="addresses of one network"),
        pytest.param(["10.0.0.1"], "x", "10.0.0.1", "10.0.0.1", id="an address as a whole"),
        pytest.param(["CN1"], "cn1", "cn1", None, id="capital letters count"),
    ],
)
def test_a_hypervisor_is_found_by_nodename_then_host_then_an_unambiguous_short_name(
    known: list[str], host: str, nodename: str | None, found: str | None
):
    assert names_of(*known).find(host, nodename) == found


def test_a_switch_is_no_host():
    assert names_of("cn1").find("sw1", "sw1") is None


@given(fabrics.trees())
def test_every_host_of_a_fabric_is_found_by_its_own_name_and_with_a_domain(tree: dict[str, Any]):
    fabric = Topology.from_tree(tree)
    names = HostNames(fabric)
    for host in fabric.hosts:
        assert names.find(host) == names.find("x", host) == host
        assert names.find(f"{host}.example.org") == host
        assert names.find(f"no-{host}", f"no-{host}") is None
