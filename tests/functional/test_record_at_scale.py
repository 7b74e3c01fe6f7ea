"""A decision among ten thousand hosts: how long its record is, and what writing it takes.

::

                            core
             /               |            \\
          pod00             ...          pod19
       /    |    \\                    /    |    \\
    leaf000 .. leaf024            leaf475 .. leaf499      20 hosts each
"""

import json
import random
import statistics
import time
from pathlib import Path

import nova.conf
import pytest

from hpc_sched.core.decision_entry import LoggedPlan
from hpc_sched.nova_glue.record import decision_record, logged_input
from hpc_sched.nova_glue.request import served_requests
from hpc_sched.nova_glue.request.group_state import GroupState
from tests.functional.states import (
    configured,
    databases_say,
    host_state,
    queue_of,
    spec,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

TREE = {
    "core": {
        f"pod{pod:02}": {
            f"leaf{leaf:03}": [f"l{leaf:03}n{number:02}" for number in range(1, 21)]
            for leaf in range(pod * 25, pod * 25 + 25)
        }
        for pod in range(20)
    }
}
PAIRS = 15


def written(state: GroupState, made: LoggedPlan) -> tuple[float, int]:
    """Write a record; return the CPU time and its length."""
    began = time.process_time()
    entry = decision_record._entry(state, state.group_request(), made, None)
    text = json.dumps(entry.as_json(), separators=(",", ":"))
    return time.process_time() - began, len(text)


@pytest.mark.parametrize(
    ("vcpus", "most_bytes"),
    [
        pytest.param(16, 12_000, id="one VM a host"),
        pytest.param(1, 35_000, id="0 to 16 VMs a host"),
    ],
)
def test_the_planners_input_adds_little_to_a_record(monkeypatch, tmp_path: Path, vcpus, most_bytes):
    dice = random.Random(1)
    with configured(write_tree(tmp_path / "topology.yaml", TREE)):
        used = [0, 0, 0, 16] if vcpus == 16 else range(17)
        states = [
            host_state(host, vcpus_used=dice.choice(used))
            for pod in TREE["core"].values()
            for leaf in pod.values()
            for host in leaf
        ]
        dice.shuffle(states)
        databases_say(monkeypatch, queue=queue_of(64), left=64)
        wishes = wishing(app_class="sync", require="pod")
        request = spec(count=64, vcpus=vcpus, group_policy="anti-affinity", extra_specs=wishes)
        state = served_requests.get_state(request, states)
        assert state is not None
        made = decision_record._logged(state, state.decide(state.group_request()))
        assert isinstance(made, LoggedPlan)
        whole, without = [], []
        for _ in range(PAIRS):
            whole.append(written(state, made))
            with monkeypatch.context() as patch:
                patch.setattr(logged_input, "of", lambda *_: None)
                without.append(written(state, made))
        more = whole[0][1] - without[0][1]
        seconds = [statistics.median(found for found, _ in one) for one in (without, whole)]
        print(
            f"{without[0][1]} bytes and {more} more; CPU time {1000 * seconds[0]:.1f} ms, with "
            f"them {1000 * seconds[1]:.1f} ms"
        )
        assert 5_000 < more < most_bytes
        # The decision itself takes some 400 ms.
        assert seconds[1] - seconds[0] < 0.1
