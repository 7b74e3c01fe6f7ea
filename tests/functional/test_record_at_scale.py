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
from pathlib import Path

import nova.conf
import pytest

from hpc_sched.core.logged.decision_summary import LoggedPlan
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.phases import ServedGroup
from hpc_sched.nova_glue.record import decision_record, logged_entry, logged_input
from tests.counted_calls import calls_of
from tests.functional.states import (
    configured,
    databases_say,
    host_state,
    queue_of,
    served,
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


def written(state: ServedGroup, answer: Plan | Rejection, made: LoggedPlan) -> tuple[int, int]:
    """Write a record; return the number of calls and its length."""
    texts: list[str] = []

    def write() -> None:
        entry = logged_entry.of_decision(
            state.group, state.group.request(), answer, made, None, None
        )
        texts.append(json.dumps(entry.as_json(), separators=(",", ":")))

    return calls_of(write), len(texts[0])


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
        state = served(request, states)
        answer = state.group.answer(state.group.request())
        made = decision_record._logged(state.group, answer)
        assert isinstance(made, LoggedPlan)
        calls, length = written(state, answer, made)
        with monkeypatch.context() as patch:
            patch.setattr(logged_input, "of", lambda *_: None)
            calls_without, length_without = written(state, answer, made)
        more = length - length_without
        print(f"{length_without} bytes and {more} more; {calls_without} calls, with them {calls}")
        assert 5_000 < more < most_bytes
        # The decision itself makes some hundred thousands.
        assert calls - calls_without < 70_000
