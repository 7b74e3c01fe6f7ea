"""The audit of our code and of what it depends on, with stand-ins for the tools and their services.

What no vulnerability service has answered is not audited, and must not pass as clean.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

CLEAN = "echo No known vulnerabilities found; exit 0"
FOUND = "echo Found 1 known vulnerability in 1 package; echo PyYAML 5.3 PYSEC-1; exit 1"
UNKNOWN = "echo ERROR: pyyaml: Dependency not found on PyPI >&2; exit 1"


def audit(folder: Path, bandit: str, **services: str) -> subprocess.CompletedProcess[str]:
    """Run the audit with tools that say this; pip-audit by the service that it is to ask."""
    cases = "".join(f"*--vulnerability-service' '{name}*) {do};;" for name, do in services.items())
    tools = {
        "bandit": bandit,
        "pip-audit": f'case "$*" in *--strict*) ;; *) exit 0;; esac\ncase "$*" in {cases} esac',
    }
    for name, does in tools.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    return subprocess.run(
        [ROOT / ".ci" / "audit"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
    )


@pytest.mark.parametrize(
    ("bandit", "services", "code", "told"),
    [
        ("exit 0", {"pypi": CLEAN, "osv": UNKNOWN}, 0, "pip-audit (pypi): no known vulnerability"),
        ("exit 0", {"pypi": UNKNOWN, "osv": CLEAN}, 0, "pip-audit (osv): no known vulnerability"),
        ("exit 0", {"pypi": FOUND, "osv": CLEAN}, 1, "PYSEC-1"),
        ("exit 0", {"pypi": UNKNOWN, "osv": FOUND}, 1, "PYSEC-1"),
        ("exit 0", {"pypi": UNKNOWN, "osv": UNKNOWN}, 2, "NOT AUDITED: no vulnerability service"),
        ("echo B602; exit 1", {"pypi": CLEAN, "osv": CLEAN}, 1, "B602"),
    ],
    ids=[
        "clean",
        "clean by the second service",
        "a vulnerability",
        "one by the second service",
        "no service answers",
        "bandit finds something",
    ],
)
def test_the_audit_passes_only_where_somebody_has_looked(tmp_path, bandit, services, code, told):
    done = audit(tmp_path, bandit, **services)
    assert told in done.stdout + done.stderr
    assert done.returncode == code
    assert ("NOT AUDITED" in done.stderr) == (code == 2)


@pytest.mark.ci
def test_bandit_has_nothing_to_say_of_the_package():
    """Each exception stands in the code, or in pyproject.toml, with its reason."""
    pytest.importorskip("bandit")
    done = subprocess.run(
        [sys.executable, "-m", "bandit", "-c", "pyproject.toml", "-r", "hpc_sched"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "No issues identified." in done.stdout
