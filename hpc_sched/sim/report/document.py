"""The page as a whole: a template with tables and plots."""

import re
from collections.abc import Sequence
from dataclasses import replace

import jinja2

from hpc_sched import exceptions, files
from hpc_sched.sim.report import comparisons, heat, policy_runs, table, timeline
from hpc_sched.sim.report.plot import Section
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.results import Result

TITLE = "Simulation of placement policies"

# Characters that neither HTML nor SVG can hold, such as surrogates in file names.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def page(
    results: Sequence[Result],
    about: Sequence[tuple[str, str]],
    notes: Sequence[str],
    title: str = TITLE,
) -> str:
    """Return the report of a sweep as one HTML page that loads nothing. Same input, same text.

    Policies are in the order of their first results. Where one run is drawn for a policy, it is
    that of its first seed.
    """
    policies = policy_runs.by_policy([_legal_result(result) for result in results])
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hpc_sched.sim.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html").render(
        title=_legal(title),
        about=[(_legal(name), _legal(value)) for name, value in about],
        notes=[_legal(note) for note in notes],
        policies=policies,
        seeds=policy_runs.about_seeds(policies),
        columns=table.COLUMNS,
        headings=table.headings(),
        rows=table.rows(policies),
        is_fair=table.is_fair(policies),
        meanings=table.MEANINGS,
        sections=_sections(policies) if policies else (),
        refusals=policy_runs.refusals(policies),
        sample=policy_runs.sample,
    )


def write(
    path: files.Path,
    results: Sequence[Result],
    about: Sequence[tuple[str, str]],
    notes: Sequence[str],
    title: str = TITLE,
) -> None:
    """Write the report of a sweep atomically; see :func:`page`.

    :raises exceptions.SimulationError: naming the file that cannot be written
    """
    content = page(results, about, notes, title).encode()
    files.write_atomically(path, content, exceptions.SimulationError)


def _sections(policies: Sequence[PolicyRuns]) -> tuple[Section, ...]:
    return (
        Section(
            "progress",
            "Progress",
            timeline.over_time(policies),
            "Policies keep their colour, kind of line and marker on the whole page. Where lines "
            "coincide the last one covers the others; their markers remain visible."
            if len(policies) > 1
            else "",
        ),
        Section(
            "waits",
            "Waits and slowdowns",
            (comparisons.waits(policies), comparisons.slowdowns(policies)),
        ),
        Section(
            "placement",
            "Placement",
            (
                comparisons.hop_bytes(policies),
                comparisons.leaves(policies),
                timeline.crossing(policies),
            ),
        ),
        Section("fragmentation", "Fragmentation", (timeline.fragmentation(policies),)),
        Section("fabric", "The fabric over time", (heat.plot(policies),)),
    )


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def _legal_result(result: Result) -> Result:
    """Return a result with all its texts made legal."""
    gangs = {_legal(level): sizes for level, sizes in result.series.gangs.items()}
    return replace(
        result,
        summary=replace(result.summary, policy=_legal(result.summary.policy)),
        refusals={_legal(reason): jobs for reason, jobs in result.refusals.items()},
        leaves=[_legal(name) for name in result.leaves],
        series=replace(result.series, gangs=gangs),
    )
