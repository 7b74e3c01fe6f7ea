"""The page as a whole: a template with tables and plots."""

from collections.abc import Sequence
from dataclasses import replace

import jinja2

from hpc_sched.sim.report import comparisons, heat, plot, policy_runs, table, timeline
from hpc_sched.sim.report.plot import Section
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.results import Result


def page(results: Sequence[Result], about: Sequence[tuple[str, str]], notes: Sequence[str]) -> str:
    """Return the report of a sweep as one HTML page that loads nothing. Same input, same text.

    Policies are in the order of their first results. Where one run is drawn for a policy, it is
    that of its first seed.
    """
    policies = policy_runs.by_policy([_drawable(result) for result in results])
    columns = table.columns(policies)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hpc_sched.sim.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    text = environment.get_template("page.html").render(
        title="Simulation of placement policies",
        about=about,
        notes=notes,
        policies=policies,
        seeds=policy_runs.about_seeds(policies),
        columns=columns,
        headings=table.headings(columns),
        rows=table.rows(policies),
        is_fair=table.is_fair(policies),
        meanings=table.MEANINGS,
        sections=_sections(policies) if policies else (),
        refusals=policy_runs.refusals(policies),
        most_reasons=policy_runs.MOST_REASONS,
        sample=policy_runs.sample,
    )
    return plot.legal(text)


def _sections(policies: Sequence[PolicyRuns]) -> tuple[Section, ...]:
    hint = ""
    if len(policies) > 1:
        hint = (
            "Policies keep their colour, kind of line and marker on the whole page. Where lines "
            "coincide the last one covers the others; their markers remain visible."
        )
    progress = tuple(timeline.plot(measure, policies) for measure in timeline.PROGRESS)
    waits = comparisons.waits(policies), comparisons.slowdowns(policies)
    placement = *comparisons.ratios(policies), timeline.plot(timeline.CROSSING, policies)
    return (
        Section("progress", "Progress", progress, hint),
        Section("waits", "Waits and slowdowns", waits),
        Section("placement", "Placement", placement),
        Section("fragmentation", "Fragmentation", (timeline.fragmentation(policies),)),
        Section("fabric", "The fabric over time", (heat.plot(policies),)),
    )


def _drawable(result: Result) -> Result:
    gangs = {plot.legal(level): sizes for level, sizes in result.series.gangs.items()}
    return replace(
        result,
        summary=replace(result.summary, policy=plot.legal(result.summary.policy)),
        leaves=list(map(plot.legal, result.leaves)),
        series=replace(result.series, gangs=gangs),
    )
