"""Scheduler, ``hpc-sched fits`` and simulator choose one processor type for the same cloud.

``gold`` and ``silver`` are stated by host aggregates. By default the type with most cores a host
comes first; with ``processor_speeds`` the fastest.
"""

import json

import nova.conf
import numpy as np
import pytest
from msgspec.structs import replace
from nova import objects

from hpc_sched.sim.cluster.cluster import ProcessorTypes
from hpc_sched.sim.cluster.snapshot_cluster import cluster_of
from hpc_sched.snapshot import group_fit, nova_options, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Aggregate, Flavor, Hypervisor, Snapshot
from tests.functional.pods import FABRIC
from tests.functional.states import host_state, preferred, spec

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


def snapshot(vcpus: dict[str, float], types: dict[str, str], disabled: str = "") -> Snapshot:
    """Return a cloud of hosts with some VCPU each, ratio included."""
    return Snapshot(
        taken="2026-01-31T12:00:00+00:00",
        hypervisors=tuple(
            Hypervisor(
                host,
                host,
                enabled=host != disabled,
                up=True,
                capacity={"VCPU": number, "MEMORY_MB": 65536, "DISK_GB": 1000},
                used={},
            )
            for host, number in vcpus.items()
        ),
        servers=(),
        groups=(),
        flavors=(),
        aggregates=tuple(
            Aggregate(host, (host,), {"hpc:processor": name}) for host, name in types.items()
        ),
        filters=("HPCHomogeneityFilter", "HPCGroupFilter"),
    )


def chosen_by_fits(cloud: Snapshot) -> str | None:
    query = request_builder.GroupQuery(Flavor("f", 1, 1024, 1), count=2, policy="soft-affinity")
    return group_fit.fit(request_builder.of(Cloud.of(cloud, FABRIC), query)).processor


def of_type(name: str) -> list[objects.Aggregate]:
    return [objects.Aggregate(name=name, metadata={"hpc:processor": name})]


def test_the_cores_of_a_disabled_host_do_not_count(group):
    group(left=2)
    gold = host_state("n02", vcpus_total=8, aggregates=of_type("gold"))
    silver = host_state("n05", vcpus_total=16, aggregates=of_type("silver"))
    request = spec(count=2, vcpus=1, group_policy="soft-affinity")
    assert preferred([gold, silver], request) == {"n05"}
    types = {"n01": "gold", "n02": "gold", "n05": "silver"}
    assert chosen_by_fits(snapshot({"n01": 32, "n02": 8, "n05": 16}, types, "n01")) == "silver"


def chosen_by_simulator(cloud: Snapshot) -> str:
    cluster, _ = cluster_of(Cloud.of(cloud, FABRIC))
    types = ProcessorTypes.of(cluster, nova_options.ranking(cloud))
    assert types is not None
    best, *_ = types.with_room(np.ones(len(FABRIC.hosts), dtype=np.int64)).best_first()
    return best


@pytest.mark.parametrize(
    ("speeds", "host", "name"),
    [
        ({}, "n05", "Intel wide 2x20x1"),
        ({"Intel narrow 2x16x1": 3000, "Intel wide 2x20x1": 2130}, "n01", "Intel narrow 2x16x1"),
        ({"Intel narrow 2x16x1 +avx512f": 3000}, "n01", "Intel narrow 2x16x1"),
        ({"Intel narrow 2x16x1 +amx": 3000}, "n05", "Intel wide 2x20x1"),
    ],
    ids=["by cores", "by speed", "by a feature of all its hosts", "a feature that it lacks"],
)
def test_all_three_take_the_fastest_type(group, speeds, host, name):
    group(left=2)
    CONF.set_override("processor_speeds", speeds, "hpc_sched")
    found = {
        there: {
            "vendor": "Intel",
            "model": model,
            "topology": {"sockets": 2, "cores": cores, "threads": 1, "cells": 1},
            "features": ["sse4", "avx512f"],
        }
        for there, model, cores in (("n01", "narrow", 16), ("n05", "wide", 20))
    }
    states = [
        host_state(host, vcpus_total=vcpus, cpu_info=json.dumps(found[host]))
        for host, vcpus in (("n01", 32), ("n05", 40))
    ]
    request = spec(count=2, vcpus=1, group_policy="soft-affinity")
    assert preferred(states, request) == {host}
    cloud = snapshot({"n01": 32, "n05": 40}, {})
    nodes = [replace(node, cpu_info=found[node.host]) for node in cloud.hypervisors]
    cloud = replace(cloud, hypervisors=tuple(nodes), options={"processor_speeds": speeds})
    assert chosen_by_fits(cloud) == chosen_by_simulator(cloud) == name


def test_the_simulator_counts_cores_and_no_threads(group):
    group(left=2)
    threads = {"sockets": 2, "cores": 16, "threads": 2, "cells": 1}
    cores = {"sockets": 2, "cores": 20, "threads": 1, "cells": 1}
    found = {
        "n01": {"vendor": "Intel", "model": "SMT", "topology": threads, "features": []},
        "n05": {"vendor": "Intel", "model": "plain", "topology": cores, "features": []},
    }
    states = [
        host_state("n01", vcpus_total=64, cpu_info=json.dumps(found["n01"])),
        host_state("n05", vcpus_total=40, cpu_info=json.dumps(found["n05"])),
    ]
    request = spec(count=2, vcpus=1, group_policy="soft-affinity")
    assert preferred(states, request) == {"n05"}
    reported = snapshot({"n01": 64, "n05": 40}, {})
    nodes = [replace(node, cpu_info=found[node.host]) for node in reported.hypervisors]
    cloud = replace(reported, hypervisors=tuple(nodes))
    assert chosen_by_simulator(cloud) == "Intel plain 2x20x1"
