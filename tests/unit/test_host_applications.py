"""What the VMs of many hosts run gives each host the room that it has by itself."""

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.sharing.cache_interference import Application, Limits, dedicated_room, room
from hpc_sched.core.sharing.host_applications import (
    NO_APPLICATIONS,
    HostApplications,
    dedicated_rooms,
    rooms,
)

applications = st.builds(
    Application,
    st.sampled_from(["extreme", "sync", "async", "none"]),
    st.sampled_from([None, "LU", "EP", "none"]),
    st.sampled_from([0.0, 7.5, 30.0]),
    st.sampled_from([None, "one", "two"]),
)
hosts = st.lists(st.lists(applications, max_size=4), max_size=12)
LIMITS = (Limits(100.0, 60.0), Limits(40.0, 10.0))


@given(applications, hosts, st.lists(st.sampled_from([0, 1]), min_size=12, max_size=12))
def test_rooms_of_many_hosts_are_those_of_each(new, each, chosen):
    made = [HostApplications.of(vms) for vms in each]
    limits = [LIMITS[number] for number in chosen[: len(each)]]
    apart = frozenset({"LU"})
    expected = [room(new, vms, limit, apart) for vms, limit in zip(each, limits, strict=True)]
    assert rooms(new, made, limits, apart) == expected
    assert dedicated_rooms(new, made) == [dedicated_room(new, vms) for vms in each]


def test_hosts_whose_vms_are_alike_have_one_profile_in_any_order():
    sync, plain = Application("sync", "LU", 16.0, "one"), Application("none")
    one, other = HostApplications.of([sync, plain]), HostApplications.of([plain, sync])
    assert one.profile == other.profile
    assert one.profile != HostApplications.of([sync]).profile
    assert HostApplications.of([]) == NO_APPLICATIONS


def test_a_name_that_looks_like_several_applications_is_one():
    """Names come from flavors and hints."""
    odd = Application("none", "a'\nnone 0.0 'b")
    two = [Application("none", "a"), Application("none", "b")]
    assert HostApplications.of([odd]).profile != HostApplications.of(two).profile
