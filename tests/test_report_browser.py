"""The report of a real simulation in a real browser: nothing is loaded, cut or on top of another.

Wants the extra ``browser``, and chromium and chromedriver, as Debian's packages have them.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_sched.sim import report
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs import distributions
from hpc_sched.sim.jobs.job_sources import Synthetic
from hpc_sched.sim.results import NETWORK_FIELDS, WAITING_FIELDS
from hpc_sched.sim.scenario import Run, Scenario, simulate
from hpc_sched.sim.statistics.columns import IMPORTANT, OTHERS
from tests.sim_results import lived

webdriver = pytest.importorskip("selenium.webdriver", reason="the extra browser is missing")

COMPARED = ("nova-default", "slurm-tree", "exact-plan")

# What of the page is not as it should be, a sentence each; the tolerance is for rounding.
FAULTS = """
const faults = [], slack = 1.5;
const box = element => element.getBoundingClientRect();
const page = document.documentElement;
if (page.scrollWidth > page.clientWidth)
  faults.push(`the page is ${page.scrollWidth} wide, the window ${page.clientWidth}`);
for (const svg of document.querySelectorAll('svg')) {
  // Tables are there twice, for wide and for narrow windows.
  const variant = svg.closest('.wide-window, .narrow-window');
  if (variant && variant.offsetParent === null) continue;
  const outer = box(svg);
  if (!(outer.width > 0 && outer.height > 0)) faults.push('a picture without a size');
  const texts = [...svg.querySelectorAll('text')];
  for (const text of texts) {
    const inner = box(text);
    if (inner.left < outer.left - slack || inner.right > outer.right + slack
        || inner.top < outer.top - slack || inner.bottom > outer.bottom + slack)
      faults.push(`${text.textContent} leaves its picture ${svg.getAttribute('aria-label')}`);
    for (const other of texts) {
      const b = box(other);
      if (text !== other && inner.left + slack < b.right && b.left + slack < inner.right
          && inner.top + slack < b.bottom && b.top + slack < inner.bottom)
        faults.push(`${text.textContent} is on top of ${other.textContent}`);
    }
  }
}
for (const element of document.querySelectorAll('h1, h2, h3, h4, li, p, figure, figcaption, dd')) {
  if (element.scrollWidth > element.clientWidth + slack)
    faults.push(`${element.tagName} runs over: ${element.textContent.trim().slice(0, 60)}`);
  if (box(element).right > page.clientWidth + slack)
    faults.push(`${element.tagName} is cut: ${element.textContent.trim().slice(0, 60)}`);
}
for (const key of document.querySelectorAll('.key')) {
  const picture = key.parentElement.querySelector('svg.plot');
  if (picture && box(key).bottom > box(picture).top + slack) faults.push('a key covers its plot');
}
return faults;
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of three policies with two seeds on 64 hosts; some jobs are refused.

    The time axes are cut: a few jobs end long after the others.
    """
    synthetic = Synthetic(
        count=120,
        interarrivals=distributions.read("exponential:60"),
        sizes=distributions.read("choice:1=4:4=4:16=3:48=1:999=1"),
        vcpus=4,
    )
    cluster = uniform(FatTree(levels=3, radix=8, hosts=64).topology(), HostType(8, 65536))
    scenario = Scenario(cluster, synthetic, queue="easy")
    results = [simulate(scenario, Run(policy, seed)) for policy in COMPARED for seed in (1, 2)]
    path = tmp_path_factory.mktemp("report") / "report.html"
    about = [("Jobs", "120, drawn"), ("Fabric", "levels=3,radix=8,oversubscription=1,hosts=64")]
    path.write_text(report.page(results, about, ["Walltimes are twice the runtimes."]))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator["webdriver.Chrome"]:
    """A browser that finds no other machine."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.mark.parametrize("width", [1280, 480, 390])
def test_everything_is_visible_and_nothing_is_loaded(browser, path, width):
    # A window cannot be as narrow as a telephone.
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get_log("performance")
    browser.get(path.as_uri())
    assert browser.execute_script("return innerWidth") == width
    # Two seeds, three levels and three policies: 8 plots of lines, 2 of bars, 3 and 3 of panels.
    assert browser.execute_script("return document.querySelectorAll('svg.plot').length") == 15
    assert "when the cluster has drained" in browser.page_source
    assert browser.execute_script(FAULTS) == []
    # What a page may not load by its own policy is an error in the console.
    assert browser.get_log("browser") == []
    asked = {url for url in requests(browser) if not url.startswith("data:")}
    assert asked == {path.as_uri()}


def requests(browser: "webdriver.Chrome") -> Iterator[str]:
    """Yield the addresses that the page has requested."""
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


@pytest.fixture(scope="module")
def ten_seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of all policies with ten seeds: long names, and numbers as long as they get."""
    results = []
    for number, policy in enumerate(POLICIES.names()):
        for seed in range(1, 11):
            run = lived(policy, seed, samples=5)
            summary = replace(
                run.summary,
                done=100_000 - 37 * seed * (number + 1),
                refused=12_345 + 11 * seed,
                left=54_321 + 17 * seed,
                makespan=11_111_111.0 + 43_210 * seed * (number + 1),
                wait_mean=1_987_654.0 + 43_210 * seed,
                slowdown_mean=12_345.0 + 678 * seed,
                hop_byte_ratio=12.3456 + 0.00123 * seed * (number + 1),
                leaf_ratio=123.456 + 0.0123 * seed,
                factor_mean=12.3456 + 0.00123 * seed,
            )
            results.append(replace(run, summary=summary))
    path = tmp_path_factory.mktemp("report") / "ten.html"
    command = f"hpc-sched simulate {'very-long/' * 30}jobs.swf.gz --policy all --seeds 10"
    about = [
        ("Command", command),
        ("Jobs", "100,000 of jobs.swf.gz"),
        ("Oversubscription", "1 : 1"),
    ]
    path.write_text(report.page(results, about, []))
    return path


def resize(browser: "webdriver.Chrome", width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.mark.parametrize("name", ["path", "ten_seeds"])
def test_the_main_measures_need_no_scrolling_at_1280_pixels(browser, name, request):
    resize(browser, 1280)
    browser.get(request.getfixturevalue(name).as_uri())
    assert browser.execute_script(FAULTS) == []
    tables = browser.execute_script(
        "return [...document.querySelectorAll('.wide-window table.main')].map(table => {"
        " const around = table.parentElement;"
        " return [around.scrollWidth - around.clientWidth,"
        "  [...table.querySelectorAll('thead tr:last-child th')].map(th => th.textContent)]; });"
    )
    assert len(tables) == (2 if name == "ten_seeds" else 1)
    for hidden, headings in tables:
        assert hidden == 0
        assert len(headings) == len(IMPORTANT)


@pytest.mark.parametrize("width", [390, 1920])
def test_a_report_of_ten_seeds_fits_into_narrow_and_wide_windows(browser, ten_seeds, width):
    resize(browser, width)
    browser.get(ten_seeds.as_uri())
    assert browser.execute_script(FAULTS) == []
    outside = browser.execute_script(
        "return [...document.querySelectorAll('.about dt, .about code')].filter("
        " each => each.scrollWidth > each.clientWidth + 1.5).map(each => each.textContent);"
    )
    assert outside == []


# What is hidden of the tables that are shown, a sentence each; and the measures in them.
TABLES = """
const shown = [...document.querySelectorAll('table')].filter(table => table.offsetParent);
const faults = [], measures = {}, room = document.documentElement.clientWidth;
for (const table of shown) {
  const around = table.parentElement;
  if (around.scrollWidth > around.clientWidth)
    faults.push(`${around.scrollWidth} px are in a table for ${around.clientWidth}`);
  for (const cell of table.querySelectorAll('th, td')) {
    const text = cell.textContent.trim().slice(0, 60), box = cell.getBoundingClientRect();
    if (cell.scrollWidth > cell.clientWidth + 1) faults.push(`${text} is cut`);
    if (box.left < 0 || box.right > room) faults.push(`${text} leaves the window`);
  }
}
for (const kind of ['main', 'others'])
  measures[kind] = shown.filter(table => table.classList.contains(kind)).map(table =>
    [...table.querySelectorAll('thead tr:last-child th')].map(th => th.textContent)).flat();
return [faults, measures];
"""


@pytest.mark.parametrize("width", [360, 390, 800, 1280, 1600])
@pytest.mark.parametrize("name", ["path", "ten_seeds"])
def test_every_measure_is_seen_without_scrolling(browser, name, width, request):
    resize(browser, width)
    browser.get(request.getfixturevalue(name).as_uri())
    faults, measures = browser.execute_script(TABLES)
    assert faults == []
    # With ten seeds the differences are a second table of the main measures.
    times = 2 if name == "ten_seeds" else 1
    assert measures["main"] == [column.name for column in IMPORTANT] * times
    # Neither prices nor a network.
    shown = [
        column.name
        for column in OTHERS
        if column.group != "Revenue" and column.field not in (*NETWORK_FIELDS, *WAITING_FIELDS)
    ]
    assert measures["others"] == shown


@pytest.mark.parametrize("width", [390, 1280])
def test_letters_of_pictures_are_legible(browser, path, width):
    resize(browser, width)
    browser.get(path.as_uri())
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].flatMap(svg => {"
        " const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;"
        " return [...svg.querySelectorAll('text')].map("
        "  text => scale * parseFloat(getComputedStyle(text).fontSize)); });"
    )
    assert min(sizes) > (7.5 if width == 390 else 11)


def test_pictures_are_clipped_by_their_own_paths(browser, path):
    browser.get(path.as_uri())
    elsewhere = browser.execute_script(
        "return [...document.querySelectorAll('svg [clip-path]')].filter(element => {"
        " const id = element.getAttribute('clip-path').slice(5, -1);"
        " return !element.closest('svg').querySelector(`#${id}`); }).length"
    )
    assert elsewhere == 0
