"""Recorded decisions through ``hpc-sched explain``: what the command says."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden import command, record
from tests.golden.command import Said
from tests.golden.record import Case, digest
from tests.unit.recorded_groups import random_group

EVERY = 8  # of so many recorded decisions one is explained
GROUPS = 60  # random ones, whose decisions have the planner's input: costs are known
_LINES = 4  # of a text that are recorded as they are
_COSTS = ("  without ", "  why not ")


def cases(folder: Path) -> Iterator[Case]:
    """Yield what is said of decisions that the requests' record holds, then of random groups.

    :param folder: for their files
    """
    requests = {case["case"]: case for case in record.read("requests") if case["decisions"]}
    for number in list(requests)[::EVERY]:
        decisions = requests[number]["decisions"]
        said = _explained(folder, number, decisions, ())
        yield _case(number, number, said, decisions[0]["decision"])
    for seed in range(GROUPS):
        decision = random_group(seed).record()
        # The topology is not asked for these names; no machine takes so many seconds.
        options = [f"--why-not={name}" for name in _switches(decision["input"]["tree"])]
        said = _explained(folder, f"group {seed}", [decision], [*options, "--timeout=600"])
        lines = said.out.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith(_COSTS))
        yield {
            **_case(f"group {seed}", seed, said, decision["decision"]),
            "costs": lines[first:],
        }


def _explained(
    folder: Path, name: object, decisions: Sequence[Mapping[str, Any]], options: Sequence[str]
) -> Said:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{json.dumps(decision)}\n" for decision in decisions))
    wanted = decisions[0]["group"] or decisions[0]["instance"]
    return command.run(["explain", wanted, "--decision-log", str(path), *options], folder)


def _case(number: object, seed: int, said: Said, kind: str) -> Case:
    return {
        "case": number,
        "seed": seed,
        "code": said.code,
        "first lines": said.out.splitlines()[:_LINES],
        "out": digest(said.out),
        "err": said.err,
        "kinds": [kind],
    }


def _switches(tree: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the switches of a record's tree."""
    for name, below in tree.items():
        yield name
        if isinstance(below, dict):
            yield from _switches(below)
