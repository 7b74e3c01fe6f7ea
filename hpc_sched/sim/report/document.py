"""The page as a whole: a template with tables and plots."""

from collections.abc import Sequence
from dataclasses import replace

from hpc_sched.page import rendering
from hpc_sched.sim.report import (
    comparisons,
    heat,
    kind_tables,
    policy_runs,
    policy_table,
    table_parts,
    timeline,
)
from hpc_sched.sim.report.time_axis import time_axis
from hpc_sched.sim.results import Result
from hpc_sched.sim.statistics import columns
from hpc_sched.sim.statistics.kind_comparison import KIND_MEANINGS, kinds
from hpc_sched.sim.statistics.policy_comparison import Comparison, Evidence, compare
from hpc_sched.sim.statistics.sentences import about_marks

_HINT = (
    "Policies keep their colour, kind of line and marker on the whole page. Where lines coincide "
    "the last one covers the others; their markers remain visible."
)


def page(results: Sequence[Result], about: Sequence[tuple[str, str]], notes: Sequence[str]) -> str:
    """Return the report of a sweep as one HTML page that loads nothing. Same input, same text.

    Policies are in the order of their first results. Where one run is drawn for a policy, it is
    that of its first seed.
    """
    drawable = [_drawable(result) for result in results]
    policies, comparison = policy_runs.by_policy(drawable), compare(drawable)
    has_differences = comparison.evidence is Evidence.INTERVALS and len(policies) > 1
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
        differences=(
            policy_table.differences(columns.IMPORTANT, policies, comparison)
            if has_differences
            else None
        ),
        meanings=columns.MEANINGS,
        kinds=kind_tables.tables(kinds(drawable), policies),
        about_kinds=KIND_MEANINGS,
        sections=_sections(policies, comparison) if policies else (),
        refusals=policy_runs.refusals(policies),
        # A policy that names hosts or counts in its reasons has about one per job.
        most_reasons=12,
        sample=policy_runs.sample,
        parts=table_parts.parts,
        rooms={"wide-window": table_parts.WIDE, "narrow-window": table_parts.NARROW},
    )


def _sections(
    policies: Sequence[policy_runs.PolicyRuns], comparison: Comparison
) -> tuple[tuple[str, str, str, tuple[policy_runs.Plot, ...]], ...]:
    """Return the anchor, the title, the hint on all plots, and the plots of each section."""
    axis = time_axis(policies)
    hint = f"{axis.reason} {_HINT if len(policies) > 1 else ''}".strip()
    progress = tuple(timeline.plot(measure, policies, axis) for measure in timeline.PROGRESS)
    has_uplinks = any(each.shown.series.totals.uplinks for each in policies)
    placement = (
        *comparisons.ratios(policies, comparison),
        timeline.plot(timeline.CROSSING, policies, axis),
        *([timeline.uplinks(policies, axis)] if has_uplinks else []),
    )
    return (
        ("progress", "Progress", hint, progress),
        ("waits", "Waits and slowdowns", "", comparisons.quantiles(policies)),
        ("placement", "Placement", "", placement),
        ("fragmentation", "Fragmentation", "", (timeline.fragmentation(policies, axis),)),
        ("fabric", "The fabric over time", "", (heat.plot(policies, axis),)),
    )


def _drawable(result: Result) -> Result:
    gangs = {rendering.legal(level): sizes for level, sizes in result.series.gangs.items()}
    uplinks = {rendering.legal(name): of for name, of in result.series.totals.uplinks.items()}
    totals = replace(result.series.totals, uplinks=uplinks)
    return replace(
        result,
        summary=replace(result.summary, policy=rendering.legal(result.summary.policy)),
        leaves=list(map(rendering.legal, result.leaves)),
        series=replace(result.series, gangs=gangs, totals=totals),
    )
