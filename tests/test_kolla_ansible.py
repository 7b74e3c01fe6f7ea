"""docs/examples/deployment/kolla and its page, by the real kolla and kolla-ansible."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import deployment_tools, nova_conf_reading
from tests.deployment_tools import kolla_ansible, tool

pytest.importorskip("nova")

ROOT = Path(__file__).resolve().parents[1]
KOLLA = ROOT / "docs" / "examples" / "deployment" / "kolla"
PAGE = (ROOT / "docs" / "deployment" / "kolla-ansible.rst").read_text()
WHEEL = "https://files.example.org/hpc_sched-"
OURS = {"nova-api", "nova-scheduler"}

# What the templates of the roles have, with Blazar and without.
PLAIN = "[DEFAULT]\ndebug = False\n\n[filter_scheduler]\nmax_io_ops_per_host = 10\n"
BLAZAR = (
    f"{PLAIN}available_filters = nova.scheduler.filters.all_filters\n"
    "available_filters = blazarnova.scheduler.filters.blazar_filter.BlazarFilter\n"
    "enabled_filters = ComputeFilter,BlazarFilter\n"
)
PROMETHEUS = "scrape_configs:\n  - job_name: node\n    static_configs: [{targets: [mon1:9100]}]\n"
# Facts of their interface, as Ansible gathers them.
HOSTS = {
    "ctl1": {"facts": {"ipv4": {"address": "10.0.0.11"}}},
    "ctl2": {
        "facts": {"ipv6": [{"address": "fd00::12", "scope": "global"}]},
        "api_address_family": "ipv6",
    },
}
INVENTORY = {
    "hosts": HOSTS,
    "vars": {**deployment_tools.LOCAL, "api_interface": "eth0"},
    "children": {"nova-scheduler": {"hosts": {host: {} for host in HOSTS}}},
}


def defaults(role: str) -> dict[str, Any]:
    """Return the default variables of a role."""
    path = kolla_ansible() / "roles" / role / "defaults" / "main.yml"
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what kolla-ansible writes for both hosts, and with the images' names."""
    folder, share = tmp_path_factory.mktemp("rendered"), kolla_ansible()
    (folder / "group_vars").symlink_to(share / "group_vars")
    (folder / "plain.conf").write_text(PLAIN)
    (folder / "blazar.conf").write_text(BLAZAR)
    (folder / "placement.conf").write_text("[placement]\nrandomize_allocation_candidates = True\n")
    (folder / "prometheus.yml").write_text(PROMETHEUS)
    for host in HOSTS:
        (folder / host).mkdir()

    def merged(
        base: str, override: str, dest: str, module: str = "merge_configs"
    ) -> dict[str, Any]:
        arguments = {
            "sources": [str(folder / base), str(KOLLA / override)],
            "dest": str(folder / "{{ inventory_hostname }}" / dest),
            "mode": "0600",
        }
        return {module: arguments | ({"extend_lists": True} if module == "merge_yaml" else {})}

    services = defaults("nova")["nova_services"] | defaults("nova-cell")["nova_cell_services"]
    images = {name: service["image"] for name, service in services.items()}
    files = [
        str(share / "roles" / role / "defaults" / "main.yml") for role in ("nova", "nova-cell")
    ]

    def named(dest: str, *more: str) -> dict[str, Any]:
        # As with kolla-ansible globals.yml is stronger than group_vars and the defaults of roles.
        content = {"content": "{{ images | to_json }}", "dest": str(folder / dest)}
        return {
            "hosts": "ctl1",
            "gather_facts": False,
            "vars_files": [*files, *more],
            "vars": {"images": images},
            "tasks": [{"copy": content}],
        }

    tasks = [
        {"set_fact": {"eth0": "{{ facts }}", "cacheable": True}},
        merged("plain.conf", "nova-scheduler.conf", "plain.conf"),
        merged("blazar.conf", "nova-scheduler.conf", "blazar.conf"),
        merged("placement.conf", "placement.conf", "placement.conf"),
        merged("prometheus.yml", "prometheus.yml", "prometheus.yml", "merge_yaml"),
    ]
    plugins = {
        "ACTION_PLUGINS": share / "action_plugins",
        "FILTER_PLUGINS": share / "filter_plugins",
        "LIBRARY": share / "library",
    }
    plays = [
        {"hosts": "all", "gather_facts": False, "tasks": tasks},
        named("before.json"),
        named("after.json", str(KOLLA / "globals.yml")),
    ]
    deployment_tools.play(folder, plays, plugins, INVENTORY)
    return folder


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    """Return what etc/nova.conf.sample enables, with what the snippet has of its own."""
    found = nova_conf_reading.read(ROOT / "etc" / "nova.conf.sample")
    ours = {"default_app_class": "none", "metrics_address": "10.0.0.11:18774"}
    return found | {"hpc_sched": found["hpc_sched"] | ours}


@pytest.mark.parametrize("name", ["plain.conf", "blazar.conf"])
def test_the_lines_of_the_file_replace_all_lines_of_a_key(rendered: Path, wanted, name: str):
    assert nova_conf_reading.read(rendered / "ctl1" / name) == wanted
    assert "max_io_ops_per_host = 10" in (rendered / "ctl1" / name).read_text()


def test_placement_does_not_retry_claims(rendered: Path):
    lines = (rendered / "ctl1" / "placement.conf").read_text().split("\n")
    assert lines[0] == "[placement]"
    assert "allocation_conflict_retry_count = 1" in lines
    assert "randomize_allocation_candidates = True" in lines


def test_prometheus_scrapes_the_address_that_each_scheduler_serves(rendered: Path):
    served = [
        re.findall("(?m)^metrics_address = (.*)$", (rendered / host / "plain.conf").read_text())
        for host in HOSTS
    ]
    assert served == [["10.0.0.11:18774"], ["[fd00::12]:18774"]]
    node, ours = yaml.safe_load((rendered / "ctl1" / "prometheus.yml").read_text())[
        "scrape_configs"
    ]
    assert (node["job_name"], ours["job_name"]) == ("node", "hpc_sched")
    assert [each["targets"] for each in ours["static_configs"]] == served
    if promtool := shutil.which("promtool"):
        subprocess.run(
            [promtool, "check", "config", rendered / "ctl1" / "prometheus.yml"], check=True
        )


def test_kolla_ansible_reads_the_files_of_prometheus_by_these_names():
    path = kolla_ansible() / "roles" / "prometheus" / "tasks" / "config.yml"
    found = {task["name"]: task for task in yaml.safe_load(path.read_text()) if "name" in task}
    rules = found["Find custom prometheus alert rules files"]["find"]
    assert rules == {"path": "{{ node_custom_config }}/prometheus/", "pattern": "*.rules"}
    assert "``/etc/kolla/config/prometheus/hpc_sched.rules``" in PAGE
    jobs = found["Find prometheus common config overrides"]["find"]
    assert jobs["paths"] == ["{{ node_custom_config }}/prometheus/prometheus.yml.d"]
    assert jobs["patterns"] == "*.yml"
    assert "``/etc/kolla/config/prometheus/prometheus.yml.d/hpc_sched.yml``" in PAGE
    # Our rules have {{ }} of Prometheus, which no template may replace.
    assert "copy" in found["Copying over custom prometheus alert rules files"]


def test_the_variables_are_those_of_the_role():
    found, used = defaults("nova"), yaml.safe_load((KOLLA / "globals.yml").read_text())
    assert used
    assert used.keys() <= found.keys()
    [volume] = used["nova_scheduler_extra_volumes"]
    [topology] = re.findall("topology_file = (.*)", (KOLLA / "nova-scheduler.conf").read_text())
    assert topology.startswith(volume.split(":")[1] + "/")
    # The file is merged for the service of its name.
    assert "nova-scheduler" in found["nova_services"]
    config = (kolla_ansible() / "roles" / "nova" / "tasks" / "config.yml").read_text()
    assert '"{{ node_custom_config }}/nova/{{ item.key }}.conf"' in config


@pytest.fixture(scope="module")
def dockerfiles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the Dockerfile of each image that the command of the page builds, by image."""
    [text] = re.findall(r"(?m)^   (kolla-build (?:.*\\\n)*.*)$", PAGE)
    program, *arguments = shlex.split(text.replace("\\\n", ""))
    assert "--push" in arguments
    folder = tmp_path_factory.mktemp("images")
    done = subprocess.run(
        [tool(program), "--template-only", "--work-dir", folder, *arguments],
        cwd=KOLLA,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.parent.name: path.read_text() for path in folder.rglob("Dockerfile")}


def test_the_images_of_scheduler_and_api_are_built_with_the_wheel(dockerfiles: dict[str, str]):
    assert dockerfiles.keys() == {"base", "openstack-base", "nova-base", *OURS}
    for name, text in dockerfiles.items():
        found = [line for line in text.splitlines() if "hpc_sched" in line]
        assert len(found) == (name in OURS)
        for line in found:
            assert re.match(r"RUN python3 -m pip .*install .*" + re.escape(WHEEL), line)


def test_kolla_ansible_pulls_the_images_that_are_built_and_no_others(
    rendered: Path, dockerfiles: dict[str, str]
):
    before, after = (
        json.loads((rendered / name).read_text()) for name in ("before.json", "after.json")
    )
    for name in OURS:
        # kolla gives an image the registry, namespace and tag of its parent.
        [parent] = re.findall("(?m)^FROM (.*/)nova-base(:.*)$", dockerfiles[name])
        assert after[name] == name.join(parent)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {*OURS, "nova-metadata"}
    assert after["nova-metadata"] == after["nova-api"]
    for name in ("nova-compute", "nova-libvirt", "nova-ssh", "nova-conductor"):
        assert after[name].startswith(f"quay.io/openstack.kolla/{name}:")
