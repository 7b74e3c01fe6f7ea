"""Rules for sharing that the VMs on a host break."""

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.sharing.cache_interference import Application, Limits, dedicated_room, room
from hpc_sched.core.sharing.violations import CACHE_SCORES, DEDICATION, violations

LIMITS = Limits(alpha=100.0, beta=60.0)

APPLICATIONS = st.builds(
    Application,
    st.sampled_from(["extreme", "sync", "async", "none"]),
    st.none(),
    st.sampled_from([0.0, 20.0, 50.0]),
    st.sampled_from(["g", "h", None]),
)


@given(st.lists(APPLICATIONS, max_size=5))
def test_a_host_breaks_a_rule_if_one_of_its_vms_could_not_join_the_others(there):
    vms = {f"vm{i}": one for i, one in enumerate(there)}
    found = {one.rule for one in violations(vms, LIMITS)}
    others = [(one, there[:i] + there[i + 1 :]) for i, one in enumerate(there)]
    assert (DEDICATION in found) == any(not dedicated_room(*pair) for pair in others)
    assert (CACHE_SCORES in found) == any(not room(*pair, LIMITS) for pair in others)


def test_the_order_of_the_vms_changes_nothing():
    one, two = Application("extreme", group="g"), Application("none")
    found = violations({"b": two, "a": one}, LIMITS)
    assert found == violations({"a": one, "b": two}, LIMITS)
    assert [violation.vms for violation in found] == [("a", "b")]


def test_a_dedicated_host_has_no_limit_of_scores():
    loud = Application("extreme", score=90.0, group="g")
    assert violations({"a": loud, "b": loud}, LIMITS) == []
