"""A real Prometheus scrapes a scheduler and hpc-sched metrics; each query finds data."""

import http.server
import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nova.conf
import numpy as np
import pytest
import yaml
from keystoneauth1 import adapter, noauth, session
from nova.scheduler.client import report
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.read.room import shunned_hosts
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests import test_metric_alerts
from tests.functional.pods import states_of
from tests.functional.states import claims_succeed, offered, queue_of, run, spec, weigh
from tests.functional.worker_processes import free_port, wait
from tests.snapshots import flavor, saved

CONF = nova.conf.CONF

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Debian's package prometheus is missing"
)


@contextmanager
def started(*command: object) -> Iterator[None]:
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.fixture
def scheduler(two_pods: Path, tmp_path: Path) -> Iterator[str]:
    """Return the address of the metrics of this process."""
    address = f"127.0.0.1:{free_port()}"
    CONF.set_override("metrics_directory", str(tmp_path / "metrics"), "hpc_sched")
    CONF.set_override("metrics_address", address, "hpc_sched")
    CONF.set_override("metrics_project", True, "hpc_sched")
    worker.reset()
    yield address
    worker.reset()


@pytest.fixture
def slow_placement(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a server answer each claim after 6 s."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(6)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        sent = adapter.Adapter(
            session.Session(auth=noauth.NoAuth(endpoint=url)), service_type="placement"
        )
        client = report.SchedulerReportClient(adapter=sent)
        monkeypatch.setattr(report, "PLACEMENTCLIENT", client)
        yield
        server.shutdown()


def test_a_placement_that_is_slow_to_claim_is_alerted_about(
    scheduler, group, tmp_path, monkeypatch, slow_placement
):
    """The alert as it is delivered, but for its periods: 15 minutes are 10 and 2 seconds here."""
    port, queue = free_port(), queue_of(4)
    text = test_metric_alerts.RULES.read_text()
    rules = text.replace("request_seconds_bucket[15m]", "request_seconds_bucket[10s]")
    assert rules != text
    (tmp_path / "rules.yaml").write_text(rules.replace("for: 15m", "for: 2s"))
    conf = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(tmp_path / "rules.yaml")],
        "scrape_configs": [
            {"job_name": "hpc_sched", "static_configs": [{"targets": [scheduler]}]},
        ],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(conf))
    group(queue=queue, left=4)
    write = allocations.write
    claims_succeed(monkeypatch, queue)
    monkeypatch.setattr(allocations, "write", write)

    def decide() -> None:
        request = spec(count=4, uuid=queue[0])
        weigh(HopByteWeigher(), run(offered(states_of()), request, HPCGroupFilter()), request)

    def firing() -> set[str]:
        url = f"http://127.0.0.1:{port}/api/v1/alerts"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                alerts = json.load(answer)["data"]["alerts"]
        except OSError:
            return set()
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    with started(
        *("prometheus", f"--config.file={tmp_path}/prometheus.yml"),
        *(f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"),
    ):
        decide()
        assert "HPCSchedSlow" not in firing()
        # Increases need further decisions.
        for _ in range(2):
            threading.Thread(target=decide, daemon=True).start()
        wait(lambda: "HPCSchedSlow" in firing())


def test_each_query_of_the_dashboard_finds_data(scheduler, group, tmp_path, monkeypatch):
    found = {"failed builds (BuildFailureWeigher)": np.arange(32) < 3}
    monkeypatch.setattr(shunned_hosts, "find", lambda *_: found)
    group(left=4)
    cloud, port = f"127.0.0.1:{free_port()}", free_port()
    jobs = {"hpc_sched": scheduler, "hpc_sched_cloud": cloud}
    conf = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(test_metric_alerts.RULES)],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [address]}]}
            for job, address in jobs.items()
        ],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(conf))
    snapshot = saved(tmp_path, flavors=[flavor("hpc", app_class="sync")])
    code = "import sys; from hpc_sched.cli.main import main; sys.exit(main(sys.argv[1:]))"

    def ask(path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def decide() -> None:
        request = spec(count=4, uuid=uuids.instance)
        weigh(HopByteWeigher(), run(states_of(), request, HPCGroupFilter()), request)

    with (
        started(sys.executable, "-c", code, "metrics", "--snapshot", snapshot, "--listen", cloud),
        started(
            *("prometheus", f"--config.file={tmp_path}/prometheus.yml"),
            *(f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"),
        ),
    ):
        decide()
        wait(lambda: len((ask("query", query="up == 1") or {}).get("result", ())) == 2)
        # Increases need a second decision.
        threading.Timer(2, decide).start()
        left = dict(test_metric_alerts.queries())

        def find() -> bool:
            for title, query in list(left.items()):
                answer = ask("query", query=query)
                if answer and any(value["value"][1] != "NaN" for value in answer["result"]):
                    del left[title]
            return not left

        try:
            wait(find)
        except AssertionError:
            assert left == {}
        rules = [rule for part in ask("rules")["groups"] for rule in part["rules"]]
        assert {rule["health"] for rule in rules} == {"ok"}
        assert len(rules) == len(test_metric_alerts.rules())
