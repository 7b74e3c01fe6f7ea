"""The claims of a request, on a Placement that keeps the rules of consumers and their generations.

What real Placement and Nova make of them: tests/functional/test_gang_claims.py.
"""

from collections.abc import Callable, Mapping

import nova.conf
import pytest
from keystoneauth1 import exceptions as ksa_exceptions

from hpc_sched import conf
from hpc_sched.nova_glue.claim.gang_claim import ClaimedPlace, GangClaim
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Allocations, Answer, Consumer, Owner, Written


def on(*providers: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return allocations of one VCPU of each provider."""
    return {provider: {"resources": {"VCPU": 1}} for provider in providers}


def place(*providers: str) -> ClaimedPlace:
    return ClaimedPlace(0, {"allocations": on(*providers)})


class Placement:
    """Consumers with allocations and generations; what they are sent may get lost on the way."""

    def __init__(self) -> None:
        self.consumers: dict[str, tuple[Allocations, int]] = {}
        # What becomes of the next writes: an answer instead of theirs, nothing being written.
        self.answers: list[Answer] = []
        self.unanswered = 0  # reads from now on without an answer
        self.reads = 0

    def write(self, _owner: Owner, consumers: list[Consumer]) -> Written:
        if self.answers:
            return Written(self.answers.pop(0))
        for one in consumers:
            if self.generation(one.uuid) != one.generation:
                return Written(Answer.CONSUMER_CHANGED)
        for one in consumers:
            self.put(one.uuid, one.allocations)
        return Written(Answer.DONE)

    def read(self, uuid: str) -> Consumer:
        self.reads += 1
        if self.unanswered:
            self.unanswered -= 1
            raise ksa_exceptions.ConnectTimeout("no answer")
        held, generation = self.consumers.get(uuid, ({}, None))
        return Consumer(uuid, held, generation)

    def generation(self, uuid: str) -> int | None:
        return self.consumers[uuid][1] if uuid in self.consumers else None

    def put(self, uuid: str, found: Mapping[str, object]) -> None:
        if found:
            self.consumers[uuid] = dict(found), (self.generation(uuid) or 0) + 1
        else:
            self.consumers.pop(uuid, None)

    def nova_claims(self, uuid: str, *providers: str) -> None:
        """Add to what a consumer has, as Nova's claim does."""
        self.put(uuid, on(*providers) | dict(self.consumers.get(uuid, ({}, 0))[0]))

    @property
    def held(self) -> dict[str, list[str]]:
        return {uuid: sorted(held) for uuid, (held, _) in self.consumers.items()}


@pytest.fixture
def placement(monkeypatch: pytest.MonkeyPatch) -> Placement:
    conf.register_opts(nova.conf.CONF)
    found = Placement()
    monkeypatch.setattr(allocations, "write", found.write)
    monkeypatch.setattr(allocations, "read", found.read)
    return found


@pytest.fixture
def gang() -> GangClaim:
    return GangClaim(Owner("project", "user"), 1.0)


def test_what_nova_has_found_is_not_removed_though_that_was_not_seen(placement, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    placement.nova_claims("a", "x")
    gang.clean()
    assert placement.held == {"a": ["x"]}
    assert gang.is_clean


def test_a_second_claim_that_was_not_made_is_not_taken_for_made_by_its_first_instance(
    placement, gang
):
    gang.claim({"a": place("x"), "b": place("y")})
    placement.answers = [Answer.UNKNOWN]
    written = gang.claim({"a": place("x"), "b": place("z")})
    assert written.answer is Answer.UNKNOWN
    assert gang.places["b"].allocations == on("y")
    for uuid, host in (("a", "x"), ("b", "z")):
        placement.nova_claims(uuid, host)
        gang.settle(uuid, on(host))
    assert placement.held == {"a": ["x"], "b": ["z"]}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_claim_whose_answer_is_lost_is_held(placement, gang, monkeypatch, is_first):
    if not is_first:
        gang.claim({"a": place("x"), "b": place("y")})

    def lose(owner: Owner, consumers: list[Consumer]) -> Written:
        assert placement.write(owner, consumers).answer is Answer.DONE
        return Written(Answer.UNKNOWN)

    monkeypatch.setattr(allocations, "write", lose)
    assert gang.claim({"a": place("x"), "b": place("z")}).answer is Answer.DONE
    monkeypatch.setattr(allocations, "write", placement.write)
    gang.release()
    assert placement.held == {}
    assert gang.is_clean


def test_a_conflict_of_providers_is_sent_again(placement, gang):
    placement.answers = [Answer.CONFLICT] * 3
    assert gang.claim({"a": place("x")}).answer is Answer.DONE
    assert gang.transactions == 4


@pytest.mark.parametrize(
    "fail",
    [
        pytest.param(lambda placement: placement.answers.append(Answer.UNKNOWN), id="unanswered"),
        pytest.param(lambda placement: placement.answers.extend([Answer.CONFLICT] * 9), id="busy"),
    ],
)
@pytest.mark.parametrize("host", ["x", "y"])
def test_a_release_that_failed_takes_nothing_of_what_nova_claims_afterwards(
    placement, gang, fail: Callable[[Placement], object], host
):
    gang.claim({"a": place("x")})
    fail(placement)
    gang.release()
    placement.answers = []
    placement.nova_claims("a", host)
    gang.settle("a", on(host))
    gang.clean()
    assert placement.held == {"a": [host]}
    assert gang.is_clean


def test_a_transaction_that_is_made_after_nova_has_released_its_claims_is_removed(placement, gang):
    """NoValidHost at the third VM: Placement has forgotten the consumers of the others."""
    placement.answers = [Answer.UNKNOWN]
    assert gang.claim({uuid: place(uuid) for uuid in "abc"}).answer is Answer.UNKNOWN
    for uuid in "ab":
        placement.nova_claims(uuid, uuid)
        gang.settle(uuid, on(uuid))
        placement.put(uuid, {})
    gang.forget_settled()
    for uuid in "abc":
        placement.put(uuid, on(uuid))
    gang.clean()
    assert placement.held == {}


def test_nothing_is_claimed_again_before_a_release_is_answered(placement, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    placement.answers = [Answer.UNKNOWN]
    gang.release()
    assert gang.claim({"a": place("x"), "b": place("z")}).answer is Answer.UNKNOWN
    gang.clean()
    assert placement.held == {}
    assert gang.claim({"a": place("x"), "b": place("z")}).answer is Answer.DONE


def test_a_placement_that_does_not_answer_is_asked_once_for_all_instances(placement, gang):
    gang.claim({f"vm{n}": place("x") for n in range(64)})
    placement.answers, placement.unanswered = [Answer.FAILED], 1
    gang.release()
    assert placement.reads == 1
    placement.unanswered = 1
    gang.clean()
    assert placement.reads == 2
    gang.clean()
    assert placement.held == {}


def test_what_others_have_changed_is_not_released(placement, gang):
    gang.claim({"a": place("x"), "b": place("y")})
    placement.nova_claims("b", "foreign")
    gang.release()
    assert placement.held == {"b": ["foreign", "y"]}
    assert gang.is_clean


def test_an_instance_that_nova_has_moved_since_is_left_where_it_is(placement, gang):
    """Nova claimed another place, and the repair was not answered; then the VM came back."""
    gang.claim({"a": place("x")})
    placement.nova_claims("a", "y")
    placement.unanswered = 1
    gang.settle("a", on("y"))
    placement.put("a", {})
    placement.nova_claims("a", "x")
    gang.clean()
    assert placement.held == {"a": ["x"]}


def test_of_a_provider_that_both_places_share_nova_keeps_what_was_claimed(placement, gang):
    gang.claim({"a": place("root", "gpu0")})
    placement.nova_claims("a", "root", "gpu1")
    gang.settle("a", on("root", "gpu1"))
    assert placement.held == {"a": ["gpu1", "root"]}
