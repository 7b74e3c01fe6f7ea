"""The dashboard and the alert rules: valid for their programs, and about metrics that there are."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from hpc_sched.cli.metrics import cloud_metrics
from hpc_sched.metrics import catalogue

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "etc" / "prometheus" / "hpc_sched.rules.yaml"
RULE_TESTS = ROOT / "tests" / "prometheus" / "hpc_sched.test.yaml"
DASHBOARD = ROOT / "etc" / "grafana" / "hpc_sched.json"
PAGE = ROOT / "docs" / "operator" / "metrics.rst"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: Debian's package prometheus"
)
# What Grafana puts in place of its variables.
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*", "$flavor": ".*"}
# Of Prometheus itself, or of the scrape.
UP = "up"
OF_SCRAPE = {"instance", "job"}


def promtool(*arguments: object) -> str:
    """Return what promtool prints; its exit code must be 0."""
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported() -> dict[str, set[str]]:
    """Return the names of all series that our code exports, each with its labels."""
    found = {}
    for metric in catalogue.METRICS:
        labels = set(metric.labels)
        if metric.kind == catalogue.HISTOGRAM:
            found |= {f"{metric.name}_{part}": labels for part in ("sum", "count")}
            found[f"{metric.name}_bucket"] = labels | {"le"}
        else:
            found[metric.exposed_name] = labels
    for name in cloud_metrics.HELP:
        found[cloud_metrics.PREFIX + name] = set(cloud_metrics.LABELS.get(name, ()))
    return found


def rules() -> list[dict[str, Any]]:
    """Return the alerts."""
    return [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text())


def queries() -> dict[str, str]:
    """Return the expressions of the dashboard by the panel, with values for its variables."""
    found = {}
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            found[f"{panel['title']} {target['refId']}"] = text
    return found


def expressions() -> dict[str, str]:
    return queries() | {rule["alert"]: rule["expr"] for rule in rules()}


def selectors(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the metrics of an expression, each with the labels that select its series."""
    for name, labels in re.findall(r"\b(hpc_sched_\w+|up)\b(?:\{([^}]*)\})?", text):
        yield name, set(re.findall(r"(\w+)\s*=?[=!~]", labels))


@needs_promtool
def test_the_rules_are_valid_and_pass_their_unit_tests():
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", RULE_TESTS)


@needs_promtool
def test_a_rule_that_is_changed_fails_its_unit_tests(tmp_path: Path):
    changed = tmp_path / "rules.yaml"
    changed.write_text(RULES.read_text().replace(", 3600)", ", 36000)"))
    tests = tmp_path / "test.yaml"
    tests.write_text(
        RULE_TESTS.read_text().replace(f"../../etc/prometheus/{RULES.name}", changed.name)
    )
    with pytest.raises(AssertionError, match="HPCSchedTopologyOld"):
        promtool("test", "rules", tests)


def test_each_alert_fires_and_keeps_quiet_in_some_unit_test():
    tests = yaml.safe_load(RULE_TESTS.read_text())["tests"]
    checks = [check for test in tests for check in test["alert_rule_test"]]
    alerts = {rule["alert"] for rule in rules()}
    assert {check["alertname"] for check in checks if check.get("exp_alerts")} == alerts
    assert {check["alertname"] for check in checks if not check.get("exp_alerts")} == alerts


def test_each_alert_has_texts_a_severity_and_a_section_of_the_page():
    titles = re.findall(r"^(HPCSched\w+)\n-+$", PAGE.read_text(), re.MULTILINE)
    assert titles == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        anchor = rule["alert"].lower()
        assert rule["annotations"]["runbook_url"] == f"operator/metrics.html#{anchor}"


@needs_promtool
def test_prometheus_can_parse_each_query_of_the_dashboard(tmp_path: Path):
    path = tmp_path / "queries.yaml"
    recorded = [{"record": f"q{i}", "expr": text} for i, text in enumerate(queries().values())]
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in promtool("check", "rules", path)
    assert len(recorded) > 25


@pytest.mark.parametrize("title", expressions())
def test_a_query_is_about_metrics_and_labels_that_the_code_exports(title: str):
    known = exported() | {UP: OF_SCRAPE}
    found = list(selectors(expressions()[title]))
    assert found
    for name, labels in found:
        assert name in known
        assert labels <= known[name] | OF_SCRAPE
    grouped = {
        label
        for labels in re.findall(r"\bby \(([^)]*)\)", expressions()[title])
        for label in labels.split(", ")
    }
    assert grouped <= set.union(*(known[name] for name, _ in found)) | OF_SCRAPE


def test_each_metric_is_shown_or_alerted_about():
    shown = {name for text in expressions().values() for name, _ in selectors(text)}
    left = {name for name in exported() if name not in shown}
    assert {name for name in left if not name.endswith(("_sum", "_count"))} == set()


def test_labels_in_legends_and_texts_are_those_of_the_query():
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            by = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            assert used <= by, panel["title"]


def test_grafanas_schema_has_every_key_and_value_of_the_dashboard():
    plugins.register_default_plugins()
    read = Dashboard.from_json(dashboard())
    # What the schema does not know is lost on the way back.
    back = json.loads(JSONEncoder(sort_keys=True).encode(read))
    assert list(lost(dashboard(), back)) == []
    broken = dashboard()
    broken["panels"][1]["fieldConfig"]["defaults"]["untis"] = "s"
    back = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(broken)))
    assert list(lost(broken, back)) == ["/panels/1/fieldConfig/defaults/untis"]


def lost(given: Any, back: Any, path: str = "") -> Iterator[str]:
    """Yield what differs, by its place in what was given."""
    if isinstance(given, dict) and isinstance(back, dict):
        for key, value in given.items():
            if key not in back:
                yield f"{path}/{key}"
            else:
                yield from lost(value, back[key], f"{path}/{key}")
    elif isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        for i, pair in enumerate(zip(given, back, strict=True)):
            yield from lost(*pair, f"{path}/{i}")
    elif given != back:
        yield path


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        grid = panel["gridPos"]
        here = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert max(x for x, _ in here) < 24
        assert taken.isdisjoint(here), panel["title"]
        taken |= here
