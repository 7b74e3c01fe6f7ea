"""The files of a sweep: a row per run as CSV, everything as JSON, the report."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from hpc_sched import exceptions, files
from hpc_sched.sim.measured.job_kinds import KindMeasures
from hpc_sched.sim.results import Result, written_fields
from hpc_sched.sim.statistics.policy_comparison import compare

FILES = ("runs.csv", "results.json", "report.html")
KINDS_FILE = "kinds.csv"  # with a network
FORMAT = "hpc-sched simulation"
VERSION = 2  # of the layout of results.json


@dataclass(frozen=True, slots=True)
class Settings:
    """What all runs of a sweep have in common."""

    about: Sequence[tuple[str, str]]  # heading and description, for people
    values: Mapping[str, Any]  # plain values by the name of the option, for programs


def prepare(folder: Path) -> None:
    """Create a folder if needed; called before the runs, to fail early.

    :raises exceptions.SimulationError: if it cannot be created, or the report lacks a package
    """
    from hpc_sched.sim import report  # noqa: F401 - imported to fail early

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise exceptions.SimulationError(
            f"{folder}: cannot be made: {failure.strerror}"
        ) from failure


def write(
    folder: Path, results: Sequence[Result], settings: Settings, notes: Sequence[str]
) -> None:
    """Write all files of a sweep, each atomically.

    :raises exceptions.SimulationError: naming the file that cannot be written
    """
    # Not at the top: the report needs the packages of an extra.
    from hpc_sched.sim import report

    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    names = written_fields(results)
    writer.writerow(names)
    writer.writerows([getattr(result.summary, name) for name in names] for result in results)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "settings": dict(settings.values),
        "about": dict(settings.about),
        "notes": list(notes),
        "comparison": compare(results).as_json(names),
        "runs": [_plain(result, names) for result in results],
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
    page = report.page(results, settings.about, notes)
    written = dict(zip(FILES, (rows.getvalue(), text, page), strict=True))
    if has_kinds(results):
        written[KINDS_FILE] = _kinds(results)
    for name, content in written.items():
        files.write_atomically(folder / name, content.encode(), exceptions.SimulationError)
    if KINDS_FILE not in written:
        _remove(folder / KINDS_FILE)


def has_kinds(results: Sequence[Result]) -> bool:
    """True if numbers of kinds of jobs are written: the runs have a network."""
    return any(result.kinds for result in results)


def _remove(path: Path) -> None:
    """Remove a file of an earlier command, whose runs are not those of the other files."""
    try:
        path.unlink(missing_ok=True)
    except OSError as failure:
        raise exceptions.SimulationError(
            f"{path}: cannot be removed: {failure.strerror}"
        ) from failure


def _kinds(results: Sequence[Result]) -> str:
    """Return a row for each kind of jobs of each run."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(["policy", "seed", *(field.name for field in fields(KindMeasures))])
    for result in results:
        for kind in result.kinds:
            writer.writerow([result.summary.policy, result.summary.seed, *astuple(kind)])
    return rows.getvalue()


def _plain(result: Result, names: Sequence[str]) -> dict[str, Any]:
    """Return a result as JSON can hold it; with a window only if a part of the run is measured.

    :param names: fields of the summary that are written
    """
    found = asdict(result)
    found["summary"] = {name: found["summary"][name] for name in names}
    if not found["kinds"]:
        del found["kinds"]
    if not found["series"]["totals"]["uplinks"]:
        del found["series"]["totals"]["uplinks"]
    window = found.pop("window")
    if window is not None:
        found["window"] = {
            name: time if math.isfinite(time) else None for name, time in window.items()
        }
    return found
