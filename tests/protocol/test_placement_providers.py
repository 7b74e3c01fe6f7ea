"""Placement in memory against the real one: providers in trees, classes, inventories, candidates.

See ``test_placement_model.py`` for the consumers.
"""

import random
import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from tests.protocol.placement_model import PlacementModel, Provider
from tests.protocol.test_placement_model import VMS, asked, plain, rows_of, started

HOST = str(UUID(int=1 << 64))
MADE = [str(UUID(int=number << 64)) for number in range(2, 6)]
LARGEST = 2**31 - 1
KINDS = ("make", "class", "stock", "hold", "read", "gone")


@pytest.fixture(scope="module")
def real() -> Iterator[subprocess.Popen[str]]:
    with started() as process:
        yield process


def drawn_sequence(seed: int, model: PlacementModel) -> list[list[Any]]:
    """Return requests, and send them to the model."""
    draw = random.Random(seed)
    # Resource classes outlive a sequence of the real one.
    classes = [f"CUSTOM_{seed}_{name}" for name in "ABC"]
    requests = []
    for _ in range(draw.randint(10, 25)):
        request = drawn_request(draw, model, classes)
        requests.append(request)
        model.send(*request)
    return requests


def drawn_request(draw: random.Random, model: PlacementModel, classes: list[str]) -> list[Any]:
    provider, known = draw.choice([HOST, *MADE]), model.providers
    path = f"/resource_providers/{provider}"
    match draw.choice(
        ["make"] * 4 + ["class"] * 4 + ["stock"] * 5 + ["hold"] * 4 + ["read"] * 5 + ["gone"]
    ):
        case "make":
            body = {"uuid": provider, "name": draw.choice((provider, "name", "name"))}
            if draw.random() < 0.6:
                body["parent_provider_uuid"] = draw.choice([HOST, *MADE])
            return ["POST", "/resource_providers", body]
        case "class":
            return ["PUT", f"/resource_classes/{draw.choice(classes)}", None]
        case "stock":
            some = draw.sample(classes, draw.randint(0, 3))
            generation = known[provider].generation if provider in known else 0
            ratio = draw.choice((1.0, 1.5, 1000.0))
            stocks = {
                name: {"total": draw.randint(1, 4), "max_unit": LARGEST, "allocation_ratio": ratio}
                for name in some
            }
            wrong = draw.choices([0, 1], [9, 1])[0]
            body = {"resource_provider_generation": generation + wrong, "inventories": stocks}
            return ["PUT", f"{path}/inventories", body]
        case "hold":
            consumer = draw.choice(VMS)
            record = model.consumers.get(consumer)
            having = {uuid: one for uuid, one in known.items() if one.totals} or {HOST: None}
            uuid = draw.choice(sorted(having))
            totals = having[uuid].totals if having[uuid] else {classes[0]: 1}
            amounts = {name: draw.randint(1, 4) for name in draw.sample(sorted(totals), 1)}
            claim = {
                "allocations": {uuid: {"resources": amounts}},
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None if record is None else record.generation,
            }
            return ["POST", "/allocations", {consumer: claim}]
        case "gone":
            return ["DELETE", path, None]
    what = [
        path,
        *(f"{path}/{what}" for what in ("inventories", "usages", "allocations")),
        f"/resource_providers?in_tree={provider}",
        "/resource_providers?name=name",
        f"/allocation_candidates?resources={classes[0]}:1",
        f"/allocation_candidates?resources={classes[0]}:1,{classes[1]}:2&in_tree={HOST}",
    ]
    # Of a class that does not exist Placement says so.
    is_made = set(classes[:2]) <= model.classes
    return ["GET", draw.choice(what if is_made else what[:-2]), None]


def in_order(body: Any) -> Any:
    """Return a body without links, its lists in one order."""
    if isinstance(body, dict):
        return {key: in_order(value) for key, value in body.items() if key != "links"}
    if isinstance(body, list):
        return sorted(map(in_order, body), key=repr)
    return body


def code_of(answer: Any) -> Any:
    """Return status and code of an error."""
    status, body = answer
    return [status, body["errors"][0]["code"]] if body and "errors" in body else answer


def differences(real: subprocess.Popen[str], seeds: range) -> list[str]:
    """Return the sequences, by seed, that end differently, with what differs first."""
    found = []
    for seed in seeds:
        providers = {HOST: {"VCPU": 2}}
        drawing, model = (
            PlacementModel({HOST: Provider(HOST, {"VCPU": 2}, generation=1)}) for _ in range(2)
        )
        requests = drawn_sequence(seed, drawing)
        got = asked(real, {"providers": providers, "requests": [[one, 99, []] for one in requests]})
        for number, request in enumerate(requests):
            [answer] = got["answers"][number]
            expected, sent = plain(answer), model.send(*request)
            answers = plain((sent.status_code, sent.body))
            if answers[0] >= 400:
                # Some texts of errors depend on the database.
                expected, answers = (
                    [one[0], one[1]["errors"][0]["code"]] for one in (expected, answers)
                )
            if in_order(answers) != in_order(expected):
                found.append(f"{seed}, {number}, {request}: {expected}, in memory {answers}")
                break
        else:
            if rows_of(model) != got["rows"]:
                found.append(f"{seed}: rows {got['rows']}, in memory {rows_of(model)}")
    return found


def test_providers_and_candidates_are_those_of_the_real_placement_in_20_drawn_sequences(real):
    assert differences(real, range(20)) == []


@pytest.mark.ci
def test_providers_and_candidates_are_those_of_the_real_placement_in_200_drawn_sequences(real):
    assert differences(real, range(20, 220)) == []
