"""Placement in memory against the real one: the same answers, and the same rows are left."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.protocol.placement_model import PlacementModel, Provider, Steps, finished

ROOT = Path(__file__).parents[2]
VMS = [str(UUID(int=number)) for number in range(1, 5)]
HOSTS = [str(UUID(int=number << 64)) for number in range(1, 4)]
GONE = str(UUID(int=9 << 64))
CLASSES = ("VCPU", "MEMORY_MB")
TYPES = ("HPC_SCHED_1", "HPC_SCHED_2")


def drawn_sequence(seed: int) -> dict[str, Any]:
    """Return requests for four consumers on three small providers; some interrupt another one."""
    draw = random.Random(seed)
    providers = {uuid: {name: draw.randint(2, 6) for name in CLASSES} for uuid in HOSTS}
    # What the sender believes of the generations: mostly right, as it follows the model.
    model = model_of(providers)
    requests = []
    for _ in range(draw.randint(2, 6)):
        request = drawn_request(draw, model)
        step, others = 0, []
        if request[0] in ("POST", "PUT") and draw.random() < 0.7:
            # Each consumer takes two steps at the most, the write one more.
            step = draw.randrange(2 * len(request[2]) + 2)
            others = [drawn_request(draw, model) for _ in range(draw.randint(1, 2))]
        requests.append([request, step, others])
        answer_of(model, request, step, others)
    return {"providers": providers, "requests": requests}


def drawn_request(draw: random.Random, model: PlacementModel) -> list[Any]:
    """Return method, path and body of a request."""
    kind = draw.choice([*["POST"] * 6, *["PUT"] * 4, "GET", "DELETE", "usages", "held", "totals"])
    # Nova knows no types of consumers.
    is_typed = kind in ("POST", "GET") and draw.random() < 0.5
    version = "1.38" if is_typed else "1.36"
    consumer, path = draw.choice(VMS), f"/resource_providers/{draw.choice(HOSTS)}"
    if kind == "totals":
        # Also below what is in use.
        generation = model.providers[path.rpartition("/")[2]].generation
        totals = {name: {"total": draw.randint(1, 6)} for name in CLASSES}
        body = {"resource_provider_generation": generation, "inventories": totals}
        return ["PUT", f"{path}/inventories", body]
    if kind in ("usages", "held"):
        return ["GET", f"{path}/{'usages' if kind == 'usages' else 'allocations'}", None]
    if kind in ("GET", "DELETE"):
        return [kind, f"/allocations/{consumer}", None, version]
    if kind == "PUT":
        return [kind, f"/allocations/{consumer}", drawn_claim(draw, model, consumer)]
    body = {
        uuid: drawn_claim(draw, model, uuid) for uuid in draw.sample(VMS, draw.randint(1, len(VMS)))
    }
    if is_typed:
        for claim in body.values():
            claim["consumer_type"] = draw.choice(TYPES)
    return [kind, "/allocations", body, version]


def drawn_claim(draw: random.Random, model: PlacementModel, consumer: str) -> dict[str, Any]:
    record = model.consumers.get(consumer)
    known = None if record is None else record.generation
    names = draw.choices([HOSTS, [*HOSTS, GONE]], [30, 1])[0]
    on = draw.sample(names, draw.choice([0, 1, 1, 1, 2]))
    return {
        "allocations": {
            uuid: {
                "resources": {
                    name: draw.randint(1, 2)
                    for name in draw.sample(CLASSES, draw.randint(1, len(CLASSES)))
                }
            }
            for uuid in on
        },
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": draw.choices([known, None, 0, 1, 2], [20, 2, 2, 1, 1])[0],
    }


def model_of(providers: dict[str, dict[str, int]]) -> PlacementModel:
    return PlacementModel(
        {uuid: Provider(uuid, dict(totals), generation=1) for uuid, totals in providers.items()}
    )


def answer_of(
    model: PlacementModel, request: list[Any], step: int, others: list[list[Any]]
) -> list[Any]:
    """Return the answers of the model: to a request, and to those that interrupt it."""
    steps, answers, number = begun(model, request), [], 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return [(end.value.status_code, end.value.body), *answers]
        for other in others if number == step else ():
            found = finished(begun(model, other))
            answers.append((found.status_code, found.body))
        number += 1


def begun(model: PlacementModel, request: list[Any]) -> Steps:
    return model.begin(*request)


def rows_of(model: PlacementModel) -> dict[str, Any]:
    return {
        "allocations": sorted(
            [consumer, *key, amount]
            for consumer, held in model.allocations.items()
            for key, amount in held.items()
        ),
        "consumers": sorted(
            [uuid, found.project, found.user, found.generation, found.type or ""]
            for uuid, found in model.consumers.items()
        ),
        "providers": sorted([uuid, found.generation] for uuid, found in model.providers.items()),
    }


def plain(answer: Any) -> Any:
    """Return an answer without its request id and title, as after a way through JSON."""
    status, body = answer
    if body and "errors" in body:
        [found] = body["errors"]
        body = {"errors": [{name: found[name] for name in ("status", "code", "detail")}]}
        body["errors"][0]["detail"] = found["detail"].strip().rpartition("\n")[2].strip()
    return json.loads(json.dumps([status, body]))


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the process of a real Placement.

    :param arguments: of :mod:`tests.protocol.real_placement`
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.protocol.real_placement", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture(scope="module")
def real() -> Iterator[subprocess.Popen[str]]:
    with started() as process:
        yield process


def asked(real: subprocess.Popen[str], sequence: dict[str, Any]) -> dict[str, Any]:
    """Return what the real Placement answers to a sequence, and its rows afterwards."""
    real.stdin.write(json.dumps(sequence) + "\n")
    real.stdin.flush()
    found: dict[str, Any] = json.loads(real.stdout.readline())
    return found


def differences(real: subprocess.Popen[str], seeds: range) -> list[str]:
    """Return the sequences, by seed, that end differently, with what differs first."""
    found = []
    for seed in seeds:
        sequence = drawn_sequence(seed)
        got = asked(real, sequence)
        model = model_of(sequence["providers"])
        for number, (request, step, others) in enumerate(sequence["requests"]):
            expected = [plain(one) for one in got["answers"][number]]
            answers = [plain(one) for one in answer_of(model, request, step, others)]
            if answers != expected:
                found.append(f"{seed}, request {number}: {expected}, in memory {answers}")
                break
        else:
            if rows_of(model) != got["rows"]:
                found.append(f"{seed}: rows {got['rows']}, in memory {rows_of(model)}")
    return found


def test_answers_and_rows_are_those_of_the_real_placement_in_20_drawn_sequences(real):
    assert differences(real, range(20)) == []


@pytest.mark.ci
def test_answers_and_rows_are_those_of_the_real_placement_in_200_drawn_sequences(real):
    assert differences(real, range(200)) == []


@pytest.mark.nightly("protocol", "5,000 sequences take minutes on the real Placement")
def test_answers_and_rows_are_those_of_the_real_placement_in_5000_drawn_sequences(real):
    assert differences(real, range(200, 5200)) == []
