"""The order of Python's sets, which each process has of its own, is in no result."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ("0", "1", "4711")
# What prints a result, by the name of what makes it.
PROGRAMS = {
    "planner": """
from hpc_sched.core.plan.planner import plan
from tests.unit import fabrics
fabric = fabrics.row_of_leaves({f"leaf{i:02}": 4 for i in range(12)})
answer = plan(
    topology=fabric,
    capacity={host: 1 for host in set(fabric.hosts)},
    members={"leaf03-00": 1},
    count=20,
    group_id="group-1",
)
print(answer.places, list(answer.hosts), list(answer.leaves))
""",
    "policies": """
from tests.unit import fabrics
from tests.unit.placing import placed
from tests.unit.test_sim_nova_policies import EVERY
fabric = fabrics.row_of_leaves({f"leaf{i:02}": 4 for i in range(12)})
for policy in EVERY:
    print(policy.name, placed(policy, fabric, {host: 2 for host in set(fabric.hosts)}, 20))
""",
    "simulations": """
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job import Job
from tests.unit.simulated import Simulated
jobs = [Job(n, n // 3, 5 + n % 7, 1 + n % 6) for n in range(1, 40)]
for name in POLICIES.names():
    print(name, Simulated(name, jobs).log)
""",
    "digests": """
from hpc_sched import digests
from hpc_sched.topology.canonical_text import lines_of
from tests.unit import fabrics
fabric = fabrics.row_of_leaves({name: 4 for name in {f"leaf{i:02}" for i in range(12)}})
print("digest", digests.of(lines_of(fabric)))
""",
    # Without this one the three processes might have had one seed.
    "sets": "print([*{f'host{i}' for i in range(100)}])",
}


@pytest.fixture(scope="module")
def printed() -> dict[str, set[str]]:
    """What each program prints in processes of different seeds; one process a seed for them all."""
    code = (
        "import contextlib, io, json\n"
        "said = {}\n"
        f"for name, program in {PROGRAMS!r}.items():\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "        exec(program, {})\n"
        "    said[name] = out.getvalue()\n"
        "print(json.dumps(said))\n"
    )
    found: dict[str, set[str]] = {name: set() for name in PROGRAMS}
    for seed in SEEDS:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, text in json.loads(ended.stdout).items():
            found[name].add(text)
    return found


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("planner", "leaf03"),
        ("policies", "slurm-tree"),
        ("simulations", "exact-plan"),
        ("digests", "digest"),
    ],
)
def test_results_do_not_depend_on_the_hash_seed(printed: dict[str, set[str]], name: str, word: str):
    [text] = printed[name]
    assert word in text


def test_the_seeds_do_change_the_order_of_sets(printed: dict[str, set[str]]):
    assert len(printed["sets"]) == len(SEEDS)
