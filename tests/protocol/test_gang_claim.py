"""The claims of a request, call by call, on a Placement in memory."""

import logging
from collections.abc import Iterator
from typing import Any

import nova.conf
import pytest

from hpc_sched import conf
from hpc_sched.nova_glue.claim.transaction import gang_claim, repair
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.io.allocations import Answer, Owner
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from tests.protocol.direct import DirectAdapter, connected
from tests.protocol.placement_model import PlacementModel, Provider

pytestmark = pytest.mark.usefixtures("turned_clock")

HOSTS = ("x", "y", "z")


def on(*providers: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return allocations of one VCPU of each provider."""
    return {provider: {"resources": {"VCPU": 1}} for provider in providers}


def place(*providers: str) -> ClaimedPlace:
    return ClaimedPlace(0, {"allocations": on(*providers)})


def never(_uuid: str) -> bool:
    return False


class Cloud:
    """A Placement, and what Nova and others do there."""

    def __init__(self, adapter: DirectAdapter) -> None:
        self.adapter, self.placement = adapter, adapter.placement

    def put(self, uuid: str, allocations: Any) -> None:
        """Replace what a consumer has, whatever its generation."""
        record = self.placement.consumers.get(uuid)
        answer = self.placement.send(
            "PUT",
            f"/allocations/{uuid}",
            {
                "allocations": allocations,
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None if record is None else record.generation,
            },
        )
        assert answer, answer

    def nova_claims(self, uuid: str, *providers: str) -> None:
        """Add to what a consumer has, as Nova's claim does."""
        before = self.placement.held(uuid).body["allocations"]
        held = {name: {"resources": found["resources"]} for name, found in before.items()}
        self.put(uuid, on(*providers) | held)

    def late(self, number: int) -> int:
        """Make a POST once more; return the status."""
        body = self.adapter.bodies[number]
        version = "1.38" if all("consumer_type" in one for one in body.values()) else "1.36"
        return self.placement.send("POST", "/allocations", body, version).status_code

    @property
    def held(self) -> dict[str, list[str]]:
        return {
            uuid: sorted({provider for provider, _ in rows})
            for uuid, rows in self.placement.allocations.items()
        }


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    conf.register_opts(nova.conf.CONF)
    placement = PlacementModel({name: Provider(name, {"VCPU": 100}) for name in HOSTS})
    for name in ("gpu0", "gpu1", "foreign"):
        placement.providers[name] = Provider(name, {"VCPU": 100})
    with connected(placement) as adapter:
        yield Cloud(adapter)


@pytest.fixture
def gang() -> GangClaim:
    return GangClaim(Owner("project", "user"))


def test_what_nova_has_found_is_not_removed_though_that_was_not_seen(cloud, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.nova_claims("a", "x")
    gang.clean(never)
    assert cloud.held == {"a": ["x"]}
    assert gang.is_clean


@pytest.mark.parametrize("fate", ["lost", "made"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_claim_whose_answer_is_lost_is_held_and_never_made_again(cloud, gang, fate, is_first):
    if not is_first:
        gang.claim({"a": place("x"), "b": place("y")})
    lost = cloud.adapter.count("POST")
    cloud.adapter.fates = [fate]
    assert gang.claim({"a": place("x"), "b": place("z")}).answer is Answer.DONE
    assert cloud.held == {"a": ["x"], "b": ["z"]}
    assert cloud.late(lost) == 409
    gang.release()
    assert cloud.held == {}


@pytest.mark.parametrize("fate", ["lost", "made"])
def test_a_claim_whose_answer_is_lost_is_looked_for_after_the_request_too(cloud, gang, fate):
    """That it is found made proves nothing: the network may have carried it twice."""
    cloud.adapter.fates = [fate]
    gang.claim({"a": place("x")})
    gang.release()
    assert not gang.is_clean
    assert cloud.late(0) == 204
    assert cloud.held == {"a": ["x"]}
    gang.clean(never)
    assert cloud.held == {}


def test_a_claim_that_differs_from_the_held_one_on_one_instance_is_not_taken_for_it(cloud, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates = ["lost"] * 99
    written = gang.claim({"a": place("x"), "b": place("z")})
    assert written.answer is Answer.UNKNOWN
    assert gang.places["b"].allocations == on("y")
    cloud.adapter.fates = []
    for uuid, host in (("a", "x"), ("b", "z")):
        cloud.nova_claims(uuid, host)
        gang.note_placed(uuid, on(host))
    assert cloud.held == {"a": ["x"], "b": ["z"]}


def test_other_amounts_of_the_same_providers_are_another_place(cloud, gang):
    larger = ClaimedPlace(0, {"allocations": {"x": {"resources": {"VCPU": 2}}}})
    gang.claim({"a": place("x")})
    assert gang.ledger.holds({"a": place("x")})
    assert not gang.ledger.holds({"a": larger})
    # The answer to a larger claim is lost, and others have replaced the allocations since.
    cloud.adapter.fates = ["lost"]
    cloud.put("a", on("x"))
    assert gang.claim({"a": larger}).answer is not Answer.DONE
    assert not gang.places


def test_each_consumer_is_sent_with_its_own_generation(cloud, gang):
    gang.claim({"a": place("x")})
    gang.claim({"a": place("x"), "b": place("y")})
    assert gang.claim({"a": place("z"), "b": place("z")}).answer is Answer.DONE
    assert gang.transactions == 3
    assert cloud.held == {"a": ["z"], "b": ["z"]}


def test_instances_that_others_have_claimed_are_not_claimed_again_and_again(cloud, gang):
    cloud.nova_claims("a", "y")
    assert gang.claim({"a": place("x"), "b": place("x")}).answer is Answer.CONSUMER_CHANGED
    assert gang.transactions == 1


def test_a_fence_finds_what_a_late_claim_has_made_for_other_instances(cloud, gang):
    cloud.adapter.fates = ["lost"] * 99
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates = []
    assert cloud.late(0) == 204
    gang.fence()
    assert gang.places.keys() == {"a", "b"}


def test_a_fence_without_room_for_one_instance_is_another_one(cloud, gang):
    cloud.adapter.fates = ["lost"] * 99
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates = []
    cloud.put("other", {"x": {"resources": {"VCPU": 100}}})
    gang.fence()
    assert cloud.held == {"other": ["x"], "b": ["y"]}


def test_what_nova_has_claimed_needs_no_fence(cloud, gang):
    cloud.adapter.fates = ["lost"] * 99
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates = []
    cloud.nova_claims("a", "x")
    gang.note_placed("a", on("x"))
    before = gang.transactions
    gang.fence()
    assert gang.transactions == before
    assert cloud.late(0) == 409


def test_an_instance_that_nova_has_placed_elsewhere_is_not_where_it_was_claimed(cloud, gang):
    gang.claim({"a": place("x"), "b": place("x")})
    for uuid, host in (("a", "y"), ("b", "x")):
        cloud.nova_claims(uuid, host)
        gang.note_placed(uuid, on(host))
    assert gang.place_of("a") is None
    assert gang.place_of("b") == place("x")
    assert cloud.held == {"a": ["y"], "b": ["x"]}


def test_a_release_without_an_answer_is_not_a_claim_of_the_same_places(cloud, gang):
    gang.claim({"a": place("x")})
    cloud.adapter.fates = ["lost"]
    gang.release()
    assert gang.claim({"a": place("x")}).answer is Answer.DONE
    assert cloud.held == {"a": ["x"]}


def test_a_claim_without_an_answer_is_not_a_release_of_the_same_places(cloud, gang):
    gang.claim({"a": place("x")})
    cloud.adapter.fates = ["lost"] * 99
    gang.claim({"a": place("x")})
    cloud.adapter.fates = []
    gang.release()
    assert cloud.held == {}


def test_a_late_claim_of_a_vm_that_nova_places_elsewhere_is_repaired_later_too(cloud, gang):
    cloud.adapter.fates = ["lost"] * 99
    gang.claim({"a": place("x")})
    cloud.adapter.fates = []
    assert cloud.late(0) == 204
    cloud.nova_claims("a", "y")
    cloud.adapter.unanswered = 1
    gang.note_placed("a", on("y"))
    gang.clean(never)
    assert cloud.held == {"a": ["y"]}


def test_a_fence_keeps_what_is_held(cloud, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates = ["lost"] * 99
    gang.claim({"a": place("z"), "b": place("z")})
    lost = cloud.adapter.count("POST") - 1
    cloud.adapter.fates = []
    gang.fence()
    assert cloud.held == {"a": ["x"], "b": ["y"]}
    assert cloud.late(lost) == 409


def made_after_nova_has_claimed(cloud: Cloud, gang: GangClaim) -> None:
    """Have a claim made late: Nova has claimed the instance, and that claim is gone again."""
    cloud.adapter.fates = ["lost"]
    gang.claim({"a": place("x")})
    cloud.nova_claims("a", "x")
    gang.note_placed("a", on("x"))
    cloud.put("a", {})
    assert cloud.late(0) == 204


def test_a_late_claim_of_a_vm_of_which_nothing_is_known_is_not_forgotten(cloud, gang):
    made_after_nova_has_claimed(cloud, gang)
    assert gang.clean(lambda _: None, is_last=True) == ["a"]
    gang.clean(lambda _: True, is_last=True)
    assert cloud.held == {}


def test_the_last_look_finds_usage_without_a_consumer_beside_others_claims(cloud, gang):
    cloud.adapter.fates, cloud.adapter.unanswered = ["made", *["lost"] * 99], 99
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates, cloud.adapter.unanswered = [], 0
    del cloud.placement.consumers["b"]
    cloud.nova_claims("a", "z")
    gang.clean(never)
    assert cloud.placement.unlisted == ["b"]
    gang.clean(never, is_last=True)
    assert cloud.placement.unlisted == []


@pytest.mark.parametrize("fates", [["conflict"], ["lost"], ["conflict"] * repair.CHANGES])
def test_a_repair_that_is_not_made_is_made_again(cloud, gang, fates):
    gang.claim({"a": place("x")})
    cloud.nova_claims("a", "y")
    cloud.adapter.fates = list(fates)
    gang.note_placed("a", on("y"))
    gang.clean(never)
    assert cloud.held == {"a": ["y"]}


def test_a_conflict_of_providers_is_sent_again(cloud, gang):
    cloud.adapter.fates = ["conflict"] * 3
    assert gang.claim({"a": place("x")}).answer is Answer.DONE
    assert gang.transactions == 4


def test_unknown_answers_and_conflicts_are_not_sent_again_without_an_end(cloud, gang):
    cloud.adapter.fates = ["conflict"] * 99
    assert gang.claim({"a": place("x")}).answer is Answer.CONFLICT
    assert gang.transactions == gang_claim.CONFLICT_RETRIES + 1
    cloud.adapter.fates = ["lost"] * 99
    gang.transactions = 0
    assert gang.claim({"a": place("x")}).answer is Answer.UNKNOWN
    assert gang.transactions <= gang_claim.UNKNOWN_RETRIES + 1


def test_no_consumer_is_ever_sent_generation_0(cloud, gang, turned_clock):
    """Another transaction has made the record of a consumer and is about to write it."""
    inside = cloud.placement.begin("POST", "/allocations", body_of("a", "x"))
    while next(inside) != "write":
        pass
    ended = turned_clock.started(gang.claim, {"a": place("y")})
    turned_clock.sleep(1)
    assert not ended.done()
    assert all(body["a"]["consumer_generation"] is None for body in cloud.adapter.bodies)
    with pytest.raises(StopIteration):
        next(inside)
    [written] = turned_clock.results([ended])
    # The other one's, as far as is known here.
    assert written.answer is Answer.CONSUMER_CHANGED
    assert cloud.held == {"a": ["x"]}


def body_of(uuid: str, provider: str) -> dict[str, Any]:
    owner = {"project_id": "project", "user_id": "user"}
    return {uuid: {"allocations": on(provider), **owner, "consumer_generation": None}}


def test_a_fence_is_one_instance_that_has_room(cloud, gang):
    """The claim is unknown, then there is no room for all of it; Nova may place less."""
    cloud.placement.providers["x"].totals["VCPU"] = 1
    cloud.adapter.fates = ["lost"]
    assert gang.claim({"a": place("x"), "b": place("x")}).answer is Answer.NO_ROOM
    gang.fence()
    assert cloud.held == {"a": ["x"]}
    cloud.placement.providers["x"].totals["VCPU"] = 9
    assert cloud.late(0) == 409
    calls = len(cloud.adapter.calls)
    gang.fence()
    assert len(cloud.adapter.calls) == calls


def test_a_fence_ends_with_the_first_call_that_is_not_answered(cloud, gang):
    cloud.adapter.fates = ["lost"] * 999
    gang.claim({f"vm{n}": place("x") for n in range(64)})
    calls = cloud.adapter.count("POST")
    gang.fence()
    assert cloud.adapter.count("POST") <= calls + gang_claim.UNKNOWN_RETRIES + 1


@pytest.mark.parametrize("fates", [["lost"], ["made"], ["conflict"] * 9], ids=str)
@pytest.mark.parametrize("host", ["x", "y"])
def test_a_release_that_failed_takes_nothing_of_what_nova_claims_afterwards(
    cloud, gang, fates, host
):
    gang.claim({"a": place("x")})
    cloud.adapter.fates = list(fates)
    gang.release()
    cloud.adapter.fates = []
    cloud.nova_claims("a", host)
    gang.note_placed("a", on(host))
    gang.clean(never)
    assert cloud.held == {"a": [host]}
    assert gang.is_clean


def test_a_claim_after_a_release_without_an_answer_keeps_that_from_being_made(cloud, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates = ["lost"]
    gang.release()
    assert gang.claim({"a": place("x"), "b": place("z")}).answer is Answer.DONE
    assert cloud.late(1) == 409
    assert cloud.held == {"a": ["x"], "b": ["z"]}


def test_a_transaction_that_is_made_after_nova_has_released_its_claims_is_removed(cloud, gang):
    """NoValidHost at the third VM: Placement has forgotten the consumers of the others."""
    cloud.adapter.fates = ["lost"] * 99
    hosts = dict(zip("abc", HOSTS, strict=True))
    assert gang.claim({uuid: place(host) for uuid, host in hosts.items()}).answer is Answer.UNKNOWN
    for uuid in "ab":
        cloud.nova_claims(uuid, hosts[uuid])
        gang.note_placed(uuid, on(hosts[uuid]))
    assert cloud.late(0) == 409
    for uuid in "ab":
        cloud.put(uuid, {})
    gang.forget_placed()
    assert cloud.late(0) == 204
    cloud.adapter.fates = []
    gang.clean(never)
    assert cloud.held == {}


@pytest.mark.parametrize("is_deleted", [True, False])
def test_what_a_late_claim_gives_to_an_instance_that_nova_had_placed_goes_only_if_that_is_deleted(
    cloud, gang, is_deleted
):
    """The one VM of a request is deleted before its late claim comes; or it was unshelved."""
    made_after_nova_has_claimed(cloud, gang)
    gang.clean(lambda _uuid: is_deleted)
    assert cloud.held == ({} if is_deleted else {"a": ["x"]})


def test_usage_without_a_consumer_gets_one_again_and_is_removed(cloud, gang):
    """Two claims begin at once, and the one that fails removes the record of a consumer."""
    cloud.adapter.fates = ["made", *["lost"] * 99]
    cloud.adapter.unanswered = 99
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.adapter.fates, cloud.adapter.unanswered = [], 0
    del cloud.placement.consumers["b"]
    assert cloud.placement.unlisted == ["b"]
    gang.clean(never)
    assert cloud.held == {}
    assert cloud.placement.unlisted == []


@pytest.mark.parametrize("has_room", [True, False])
def test_usage_without_a_consumer_is_looked_for_at_the_last(cloud, gang, has_room):
    cloud.adapter.fates = ["lost"]
    cloud.placement.providers["x"].totals["VCPU"] = 2
    gang.claim({"a": place("x"), "b": place("x")})
    gang.release()
    if not has_room:
        for uuid in "cd":
            cloud.nova_claims(uuid, "x")
    gang.clean(never)
    assert not gang.is_clean
    assert gang.clean(never, is_last=True) == []
    assert cloud.held == ({} if has_room else {"c": ["x"], "d": ["x"]})


def test_what_could_not_be_looked_at_is_unsettled(cloud, gang):
    cloud.adapter.fates = ["lost"]
    gang.claim({"b": place("x"), "a": place("x")})
    gang.release()
    cloud.adapter.unanswered = 1
    assert gang.clean(never) == ["a", "b"]
    assert gang.clean(never) == []


def test_a_placement_that_does_not_answer_is_asked_once_for_all_instances(cloud, gang):
    gang.claim({f"vm{n}": place("x") for n in range(64)})
    cloud.adapter.fates, cloud.adapter.unanswered = ["conflict"], 1
    gang.release()
    assert cloud.adapter.count("GET") == 1
    assert len(gang.places) == 64
    cloud.adapter.fates, cloud.adapter.unanswered = ["conflict"], 1
    gang.clean(never)
    assert cloud.adapter.count("GET") == 2
    gang.clean(never)
    assert cloud.held == {}


def test_the_claim_of_64_instances_is_one_call_and_two_more_if_its_answer_is_lost(cloud, gang):
    gang.claim({f"vm{n}": place("x") for n in range(64)})
    assert cloud.adapter.calls == ["POST /allocations"]
    cloud.adapter.fates = ["lost"]
    gang.claim({f"vm{n}": place("y") for n in range(64)})
    claim = "POST /allocations"
    assert cloud.adapter.calls == [claim, claim, "GET /allocations/vm0", claim]


def test_what_others_have_changed_is_not_released(cloud, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    cloud.nova_claims("b", "foreign")
    gang.release()
    assert cloud.held == {"b": ["foreign", "y"]}
    assert gang.is_clean


def test_an_instance_that_nova_has_moved_since_is_left_where_it_is(cloud, gang):
    """Nova claimed another place, and the repair was not answered; then the VM came back."""
    gang.claim({"a": place("x")})
    cloud.nova_claims("a", "y")
    cloud.adapter.unanswered = 1
    gang.note_placed("a", on("y"))
    assert not gang.is_clean
    cloud.put("a", {})
    cloud.nova_claims("a", "x")
    gang.clean(never)
    assert cloud.held == {"a": ["x"]}


def test_of_a_provider_that_both_places_share_nova_keeps_what_was_claimed(cloud, gang):
    gang.claim({"a": place("z", "gpu0")})
    cloud.nova_claims("a", "z", "gpu1")
    gang.note_placed("a", on("z", "gpu1"))
    assert cloud.held == {"a": ["gpu1", "z"]}


def test_two_requests_for_the_same_instances_never_take_the_others_claim_for_theirs(
    cloud, gang, caplog
):
    """As after a message that came twice: the second one goes on without a claim."""
    caplog.set_level(logging.INFO)
    gang.claim({"a": place("x"), "b": place("y")})
    other = GangClaim(Owner("project", "user"))
    assert other.claim({"a": place("x"), "b": place("z")}).answer is Answer.CONSUMER_CHANGED
    other.release()
    assert cloud.held == {"a": ["x"], "b": ["y"]}
