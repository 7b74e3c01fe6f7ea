"""What Placement repeats after a conflict: in memory as on PostgreSQL.

With ``allocation_conflict_retry_count`` above 1 a transaction that finds a provider changed is
written again within its transaction of the database, and what the other one has taken does not
count. MariaDB does the same, see ``tests/contention``; but its locks of gaps, and of whole tables
that are small, let no second transaction in at a step that a test chooses.
"""

import random
from typing import Any
from uuid import UUID

import pytest

from tests.functional import servers
from tests.protocol import test_placement_model as sequences
from tests.protocol.placement_model import finished
from tests.protocol.test_placement_model import HOSTS

FIRST = [str(UUID(int=number)) for number in (1, 2, 3)]
SECOND = [str(UUID(int=(1 << 127) + number)) for number in (1, 2, 3)]


@pytest.fixture
def url():
    with servers.databases_on("postgresql") as make:
        yield make("placement")


def claim(draw: random.Random, consumers: list[str]) -> list[Any]:
    """Return a claim of the first two hosts for some consumers, of 1 or 2 VCPUs each."""
    some = consumers[: draw.randint(1, 3)]
    body = {uuid: consumer(draw.choice(HOSTS[:2]), draw.randint(1, 2)) for uuid in some}
    return ["POST", "/allocations", body]


def consumer(host: str, vcpus: int) -> dict[str, Any]:
    """Return what is sent of a new consumer."""
    return {
        "allocations": {host: {"resources": {"VCPU": vcpus}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
    }


def drawn_sequence(seed: int) -> dict[str, Any]:
    """Return a claim, and a second one that is made when the first is about to be."""
    draw = random.Random(seed)
    providers = {uuid: {"VCPU": draw.randint(2, 5)} for uuid in HOSTS[:2]}
    return {"providers": providers, "requests": [[claim(draw, FIRST), 0, [claim(draw, SECOND)]]]}


def in_memory(sequence: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the answers to the two claims, and the rows: the second is made while the first is."""
    model = sequences.model_of(sequence["providers"])
    model.is_retrying = True
    [[request, _, [other]]] = sequence["requests"]
    steps = model.begin(*request)
    finished(steps, "write")
    second = model.send(*other)
    answers = [(found.status_code, found.body) for found in (finished(steps), second)]
    return [sequences.plain(one) for one in answers], sequences.rows_of(model)


@pytest.mark.ci
def test_what_is_repeated_does_not_see_what_the_other_claim_has_taken(url):
    with sequences.started(url) as process:
        overbooked = 0
        for seed in range(40):
            sequence = drawn_sequence(seed)
            got = sequences.asked(process, sequence)
            answers, rows = in_memory(sequence)
            real = [sequences.plain(one) for one in got["answers"][0]]
            if len(real) == 1:
                # The first has no room alone, and does not come to the step before.
                assert real == answers[:1]
                continue
            assert (real, got["rows"]) == (answers, rows), seed
            used = dict.fromkeys(HOSTS[:2], 0)
            for _, at, _, amount in rows["allocations"]:
                used[at] += amount
            overbooked += any(
                used[at] > found["VCPU"] for at, found in sequence["providers"].items()
            )
    assert overbooked > 5
