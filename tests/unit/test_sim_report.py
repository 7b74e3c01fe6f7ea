"""The report of a sweep: what the page holds, whatever the runs were like."""

import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest

from hpc_sched import exceptions
from hpc_sched.sim import report, result_files
from hpc_sched.sim.report import (
    comparisons,
    heat,
    policy_runs,
    policy_table,
    time_axis,
    timeline,
)
from hpc_sched.sim.report.policy_runs import line_style
from hpc_sched.sim.result_files import Settings
from hpc_sched.sim.statistics import columns
from hpc_sched.sim.statistics.policy_comparison import compare
from tests.sim_results import NO_SERIES, empty, lived

ROOT = Path(__file__).resolve().parents[2]
ABOUT = [("Trace", "kth.swf.gz, 28,475 jobs"), ("Fabric", "64 hosts")]
NOTES = ["Walltimes are guessed."]
VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    """A page taken apart; an element that is not closed in its place is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.cells: list[list[str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "an attribute stands twice"
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self._open and re.fullmatch("h[1-6]", self._open[-1]):
            level, text = self.headings[-1]
            self.headings[-1] = level, text + data
        if {"td", "th"} & set(self._open):
            self.cells[-1][-1] += data.strip()

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def plots(self):
        return [each for each in self.all("svg") if each.get("role") == "img"]


def page_of(*results, about=ABOUT, notes=NOTES) -> Page:
    return Page(report.page(results, about, notes))


@pytest.fixture(scope="module")
def two() -> Page:
    """Two policies with two seeds each."""
    return page_of(*(lived(policy, seed) for policy in ("pack", "spread") for seed in (1, 2)))


def test_the_page_is_html_with_headings_in_order(two):
    assert two.text.startswith("<!DOCTYPE html>")
    assert two.all("html") == [{"lang": "en"}]
    assert [each for each in two.all("meta") if each.get("name") == "viewport"]
    levels = [level for level, _ in two.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(text.strip() for _, text in two.headings)


def test_it_says_what_was_simulated_and_what_to_know_of_it(two):
    words = "".join(two.words)
    for text in ("kth.swf.gz, 28,475 jobs", "64 hosts", *NOTES, "all other plots show seed 1"):
        assert text in words


def test_every_plot_is_there_with_a_title_and_a_label(two):
    table_title, *titles = (text for level, text in two.headings if level == 3)
    assert table_title == "Other measures"
    assert titles == [
        "Jobs done",
        "Jobs waiting",
        "Jobs running",
        "Use of vcpus",
        "Waits",
        "Bounded slowdowns",
        "Hop-Byte over least",
        "Leaves over least",
        "Crossing jobs per leaf",
        "Largest group that fits",
        "Use of the leaves",
    ]
    # Two levels, and two policies with a map of the fabric each.
    assert len(two.plots) == len(titles) + 2
    assert all(each["aria-label"] for each in two.plots)
    assert len(two.all("figcaption")) == len(titles)
    others = [each for each in two.all("svg") if each not in two.plots]
    assert {each["aria-hidden"] for each in others} == {"true"}


def test_ids_differ_and_every_reference_has_its_id(two):
    ids = [attributes["id"] for _, attributes in two.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    values = " ".join(str(v) for _, attributes in two.tags for v in attributes.values())
    clips = re.findall(r"url\(#([^)]+)\)", values)
    links = [a["href"][1:] for _, a in two.tags if a.get("href", "").startswith("#")]
    assert clips
    assert links
    assert set(clips) | set(links) <= set(ids)
    # Nothing of one picture is meant by another.
    for picture in two.text.split("<svg")[1:]:
        content = picture.partition("</svg>")[0]
        meant = re.findall(r"(?:url\(|href=\")#([^)\"]+)", content)
        assert set(meant) <= set(re.findall(r'\bid="([^"]+)"', content))


def test_styles_of_pictures_stay_in_them(two):
    assert len(two.all("style")) == 1


def test_nothing_is_loaded_and_nothing_is_run(two):
    assert not two.all("script")
    for tag, attributes in two.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "data", "action", "srcset"):
                assert value.startswith(("#", "data:")), (tag, value)
    # The letters of a picture's data may look like an address.
    plain = re.sub(r'"data:image/png;base64,[^"]*"', "", two.text)
    outside = re.findall(r"(?:https?:)?//[a-z][^\s\"'<]*", plain)
    assert not outside
    assert "@import" not in two.text
    assert [each["content"] for each in two.all("meta") if "http-equiv" in each] == [
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    ]


HOSTILE = '<script>alert("1")</script>'
NO_LETTERS = "a\udc80b\x00"


@pytest.fixture(scope="module")
def odd_names() -> Page:
    """A page all of whose names are markup, or hold what no page can hold."""
    odd = replace(lived(HOSTILE), leaves=[HOSTILE, "$x$", "_y", "\N{SNOWMAN}"])
    odd = replace(
        odd,
        refusals={HOSTILE: 3},
        series=replace(odd.series, gangs={HOSTILE: odd.series.gangs["leaf"]}),
    )
    illegal = replace(lived(NO_LETTERS), leaves=["\x1b", "2", "3", "4"], refusals={"\ud800": 1})
    return page_of(
        odd,
        lived("_hidden"),
        lived("$\\frac$"),
        illegal,
        about=[(HOSTILE, HOSTILE), (NO_LETTERS, NO_LETTERS)],
        notes=[HOSTILE, NO_LETTERS],
    )


def test_names_are_texts_whatever_they_hold(odd_names):
    assert not odd_names.all("script")
    words = "".join(odd_names.words)
    assert words.count(HOSTILE) > 10
    assert "$\\frac$" in words
    assert "$x$" in words
    keys = [each for each in odd_names.words if each.strip() == "_hidden"]
    assert len(keys) > 10


def test_letters_that_no_page_can_hold_are_replaced(odd_names):
    odd_names.text.encode()
    assert "\x00" not in odd_names.text
    replaced = "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert odd_names.text.count(replaced) > 10


@pytest.fixture(scope="module")
def short() -> str:
    """The page of one policy with few samples."""
    return report.page([lived("pack", samples=5)], ABOUT, NOTES)


def test_the_same_results_give_the_same_page_whatever_was_drawn_before(short):
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "lines.linewidth": 9}):
        assert report.page([lived("pack", samples=5)], ABOUT, NOTES) == short
    assert dict(matplotlib.rcParams) == before


def test_the_same_results_give_the_same_page_in_another_process(short):
    code = (
        "import hashlib\n"
        "from hpc_sched.sim import report\n"
        "from tests.sim_results import lived\n"
        f"page = report.page([lived('pack', samples=5)], {ABOUT!r}, {NOTES!r})\n"
        "print(hashlib.sha256(page.encode()).hexdigest())\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == hashlib.sha256(short.encode()).hexdigest() + "\n"


def one_sample(policy: str):
    return lived(policy, samples=1)


def idle(policy: str):
    """All waits are 0, nothing ever ran."""
    run = lived(policy)
    zeros = [0.0] * len(run.series.time)
    series = replace(
        run.series, vcpus=zeros, crossing=zeros, waiting=[0] * len(zeros), done=[0] * len(zeros)
    )
    return replace(run, waits=[0.0] * 201, slowdowns=[1.0] * 201, series=series)


@pytest.mark.parametrize(
    "results",
    [
        [],
        [empty("nothing")],
        [empty("nothing"), lived("something")],
        [one_sample("once")],
        [one_sample("once"), lived("often")],
        [idle("idle")],
        [replace(lived("numbers"), series=NO_SERIES)],
        [replace(lived("a"), leaves=[], series=replace(lived("a").series, leaves=[[]] * 20))],
        [lived("short", samples=3, step=1e-3)],
        [lived("long", samples=50, step=1e7)],
        [empty("odd", hop_byte_ratio=math.inf, leaf_ratio=math.nan, wait_mean=math.nan)],
        [replace(empty("a"), waits=[1e9] * 201, slowdowns=[1e8] * 201)],
    ],
    ids=[
        "no run",
        "a run without jobs",
        "one of two without jobs",
        "one sample",
        "one sample beside many",
        "nothing ever waits or runs",
        "numbers without samples",
        "no leaves",
        "milliseconds",
        "years",
        "numbers that are none",
        "waits of decades",
    ],
)
def test_a_page_is_made_of_any_run(results):
    page = page_of(*results)
    words = "".join(page.words)
    assert not re.search(r"\b(nan|inf|None)\b", words)
    numbers = " ".join(
        str(value) for name, attributes in page.tags for key, value in attributes.items()
        if key in ("d", "x", "y", "transform", "width", "height", "points")
    )  # fmt: skip
    assert "nan" not in numbers
    assert "inf" not in numbers
    assert bool(results) == ("No run has ended" not in words)


def test_a_plot_without_anything_to_draw_says_so():
    words = " ".join("".join(page_of(empty("nothing"), empty("either")).words).split())
    assert words.count("No run has anything to draw here.") == 11


def test_what_a_policy_has_nothing_to_draw_for_is_said():
    policies = policy_runs.by_policy([empty("nothing"), lived("something")])
    plot = timeline.plot(timeline.CROSSING, policies, time_axis.time_axis(policies))
    assert plot.missing == ("nothing",)
    assert [each.policy for each in plot.key] == ["something"]


def test_fourteen_policies_differ_in_colour_line_and_marker():
    looks = [line_style(number) for number in range(14)]
    assert len({each.marker for each in looks}) == 14
    assert len({(each.colour, each.dashes) for each in looks}) == 14


def means(results, of=columns.COLUMNS) -> policy_table.Table:
    return policy_table.means(of, policy_runs.by_policy(results), compare(results))


def test_the_best_of_a_column_is_marked_and_told():
    results = [
        empty("a", done=10, makespan=86400.0, hop_byte_ratio=1.001, wait_mean=None),
        empty("b", done=10, makespan=5000.0, hop_byte_ratio=1.002, wait_mean=None, refused=3),
        empty("c", done=10, makespan=6000.0, hop_byte_ratio=2.0, wait_mean=3.0),
    ]
    rows = means(results).rows
    best = {
        (column.group, column.name): [row.policy for row in rows if row.cells[i].is_best]
        for i, column in enumerate(columns.COLUMNS)
    }
    assert best["Jobs", "refused"] == ["a", "c"]
    assert best["Time", "makespan"] == ["b"]
    # What reads alike is equally good; where all are alike, or but one has a number, none is.
    assert best["Hop-Byte", "over least"] == ["a", "b"]
    assert best["Jobs", "failed"] == []
    assert best["Wait", "mean"] == []
    page = page_of(*results)
    row = next(cells for cells in page.cells if cells[0] == "b")
    assert row[1:5] == ["10", "3", "0", "★1h 23min"]
    assert policy_table.DASH in row
    assert {"title": "5000 s"} in page.all("span")


def test_core_hours_have_columns_and_the_revenue_has_one_where_there_are_prices():
    spread = empty("a", done=2, core_hours=100.0, host_core_hours=400.0)
    packed = empty("b", done=2, core_hours=80.0, host_core_hours=100.0)
    found = means([spread, packed])
    groups = [column.group for column in found.columns]
    first = groups.index("Core-hours")
    best = [[cell.is_best for cell in row.cells[first : first + 2]] for row in found.rows]
    assert best == [[False, False], [True, True]]
    assert "per host-hour" not in page_of(spread, packed).words
    # Of one run: the others have no price.
    earning = replace(packed.summary, revenue=40.0, revenue_per_host_hour=0.4)
    priced = means([spread, replace(packed, summary=earning)])
    of_a_host = [column.field for column in priced.columns].index("revenue_per_host_hour")
    assert [row.cells[of_a_host].text for row in priced.rows] == [policy_table.DASH, "0.4"]
    assert "per host-hour" in page_of(spread, replace(packed, summary=earning)).words


def test_what_is_about_other_jobs_is_not_marked_and_the_page_says_so():
    results = [empty("a", done=9, makespan=5.0), empty("b", done=10, makespan=9.0)]
    marked = {
        (row.policy, column.field)
        for row in means(results).rows
        for column, cell in zip(columns.COLUMNS, row.cells, strict=True)
        if cell.is_best
    }
    assert marked == {("b", "done")}
    words = "".join(page_of(*results).words)
    assert "The policies have not done equally many jobs" in words


def test_a_policy_that_has_done_nothing_is_best_in_nothing():
    results = [empty("idle"), empty("a", done=2, makespan=9.0), empty("b", done=2, makespan=8.0)]
    marked = {row.policy for row in means(results).rows if any(c.is_best for c in row.cells)}
    assert marked == {"b"}


def test_several_seeds_give_a_mean_and_a_range():
    results = [empty("a", seed=seed, done=done, drawn=True) for seed, done in ((1, 10), (2, 13))]
    cell = means(results).rows[0].cells[0]
    assert (cell.text, cell.span) == ("11.5", "10 to 13")
    [with_one] = means(results[:1]).rows
    assert with_one.cells[0].span == ""


@pytest.fixture(scope="module")
def ten() -> list:
    """Three policies with ten seeds: b waits 5 s less than a, c is not separated from a."""
    waits = {
        "a": [300.0 + 50 * seed for seed in range(10)],
        "b": [295.0 + 50 * seed + seed % 2 for seed in range(10)],
        "c": [300.0 + 50 * seed + (-1) ** seed for seed in range(10)],
    }
    return [
        replace(run, summary=replace(run.summary, wait_mean=wait, hop_byte_ratio=1.25))
        for policy in waits
        for seed, wait in enumerate(waits[policy], 1)
        for run in [lived(policy, seed)]
    ]


def test_ten_seeds_give_a_mean_with_its_interval(ten):
    found = means(ten, columns.IMPORTANT)
    index = [column.field for column in found.columns].index("wait_mean")
    cells = [row.cells[index] for row in found.rows]
    assert [cell.text for cell in cells] == ["8min 45s", "8min 40s", "8min 45s"]
    assert [cell.span for cell in cells] == ["± 1min 48s"] * 3
    assert [cell.is_best for cell in cells] == [False, True, False]
    assert cells[0].exact == "525 s"


def test_ten_seeds_give_a_table_of_differences_in_percent(ten):
    policies = policy_runs.by_policy(ten)
    found = policy_table.differences(columns.IMPORTANT, policies, compare(ten))
    index = [column.field for column in found.columns].index("wait_mean")
    assert [row.policy for row in found.rows] == ["b", "c"]
    separated, chance = (row.cells[index] for row in found.rows)
    assert (separated.text, separated.span, separated.is_open) == (
        "\N{MINUS SIGN}0.857",
        "± 0.072",
        False,
    )
    assert (chance.text, chance.is_open) == ("0", True)
    page = page_of(*ten)
    assert (3, "Differences to a, %") in page.headings
    assert "Means over 10 seeds" in "".join(page.words)
    assert (3, "Differences to a, %") not in page_of(*ten[:9], *ten[10:19]).headings


def test_two_seeds_mark_nothing_and_say_so(two):
    words = "".join(two.words)
    assert "2 seeds are too few for confidence intervals" in words
    assert not [each for each in two.all("span") if each.get("class") == "star"]


def test_the_main_table_has_the_measures_that_matter_and_the_other_one_the_rest():
    fields = [column.field for column in (*columns.IMPORTANT, *columns.OTHERS)]
    assert sorted(fields) == sorted(column.field for column in columns.COLUMNS)
    important = [column.field for column in columns.IMPORTANT]
    assert important[0] == "done"
    assert {"makespan", "wait_mean", "slowdown_mean"} < set(important)
    assert {"hop_byte_ratio", "leaf_ratio", "factor_mean"} < set(important)


def test_every_column_has_its_meaning():
    explained = " ".join(f"{name} {meaning}" for name, meaning in columns.MEANINGS).lower()
    for column in columns.COLUMNS:
        assert column.name.lower() in explained or column.group.lower() in explained


def test_the_first_seed_stands_for_a_policy():
    policies = policy_runs.by_policy([lived("b", 4), lived("a", 5), lived("b", 3)])
    assert [each.policy for each in policies] == ["b", "a"]
    assert policies[0].shown.summary.seed == 4
    assert "the first seed of each policy" in policy_runs.about_seeds(policies)


def test_refusals_are_told_by_reason_and_not_without_end():
    many = {f"group of {count} does not fit": 1 for count in range(40)}
    page = page_of(
        replace(empty("a"), refusals={"too large": 5, **many}),
        replace(empty("a", seed=2), refusals={"too large": 2}),
        empty("b"),
    )
    assert (2, "Refusals") in page.headings
    told = [cells for cells in page.cells if cells[-1] == "too large"]
    assert told == [["a", "7", "too large"]]
    assert ["29", "29 more reasons"] in page.cells
    assert (2, "Refusals") not in page_of(empty("b")).headings


def test_neighbouring_leaves_are_merged_where_there_are_many():
    run = lived("a", leaves=250)
    names, use = heat.rows(run)
    assert len(names) == len(use) == 84
    assert names[:2] == ["sw1", "sw4"]
    assert use[0, 0] == pytest.approx(sum(run.series.leaves[0][:3]) / 3)
    assert use[-1, 0] == pytest.approx(run.series.leaves[0][249])
    policies = policy_runs.by_policy([run])
    plot = heat.plot(policies, time_axis.time_axis(policies))
    assert "the mean of up to 3 neighbouring leaves" in plot.reading
    assert len(heat.rows(lived("a", leaves=100))[0]) == 100


def test_a_map_of_the_fabric_ends_where_its_run_ends():
    policies = policy_runs.by_policy([lived("short", samples=10), lived("long", samples=20)])
    widths = []
    for panel in heat.plot(policies, time_axis.time_axis(policies)).panels:
        image = re.search("<image [^>]*>", panel.svg)[0]
        widths.append(float(re.search(r'\bwidth="([\d.]+)"', image)[1]))
    # The last sample holds until the run ends.
    assert widths[0] / widths[1] == pytest.approx(10 / 20, abs=0.02)


def test_bars_have_their_values_and_plots_their_zeros():
    results = [lived("a", 1), lived("a", 2)]
    policies = policy_runs.by_policy(results)
    bars = comparisons.ratios(policies, compare(results))[0]
    assert ">1.88<" in bars.panels[0].svg
    assert "its whisker is the range" in bars.reading
    svg = comparisons.quantiles(policies)[0].panels[0].svg
    for tick in ("0", "10 s", "10 min"):
        assert f">{tick}<" in svg


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.25, "0.25 s"),
        (12.5, "12.5 s"),
        (60, "1min"),
        (319.6, "5min 20s"),
        (3599.7, "1h"),
        (3600 * 23 + 59 * 60, "23h 59min"),
        (86399, "1d"),
        (273_600, "3d 4h"),
        (86400 * 4000, "4,000d"),
    ],
)
def test_times_are_readable(seconds, text):
    assert columns.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "name"), [(0, "s"), (300, "min"), (7200, "h"), (86400, "h"), (86400 * 5, "d")]
)
def test_the_time_axis_has_a_unit_that_suits_it(seconds, name):
    assert time_axis.time_unit(seconds)[1] == name


def test_it_is_written_whole(tmp_path):
    result_files.write(tmp_path, [empty("\N{SNOWMAN}")], Settings(ABOUT, {}), NOTES)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.page(
        [empty("\N{SNOWMAN}")], ABOUT, NOTES
    )
    assert {path.name for path in tmp_path.iterdir()} == set(result_files.FILES)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "nowhere"
    error = re.escape(f"{path / 'runs.csv'}: cannot be written")
    with pytest.raises(exceptions.SimulationError, match=error):
        result_files.write(path, [], Settings([], {}), [])


def test_five_policies_make_a_page_below_two_megabytes():
    two = report.page([lived(f"{i}", samples=512, leaves=100) for i in range(2)], [], [])
    # What does not grow with the policies counts more than once, so this is an upper bound.
    assert len(two) / 2 * 5 < 2e6


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_named(package):
    code = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from hpc_sched import exceptions\n"
        "import hpc_sched.sim.scenario\n"
        "try:\n"
        "    import hpc_sched.sim.report\n"
        "except exceptions.SimulationError as error:\n"
        "    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == (
        f"the report needs the package {package}: pip install 'hpc-sched[sim]'\n"
    )
