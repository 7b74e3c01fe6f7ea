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
from hpc_sched.sim.results import Result, Summary
from hpc_sched.sim.statistics.policy_comparison import compare

FILES = ("runs.csv", "results.json", "report.html")
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
    writer.writerow(field.name for field in fields(Summary))
    writer.writerows(astuple(result.summary) for result in results)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "settings": dict(settings.values),
        "about": dict(settings.about),
        "notes": list(notes),
        "comparison": compare(results).as_json(),
        "runs": [_plain(result) for result in results],
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
    page = report.page(results, settings.about, notes)
    for name, content in zip(FILES, (rows.getvalue(), text, page), strict=True):
        files.write_atomically(folder / name, content.encode(), exceptions.SimulationError)


def _plain(result: Result) -> dict[str, Any]:
    """Return a result as JSON can hold it; with a window only if a part of the run is measured."""
    found = asdict(result)
    window = found.pop("window")
    if window is not None:
        found["window"] = {
            name: time if math.isfinite(time) else None for name, time in window.items()
        }
    return found
