"""Check: Nova, Python and the libraries are of versions that this release is tested with."""

import importlib.metadata
import platform
import sys

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from hpc_sched.status.check_result import Finding, failure, good
from hpc_sched.status.inspected_cloud import Cloud

DISTRIBUTION = "hpc-sched"


def check(_cloud: Cloud, distribution: str = DISTRIBUTION) -> list[Finding]:
    """Return whether what a package requires, with its extra ``nova``, is installed.

    :param distribution: the package
    """
    package = importlib.metadata.distribution(distribution)
    found: list[Finding] = []
    python = package.metadata["Requires-Python"] or ""
    if platform.python_version() not in SpecifierSet(python):
        found.append(
            failure(
                f"Python {platform.python_version()} is not supported: expected {python}. "
                "Install Nova and hpc-sched for such a Python."
            )
        )
    versions = []
    for text in package.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": "nova"}):
            versions.append(_judge(requirement, found))
    shown = [f"Python {'.'.join(map(str, sys.version_info[:3]))}", *filter(None, versions)]
    return found or [good(", ".join(sorted(shown, key=str.lower)) + ".")]


def _judge(requirement: Requirement, found: list[Finding]) -> str | None:
    """Return a library with its version, and note where that is not the required one."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        found.append(
            failure(f"{requirement.name} is not installed: pip install '{_wanted(requirement)}'.")
        )
        return None
    if not requirement.specifier.contains(version, prereleases=True):
        found.append(_unsupported(requirement, version))
    return f"{requirement.name} {version}"


def _unsupported(requirement: Requirement, version: str) -> Finding:
    if requirement.name == "nova":
        return failure(
            f"Nova {version} is not supported: this release of hpc-sched is tested with "
            f"{requirement.specifier}. Nova promises nothing to out-of-tree filters; look for a "
            "release of hpc-sched that supports it before you upgrade."
        )
    return failure(
        f"{requirement.name} {version} is not supported: pip install '{_wanted(requirement)}'."
    )


def _wanted(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"
