"""Snapshots through ``hpc-sched fits`` and ``hpc-sched group show``: what the commands print."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.golden import command, snapshots, wanting
from tests.golden.record import Case, digest
from tests.golden.snapshots import Drawn

CASES = 900
# A refusal, in the words of the command.
DOES_NOT_FIT = 3
_ROWS = 12  # more than these are recorded as a digest


def case_of(seed: int, folder: Path) -> Case:
    """Return what is recorded of the snapshot of a seed."""
    dice = random.Random(f"golden fits {seed}")
    drawn = snapshots.draw(dice)
    arguments = _arguments(dice, drawn)
    path = folder / f"state-{seed}.json"
    path.write_text(json.dumps(drawn.document))
    at = ["--snapshot", str(path)]
    group = dice.choice(drawn.groups)
    found: Case = {
        "case": seed,
        "seed": f"golden fits {seed}",
        "arguments": " ".join(arguments),
        "fits": _told(command.run(["fits", *at, *arguments], folder), as_json=False),
        "rows": _told(command.run(["fits", *at, *arguments, "-f", "json"], folder)),
    }
    if "--count" in arguments:
        summary = ["fits", *at, *arguments, "--summary", "-f", "json"]
        found["summary"] = _told(command.run(summary, folder))
    shown = ["group", "show", *at, group]
    found["group"] = _told(command.run(shown, folder), as_json=False)
    found["group summary"] = _told(command.run([*shown, "--summary", "-f", "json"], folder))
    if dice.random() < 0.3:
        found["group rows"] = _told(command.run([*shown, "-f", "json"], folder))
    path.unlink()
    return {**found, "kinds": _kinds(drawn, arguments, found)}


def cases(folder: Path, seeds: Sequence[int] = range(CASES)) -> Iterator[Case]:
    """Yield the cases of some seeds.

    :param folder: for their files
    """
    for seed in seeds:
        yield case_of(seed, folder)


def _arguments(dice: random.Random, drawn: Drawn) -> list[str]:
    """Return what is asked of a snapshot."""
    found: list[str] = []
    group = dice.choice(drawn.groups) if dice.random() < 0.4 else None
    if group is not None:
        found += ["--group", group]
    elif dice.random() < 0.5:
        policy = dice.choice([known for known in wanting.POLICIES if known])
        found += ["--policy", policy]
        if policy == "anti-affinity" and dice.random() < 0.5:
            found += ["--max-per-host", str(dice.choice((1, 2, 3)))]
    if dice.random() < 0.8:
        found += ["--flavor", dice.choice(drawn.flavors)]
    elif group is None or dice.random() < 0.5:
        found += ["--vcpus", str(dice.choice((0, 1, 3, 8))), "--ram", "2048", "--disk", "5"]
    levels = {"leaf": ["leaf"], "row": ["leaf", "pod"]}
    level = dice.choice(levels.get(drawn.fabric.shape, ["leaf", "pod", "core"]))
    if dice.random() < 0.8:
        found += ["--count", str(dice.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 16, 40)))]
        if dice.random() < 0.18:
            found += ["--level", level]
    if dice.random() < 0.12:
        found += ["--max-leaves", str(dice.randint(1, 3))]
    properties = ("hpc:homogeneous=true", "hpc:app_class=async", "hpc:app_class=extreme")
    for said in (*properties, "hpc:cache_score=29.3", "hpc:app_name=ep", "hpc:max_leaves=some"):
        if dice.random() < 0.05:
            found += ["--property", said]
    if dice.random() < 0.15:
        found.append("--volume")
    metal = ("resources:VCPU=0", "resources:MEMORY_MB=0", "resources:DISK_GB=0")
    if any(not host.vcpus for host in drawn.hosts.values()) and dice.random() < 0.6:
        for said in (*metal, "resources:CUSTOM_METAL=1"):
            found += ["--property", said]
    if dice.random() < 0.25:
        found += ["--drain", dice.choice([*drawn.fabric.switches, *drawn.fabric.hosts, "n[001-9]"])]
    if dice.random() < 0.18:
        leaf = dice.choice(sorted(set(drawn.fabric.leaf_of.values())))
        found += ["--add", dice.choice((f"{leaf}=new[1-4]", "core/leaf99=new[1-3]"))]
        if dice.random() < 0.8:
            found[-1] += f":like={dice.choice(drawn.fabric.hosts)}"
    return found


def _told(said: command.Said, *, as_json: bool = True) -> dict[str, Any]:
    """Return what is recorded of a run: the texts of the command where they are short."""
    found: dict[str, Any] = {"code": said.code}
    if said.err:
        found["err"] = said.err
    if not as_json:
        first = said.out.splitlines()[0] if said.out else ""
        return found | {
            "first line": "" if first.startswith("+") else first,
            "out": digest(said.code, said.out, said.err),
        }
    try:
        rows = json.loads(said.out)
    except ValueError:
        return found | {"out": said.out}
    return found | {"rows": rows if len(rows) <= _ROWS else digest(rows), "out": digest(said.out)}


def _kinds(drawn: Drawn, arguments: Sequence[str], found: Case) -> list[str]:
    code = found["fits"]["code"]
    summary = found.get("summary", {}).get("rows") or [{}]
    tests = {
        "fits": code == 0 and "--count" in arguments,
        "does not fit": code == DOES_NOT_FIT,
        "failed": code not in (0, DOES_NOT_FIT),
        "largest groups": code == 0 and "--count" not in arguments,
        "several leaves": (summary[0].get("Leaves") or 0) > 1,
        "growth": (summary[0].get("Members") or 0) > 0,
        "bare metal": any(not host.vcpus for host in drawn.hosts.values()),
        "fabric " + drawn.fabric.shape: True,
        "group with VMs": bool(found["group summary"].get("rows", [{}])[0].get("VMs")),
        "no nova.conf": drawn.document["filters"] is None,
        "interference": bool(drawn.document["interference"]),
        **{option: True for option in arguments if option.startswith("--")},
    }
    return sorted(kind for kind, is_so in tests.items() if is_so)
