"""The page as a whole: a template with tables and plots."""

from collections.abc import Sequence
from dataclasses import replace

from hpc_sched.page import rendering
from hpc_sched.sim.report import comparisons, heat, policy_runs, policy_table, timeline
from hpc_sched.sim.report.plot import Section
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.results import Result
from hpc_sched.sim.statistics import columns
from hpc_sched.sim.statistics.policy_comparison import Comparison, Evidence, compare
from hpc_sched.sim.statistics.sentences import about_marks


def page(results: Sequence[Result], about: Sequence[tuple[str, str]], notes: Sequence[str]) -> str:
    """Return the report of a sweep as one HTML page that loads nothing. Same input, same text.

    Policies are in the order of their first results. Where one run is drawn for a policy, it is
    that of its first seed.
    """
    drawable = [_drawable(result) for result in results]
    policies = policy_runs.by_policy(drawable)
    comparison = compare(drawable)
    differences = None
    if comparison.evidence is Evidence.INTERVALS and len(policies) > 1:
        differences = policy_table.differences(columns.IMPORTANT, policies, comparison)
    # Revenue without prices is a column without numbers.
    others = [
        column
        for column in columns.OTHERS
        if any(policy.means[column.field] is not None for policy in comparison.policies)
    ]
    return rendering.rendered(
        "page.html",
        "hpc_sched.sim.report",
        title="Simulation of placement policies",
        about=about,
        notes=notes,
        policies=policies,
        seeds=policy_runs.about_seeds(policies),
        marks=about_marks(comparison, "\N{BLACK STAR}"),
        means=policy_table.means(columns.IMPORTANT, policies, comparison),
        others=policy_table.means(others, policies, comparison),
        differences=differences,
        meanings=columns.MEANINGS,
        sections=_sections(policies, comparison) if policies else (),
        refusals=policy_runs.refusals(policies),
        most_reasons=policy_runs.MOST_REASONS,
        sample=policy_runs.sample,
    )


def _sections(policies: Sequence[PolicyRuns], comparison: Comparison) -> tuple[Section, ...]:
    hint = ""
    if len(policies) > 1:
        hint = (
            "Policies keep their colour, kind of line and marker on the whole page. Where lines "
            "coincide the last one covers the others; their markers remain visible."
        )
    progress = tuple(timeline.plot(measure, policies) for measure in timeline.PROGRESS)
    waits = comparisons.waits(policies), comparisons.slowdowns(policies)
    placement = (
        *comparisons.ratios(policies, comparison),
        timeline.plot(timeline.CROSSING, policies),
    )
    return (
        Section("progress", "Progress", progress, hint),
        Section("waits", "Waits and slowdowns", waits),
        Section("placement", "Placement", placement),
        Section("fragmentation", "Fragmentation", (timeline.fragmentation(policies),)),
        Section("fabric", "The fabric over time", (heat.plot(policies),)),
    )


def _drawable(result: Result) -> Result:
    gangs = {rendering.legal(level): sizes for level, sizes in result.series.gangs.items()}
    return replace(
        result,
        summary=replace(result.summary, policy=rendering.legal(result.summary.policy)),
        leaves=list(map(rendering.legal, result.leaves)),
        series=replace(result.series, gangs=gangs),
    )
