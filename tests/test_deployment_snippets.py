"""docs/examples/deployment: rendered by the tools that would, then read as nova-scheduler reads it.

openstack-ansible's config_template is real. The charts of OpenStack-Helm are in no package:
to_oslo_conf() does what their template of that name does with values. For kolla-ansible see
``test_kolla_ansible.py``.
"""

import copy
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import deployment_tools, nova_conf_reading

pytest.importorskip("nova")
pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples" / "deployment"
HELM = EXAMPLES / "openstack-helm"
OPENSTACK_ANSIBLE = EXAMPLES / "openstack-ansible" / "user_variables.yml"
# Management addresses, to what they are in a URL.
ADDRESSES = {"172.29.236.101": "172.29.236.101", "fd00::12": "[fd00::12]"}

# What the template of the role has in this section.
ROLE = (
    "[DEFAULT]\ndebug = False\n\n[filter_scheduler]\nmax_io_ops_per_host = 10\nenabled_filters = "
    "{{ (nova_scheduler_default_filters + nova_scheduler_extra_filters) | join(',') }}\n"
    "host_subset_size = {{ nova_scheduler_host_subset_size }}\n"
)
ROLE_FILTERS = ["ComputeFilter", "AggregateIoOpsFilter", "ServerGroupAntiAffinityFilter"]


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    """Return what etc/nova.conf.sample enables, with the default class of the snippets."""
    found = nova_conf_reading.read(ROOT / "etc" / "nova.conf.sample")
    found["hpc_sched"]["default_app_class"] = "none"
    return found


@pytest.fixture(scope="module", params=ADDRESSES)
def address(request: pytest.FixtureRequest) -> str:
    """Return the address of a host in the management network."""
    return request.param


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory, address: str) -> Path:
    """Return a folder with the files that openstack-ansible has written."""
    plugins = deployment_tools.openstack_ansible_plugins()
    folder = tmp_path_factory.mktemp("rendered")
    (folder / "role.conf.j2").write_text(ROLE)
    (folder / "placement.conf.j2").write_text(
        "[placement]\nrandomize_allocation_candidates = True\n"
    )

    def templated(src: str, variable: str, dest: str) -> dict[str, Any]:
        return {
            "config_template": {
                "src": str(folder / src),
                "dest": str(folder / dest),
                "config_type": "ini",
                "config_overrides": f"{{{{ {variable} }}}}",
            }
        }

    tasks = [
        templated("role.conf.j2", "nova_nova_conf_overrides", "nova.conf"),
        templated("placement.conf.j2", "placement_placement_conf_overrides", "placement.conf"),
    ]
    # Of the inventory that openstack-ansible generates, and of the role.
    variables = {"management_address": address, "nova_scheduler_default_filters": ROLE_FILTERS}
    play = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": tasks}
    deployment_tools.play(
        folder,
        [play],
        {"ACTION_PLUGINS": plugins / "action", "LIBRARY": plugins / "modules"},
        {"hosts": {"localhost": deployment_tools.LOCAL}},
        "-e",
        f"@{OPENSTACK_ANSIBLE}",
    )
    return folder


def test_openstack_ansible_adds_to_its_filters_and_repeats_the_key(rendered, wanted, address):
    found = nova_conf_reading.read(rendered / "nova.conf")
    # A YAML set has no order, and the filters that are available need none.
    assert sorted(found["available_filters"]) == sorted(wanted["available_filters"])
    ours = [name for name in wanted["enabled_filters"] if name.startswith("HPC")]
    assert found["enabled_filters"] == [*ROLE_FILTERS, *ours]
    assert found["host_subset_size"] == 1
    for same in ("weight_classes", "weighers", "unknown_filters"):
        assert found[same] == wanted[same]
    assert found["hpc_sched"] == wanted["hpc_sched"] | {
        "metrics_address": f"{ADDRESSES[address]}:18774"
    }


def test_placement_does_not_retry_claims(rendered):
    lines = (rendered / "placement.conf").read_text().split("\n")
    assert lines[0] == "[placement]"
    assert "allocation_conflict_retry_count = 1" in lines
    assert "randomize_allocation_candidates = True" in lines


def to_oslo_conf(sections: Mapping[str, Any]) -> str:
    """Return what OpenStack-Helm's helm-toolkit.utils.to_oslo_conf makes of conf.nova."""

    def lines(key: str, value: Any) -> list[str]:
        if isinstance(value, list):
            return [f"{key} = {','.join(map(str, value))}"]
        if isinstance(value, dict):
            values = [str(item) for item in value["values"]]
            values = values if value["type"] == "multistring" else [",".join(values)]
            return [f"{key} = {item}" for item in values]
        return [] if value is None else [f"{key} = {value}"]

    text = ""
    for section, values in sorted(sections.items()):
        found = [line for key, value in sorted(values.items()) for line in lines(key, value)]
        text += "\n".join([f"[{section}]", *found, ""])
    return text


@pytest.fixture(scope="module")
def helm() -> dict[str, Any]:
    """Return the values for the chart of Nova."""
    found: dict[str, Any] = yaml.safe_load((HELM / "nova-values.yaml").read_text())
    return found


def test_openstack_helm_repeats_the_key_and_joins_the_lists(tmp_path: Path, wanted, helm):
    assert helm.keys() == {"images", "conf", "pod"}
    path = tmp_path / "nova.conf"
    path.write_text(to_oslo_conf(helm["conf"]["nova"]))
    found = nova_conf_reading.read(path)
    # $host is the name of the pod, which /etc/hosts of the pod has with the pod's address.
    ours = {
        "metrics_address": f"{socket.gethostname()}:18774",
        "metrics_directory": "/var/lib/hpc_sched/metrics",
    }
    assert found == wanted | {"hpc_sched": wanted["hpc_sched"] | ours}
    placement = yaml.safe_load((HELM / "placement-values.yaml").read_text())
    assert to_oslo_conf(placement["conf"]["placement"]).endswith("retry_count = 1\n")


def test_openstack_helm_mounts_the_topology_and_a_place_for_metrics(helm):
    """The chart makes the root of the container read-only, state_path of Nova too."""
    added = helm["pod"]["mounts"]["nova_scheduler"]["nova_scheduler"]
    volumes = {volume.pop("name"): volume for volume in copy.deepcopy(added["volumes"])}
    places = {mount["mountPath"]: mount for mount in added["volumeMounts"]}
    options = helm["conf"]["nova"]["hpc_sched"]
    topology = places[str(Path(options["topology_file"]).parent)]
    assert topology["readOnly"]
    assert volumes[topology["name"]] == {"configMap": {"name": "hpc-sched-topology"}}
    # A folder below: every user may write to the emptyDir itself, which is refused for metrics.
    metrics = places[str(Path(options["metrics_directory"]).parent)]
    assert "readOnly" not in metrics
    assert volumes[metrics["name"]].keys() == {"emptyDir"}
    assert len(volumes) == len(places) == 2


def test_the_scrape_job_finds_the_scheduler_of_a_pod_for_the_alerts(tmp_path: Path, helm):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: Debian's package prometheus")
    [job] = yaml.safe_load((HELM / "prometheus-scrape.yaml").read_text())

    def container(name: str, component: str = "scheduler") -> dict[str, Any]:
        pod = {"pod_container_name": name, "pod_ip": "10.1.2.3", "pod_name": f"nova-{component}-1"}
        labels = {"pod_label_application": "nova", "pod_label_component": component}
        meta = {f"__meta_kubernetes_{key}": value for key, value in (pod | labels).items()}
        return {"targets": ["10.1.2.3"], "labels": meta}

    # What Kubernetes would answer.
    del job["kubernetes_sd_configs"]
    names = [("nova-scheduler",), ("init",), ("nova-conductor", "conductor")]
    job["static_configs"] = [container(*name) for name in names]
    path = tmp_path / "prometheus.yml"
    path.write_text(yaml.safe_dump({"scrape_configs": [job]}))
    done = subprocess.run(
        [promtool, "check", "service-discovery", "--timeout=2s", path, "hpc_sched"],
        capture_output=True,
        check=True,
    )
    [target] = [each["labels"] for each in json.loads(done.stdout) if each["labels"]]
    [port] = re.findall(":([0-9]+)$", helm["conf"]["nova"]["hpc_sched"]["metrics_address"])
    assert target["__address__"] == f"10.1.2.3:{port}"
    assert (target["job"], target["instance"]) == ("hpc_sched", "nova-scheduler-1")


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.*")), ids=lambda path: path.name)
def test_no_snippet_has_a_secret(path: Path):
    assert not re.search("password|secret|token|://[^/]*@", path.read_text(), re.IGNORECASE)
