"""Runs of ``hpc-sched simulate`` over all policies and queues: jobs, events and numbers."""

import csv
import io
import json
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.golden import command, trees
from tests.golden.record import Case, digest

CASES = 60
POLICIES = (
    "dudina2013",
    "exact-plan",
    "first-fit",
    "gupta2012",
    "gupta2012-best-fit",
    "gupta2013",
    "kueue-best-fit",
    "kueue-least-free",
    "least-free-pe",
    "mdobp",
    "most-free-pe",
    "nova-default",
    "nova-soft-affinity",
    "random",
    "slurm-tree",
)
# Sums of floats may differ in their last digits from processor to processor.
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
# The measures that are digested. A new one changes nothing that was recorded.
_DIGESTED = (
    *("policy", "seed", "jobs", "done", "refused", "failed", "left", "restarts", "makespan"),
    *("wait_mean", "wait_median", "wait_p95", "slowdown_mean", "slowdown_p95", "vcpu_use"),
    *("memory_use", "hop_byte_ratio", "apart", "hops_per_pair", "leaf_ratio", "crossing"),
    *("most_crossing", "factor_mean"),
)
# The columns of the jobs' files likewise.
_OF_A_JOB = (
    *("number", "outcome", "app_class", "submit", "start", "end", "runtime", "factor", "vms"),
    *("vcpus", "memory_mb", "hosts", "leaves", "least_leaves", "hop_bytes", "least_hop_bytes"),
    *("restarts", "reason"),
)
_TOLD = ("done", "refused", "failed", "left", "restarts")


def case_of(seed: int, folder: Path) -> Case:
    """Return what is recorded of the simulation of a seed: a run for each of its policies."""
    dice = random.Random(f"golden simulated {seed}")
    fabric = trees.draw(dice)
    topology = folder / "topology.yaml"
    topology.write_text(yaml.safe_dump(trees.text_of(fabric)))
    policies = [POLICIES[seed % len(POLICIES)], POLICIES[(7 * seed + 3) % len(POLICIES)]]
    if seed % 10 == 0:
        policies = ["all"]
    arguments = _arguments(dice, fabric, seed)
    for name in dict.fromkeys(policies):
        arguments += ["--policy", name]
    output = folder / "out"
    said = command.run(
        [
            *("simulate", "--topology", str(topology), *arguments),
            *("--output", str(output), "--events", "-f", "json"),
        ],
        folder,
    )
    runs = _runs(said, output) if said.code == 0 else {}
    shutil.rmtree(output, ignore_errors=True)
    return {
        "case": seed,
        "seed": f"golden simulated {seed}",
        "arguments": " ".join(arguments),
        "code": said.code,
        "err": said.err,
        "runs": runs,
        "kinds": _kinds(arguments, runs),
    }


def cases(folder: Path, seeds: Sequence[int] = range(CASES)) -> Iterator[Case]:
    """Yield the cases of some seeds.

    :param folder: for their files
    """
    for seed in seeds:
        yield case_of(seed, folder)


def rounded(text: str) -> str:
    """Return a text whose numbers have eight digits that count."""
    return _NUMBER.sub(lambda found: f"{float(found[0]):.8g}", text)


def _arguments(dice: random.Random, fabric: trees.Fabric, seed: int) -> list[str]:
    """Return what is simulated: few jobs, at an end after a day."""
    found = ["--synthetic", str(dice.randint(12, 30)), "--seed", str(seed), "--until", "86400"]
    found += ["--interarrival", f"exponential:{dice.choice((10, 60, 300))}"]
    found += ["--size", dice.choice(("uniform:1:12", "choice:1:2:4:8:16", "uniform:1:40"))]
    found += ["--runtime", dice.choice(("lognormal:600:1", "uniform:50:900"))]
    found += ["--host", f"vcpus={dice.choice((2, 4, 8))},memory=16384"]
    found += ["--queue", dice.choice(("fcfs", "easy"))]
    rare = (
        ["--host", f"vcpus=16,memory=32768,processor=gold:{dice.choice(fabric.hosts)}"],
        [
            *("--host", f"vcpus=12,memory=32768,processor=fast:{dice.choice(fabric.hosts)}"),
            *("--speeds", "fast=1.5"),
        ],
        ["--classes", "sync=0.5,async=0.3,extreme=0.1,none=0.1"],
        ["--classes", "sync=0.5,extreme=0.5"],
        ["--scores", "uniform:0:30"],
        ["--vm-memory", "choice:1024:4096:8000"],
        ["--mtbf", "20000", "--repair", "600"],
        ["--mtbf", "9000", "--repair", "900", "--no-requeue"],
        ["--require", "leaf"],
        ["--max-leaves", "2"],
        ["--homogeneous", dice.choice(("true", "false"))],
        ["--processor-order", "silver,gold"],
        ["--alpha", "50", "--beta", "25"],
        ["--hop-factors", "host=1,leaf=1.3"],
        ["--interference", "1.002"],
        ["--backfill-depth", "2"],
        ["--walltime", "uniform:1:4"],
        ["--seeds", "2"],
    )
    for more in rare:
        if dice.random() < 0.25 and not (more[0].startswith("--mtbf") and "--mtbf" in found):
            found += more
    return found


def _runs(said: command.Said, output: Path) -> dict[str, Any]:
    """Return a few numbers of each run, and digests of its row, its jobs and its events."""
    found = {}
    for row in json.loads(said.out):
        name = f"{row['policy']}-seed{row['seed']}"
        jobs = rounded(_of_jobs(output / f"{name}-jobs.csv"))
        events = rounded((output / f"{name}-events.txt").read_text())
        found[name] = {
            **{key: row[key] for key in _TOLD},
            "row": digest(rounded(json.dumps({key: row[key] for key in _DIGESTED}))),
            "jobs": digest(jobs),
            "events": digest(events),
            # Where the first job that has a place begins, with its hosts.
            "first start": next((line for line in events.splitlines() if " start " in line), ""),
        }
    return found


def _of_jobs(path: Path) -> str:
    found = io.StringIO()
    writer = csv.DictWriter(found, _OF_A_JOB, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    with path.open(newline="") as rows:
        writer.writerows(csv.DictReader(rows))
    return found.getvalue()


def _kinds(arguments: Sequence[str], runs: dict[str, Any]) -> list[str]:
    tests = {
        "failed": not runs,
        "refused jobs": any(run["refused"] for run in runs.values()),
        "restarts": any(run["restarts"] for run in runs.values()),
        "lost jobs": any(run["failed"] for run in runs.values()),
        "jobs left": any(run["left"] for run in runs.values()),
        **{f"policy {name.partition('-seed')[0]}": True for name in runs},
        **{option: True for option in arguments if option.startswith("--")},
        "queue " + arguments[arguments.index("--queue") + 1]: True,
    }
    return sorted(kind for kind, is_so in tests.items() if is_so)
