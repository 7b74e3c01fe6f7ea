"""Single VMs and class ``none`` by MDOBPWeigher, with real HostStates and without a cloud."""

import threading
from pathlib import Path

import nova.conf
import pytest
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.weighers.mdobp import MDOBPWeigher
from tests.functional.states import host_state, hosts_have, place, spec, weigh

CONF = nova.conf.CONF

HOSTS = [f"n{number:02}" for number in range(12)]


@pytest.fixture(autouse=True)
def packed(two_pods: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have MDOBP place all classes; no filter of hpc_sched is enabled."""
    weigher = "hpc_sched.weighers.mdobp.MDOBPWeigher"
    CONF.set_override("weight_classes", [weigher], "filter_scheduler")
    CONF.set_override("mdobp_classes", ["sync", "async", "none"], "hpc_sched")
    hosts_have(monkeypatch, {})


def test_a_host_with_bad_company_attracts_no_vm_where_no_filter_removes_it(monkeypatch, tmp_path):
    path = tmp_path / "index.csv"
    path.write_text("LU.C, ChaNGa, 2.2, 1.0\nLU.C, IS.B, 0.6, 0.9\n")
    CONF.set_override("interference_file", str(path), "hpc_sched")
    changa, bad = (Application("none", name, 0.0, name) for name in ("ChaNGa", "IS.B"))
    hosts_have(monkeypatch, {"n03": [changa, bad], "n07": [changa]})
    request = spec(group=None, vcpus=4, extra_specs={"hpc:app_name": "LU.C"})
    order = weigh(MDOBPWeigher(), [host_state(name) for name in HOSTS], request)
    # n03 is in its place by name, among the hosts that attract nothing.
    assert order[:5] == ["n07", "n00", "n01", "n02", "n03"]


def test_requests_of_many_threads_by_one_weigher_do_not_meet():
    weigher, placed = MDOBPWeigher(), {}

    def serve(number: int) -> None:
        states = [host_state(name) for name in HOSTS]
        request = spec(group=None, count=8, vcpus=4, uuid=getattr(uuids, f"request{number}"))
        found = []
        for vm in range(8):
            request.instance_uuid = getattr(uuids, f"request{number}-{vm}")
            found.append(place(states, weigh(weigher, states, request), request))
        placed[number] = found

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(placed) == 8
    assert len({tuple(hosts) for hosts in placed.values()}) == 1
