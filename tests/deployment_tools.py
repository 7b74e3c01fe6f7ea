"""Programs of the extra ``deployment``, which a few tests need."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}


def tool(name: str) -> Path:
    """Return the path of a program in this environment or on PATH; skip the test without it."""
    here = Path(sys.executable).parent / name
    found = here if here.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed: pip install 'hpc-sched[deployment]'")
    return Path(found)


def kolla_ansible() -> Path:
    """Return the folder with the roles, variables and plugins of kolla-ansible."""
    return tool("kolla-ansible").parents[1] / "share" / "kolla-ansible" / "ansible"


def openstack_ansible_plugins() -> Path:
    """Return the folder with the plugins of openstack-ansible; skip the test without them."""
    found = tool("ansible-playbook").parents[1] / "share" / "ansible" / "plugins"
    if not (found / "action" / "config_template.py").exists():
        pytest.skip("config_template is not installed: pip install 'hpc-sched[deployment]'")
    return found


def play(
    folder: Path,
    plays: list[dict[str, Any]],
    plugins: dict[str, Path],
    inventory: dict[str, Any],
    *arguments: str,
) -> None:
    """Run plays in a folder; AssertionError with what Ansible says if that fails.

    :param plugins: folders by kind: ACTION_PLUGINS, FILTER_PLUGINS, LIBRARY
    """
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": inventory}))
    places = dict.fromkeys(("HOME", "LOCAL_TEMP", "REMOTE_TEMP"), folder / "ansible") | plugins
    done = subprocess.run(
        [tool("ansible-playbook"), "-i", "inventory.yml", *arguments, "play.yml"],
        cwd=folder,
        env=os.environ | {f"ANSIBLE_{name}": str(path) for name, path in places.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
