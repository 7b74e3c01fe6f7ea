"""docs/examples/deployment: rendered by the tools that would, then read as nova-scheduler reads it.

kolla-ansible, kolla and openstack-ansible's config_template are real. The charts of OpenStack-Helm
are in no package: to_oslo_conf() does what their template of that name does with values.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import nova_conf_reading
from tests.deployment_tools import tool

pytest.importorskip("nova")

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples" / "deployment"
KOLLA = EXAMPLES / "kolla"
HELM = EXAMPLES / "openstack-helm"
OPENSTACK_ANSIBLE = EXAMPLES / "openstack-ansible" / "user_variables.yml"
WHEEL = "https://files.example.org/hpc_sched-"

# What the templates of the roles have in this section, with Blazar and without.
PLAIN = "[DEFAULT]\ndebug = False\n\n[filter_scheduler]\nmax_io_ops_per_host = 10\n"
BLAZAR = (
    f"{PLAIN}available_filters = nova.scheduler.filters.all_filters\n"
    "available_filters = blazarnova.scheduler.filters.blazar_filter.BlazarFilter\n"
    "enabled_filters = ComputeFilter,BlazarFilter\n"
)
ROLE = (
    f"{PLAIN}enabled_filters = "
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


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the plugins of Ansible have written."""
    program = tool("ansible-playbook")
    share = program.parents[1] / "share"
    places = [share / "kolla-ansible" / "ansible", share / "ansible" / "plugins"]
    for needed in (
        places[0] / "action_plugins" / "merge_configs.py",
        places[1] / "action" / "config_template.py",
    ):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not installed: pip install 'hpc-sched[deployment]'")
    folder = tmp_path_factory.mktemp("rendered")
    (folder / "plain.conf").write_text(PLAIN)
    (folder / "blazar.conf").write_text(BLAZAR)
    (folder / "role.conf.j2").write_text(ROLE)
    (folder / "placement.conf.j2").write_text(
        "[placement]\nrandomize_allocation_candidates = True\n"
    )

    def merged(base: str, override: Path, dest: str) -> dict[str, Any]:
        sources = [str(folder / base), str(override)]
        return {"merge_configs": {"sources": sources, "dest": str(folder / dest), "mode": "0600"}}

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
        merged("plain.conf", KOLLA / "nova-scheduler.conf", "kolla.conf"),
        merged("blazar.conf", KOLLA / "nova-scheduler.conf", "kolla-blazar.conf"),
        merged("placement.conf.j2", KOLLA / "placement.conf", "kolla-placement.conf"),
        templated("role.conf.j2", "nova_nova_conf_overrides", "osa.conf"),
        templated("placement.conf.j2", "placement_placement_conf_overrides", "osa-placement.conf"),
    ]
    variables = {
        "ansible_python_interpreter": sys.executable,
        "nova_scheduler_default_filters": ROLE_FILTERS,
    }
    play = {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    environment = {
        "ANSIBLE_ACTION_PLUGINS": f"{places[0] / 'action_plugins'}:{places[1] / 'action'}",
        "ANSIBLE_LIBRARY": f"{places[0] / 'library'}:{places[1] / 'modules'}",
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "ansible"),
    }
    done = subprocess.run(
        [program, "-i", "localhost,", "-c", "local", "-e", f"@{OPENSTACK_ANSIBLE}", "play.yml"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("name", ["kolla.conf", "kolla-blazar.conf"])
def test_kolla_ansible_replaces_all_lines_of_a_key_by_those_of_the_file(rendered, wanted, name):
    assert nova_conf_reading.read(rendered / name) == wanted
    assert "max_io_ops_per_host = 10" in (rendered / name).read_text()


def test_openstack_ansible_adds_to_its_filters_and_repeats_the_key(rendered, wanted):
    found = nova_conf_reading.read(rendered / "osa.conf")
    # A YAML set has no order, and the filters that are available need none.
    assert sorted(found["available_filters"]) == sorted(wanted["available_filters"])
    ours = [name for name in wanted["enabled_filters"] if name.startswith("HPC")]
    assert found["enabled_filters"] == [*ROLE_FILTERS, *ours]
    assert found["host_subset_size"] == 1
    for same in ("weight_classes", "weighers", "unknown_filters", "hpc_sched"):
        assert found[same] == wanted[same]


@pytest.mark.parametrize("name", ["kolla-placement.conf", "osa-placement.conf"])
def test_placement_does_not_retry_claims(rendered, name):
    lines = (rendered / name).read_text().split("\n")
    assert lines[0] == "[placement]"
    assert "allocation_conflict_retry_count = 1" in lines
    assert "randomize_allocation_candidates = True" in lines


def test_the_variables_of_kolla_ansible_are_those_of_its_role():
    share = tool("kolla-ansible").parents[1] / "share" / "kolla-ansible" / "ansible"
    defaults = yaml.safe_load((share / "roles" / "nova" / "defaults" / "main.yml").read_text())
    used = yaml.safe_load((KOLLA / "globals.yml").read_text())
    assert used
    assert used.keys() <= defaults.keys()
    [volume] = used["nova_scheduler_extra_volumes"]
    topology = _options(KOLLA / "nova-scheduler.conf")["topology_file"]
    assert topology.startswith(volume.split(":")[1] + "/")
    # The file is merged for the service of its name.
    assert "nova-scheduler" in defaults["nova_services"]
    config = (share / "roles" / "nova" / "tasks" / "config.yml").read_text()
    assert '"{{ node_custom_config }}/nova/{{ item.key }}.conf"' in config


def _options(path: Path) -> dict[str, str]:
    lines = (line.split(" = ") for line in path.read_text().splitlines() if " = " in line)
    return dict(lines)


def test_kolla_builds_images_of_scheduler_and_api_with_the_wheel(tmp_path: Path):
    override = KOLLA / "template-override.j2"
    images = ["nova-api", "nova-scheduler", "nova-conductor"]
    done = subprocess.run(
        [
            *(tool("kolla-build"), "--template-only", "--base", "debian"),
            *("--template-override", override, "--work-dir", tmp_path),
            f"^({'|'.join(images)})$",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {path.parent.name: path.read_text() for path in tmp_path.rglob("Dockerfile")}
    assert set(images) <= found.keys()
    having = {name for name, text in found.items() if "hpc_sched" in text}
    assert having == {"nova-api", "nova-scheduler"}
    for name in having:
        [line] = [line for line in found[name].splitlines() if "hpc_sched" in line]
        assert re.match(r"RUN python3 -m pip .*install .*" + re.escape(WHEEL), line)


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


def test_openstack_helm_repeats_the_key_and_joins_the_lists(tmp_path: Path, wanted):
    values = yaml.safe_load((HELM / "nova-values.yaml").read_text())
    assert values.keys() == {"images", "conf", "pod"}
    path = tmp_path / "nova.conf"
    path.write_text(to_oslo_conf(values["conf"]["nova"]))
    assert nova_conf_reading.read(path) == wanted
    mounts = values["pod"]["mounts"]["nova_scheduler"]["nova_scheduler"]
    [mount], [volume] = mounts["volumeMounts"], mounts["volumes"]
    assert mount["name"] == volume["name"]
    topology = values["conf"]["nova"]["hpc_sched"]["topology_file"]
    assert topology == f"{mount['mountPath']}/topology.yaml"
    placement = yaml.safe_load((HELM / "placement-values.yaml").read_text())
    assert to_oslo_conf(placement["conf"]["placement"]).endswith("retry_count = 1\n")


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.*")), ids=lambda path: path.name)
def test_no_snippet_has_a_secret(path: Path):
    assert not re.search("password|secret|token|://[^/]*@", path.read_text(), re.IGNORECASE)
