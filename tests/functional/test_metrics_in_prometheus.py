"""A real Prometheus scrapes a scheduler and hpc-sched metrics; each query finds data."""

import json
import shutil
import subprocess
import sys
import threading
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
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.room import shunned_hosts
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests import test_metric_alerts
from tests.functional.pods import states_of
from tests.functional.states import run, spec, weigh
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
