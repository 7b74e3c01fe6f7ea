"""The recorded decisions of requests through ``hpc-sched explain``: what the command says."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden import command, record
from tests.golden.record import Case, digest

EVERY = 8  # of so many recorded decisions one is explained
_LINES = 4  # of a text that are recorded as they are


def cases(folder: Path, seeds: Sequence[int] | None = None) -> Iterator[Case]:
    """Yield what is said of decisions that the requests' record holds.

    :param folder: for their files
    :param seeds: numbers of the recorded requests; every few of all by default
    """
    requests = {case["case"]: case for case in record.read("requests") if case["decisions"]}
    for number in list(requests)[::EVERY] if seeds is None else seeds:
        decisions = requests[number]["decisions"]
        path = folder / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(decision)}\n" for decision in decisions))
        wanted = decisions[0]["group"] or decisions[0]["instance"]
        said = command.run(["explain", wanted, "--decision-log", str(path)], folder)
        yield {
            "case": number,
            "seed": number,
            "code": said.code,
            "first lines": said.out.splitlines()[:_LINES],
            "out": digest(said.out),
            "err": said.err,
            "kinds": [decisions[0]["decision"]],
        }
