"""Checks: the installed versions are those that this release is tested with, and pip has
registered the validators of extra specs.
"""

import importlib.metadata
import platform

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from hpc_sched.status.finding import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import InspectedCloud

DISTRIBUTION = "hpc-sched"
VALIDATORS = "nova.api.extra_spec_validators"
NAME = "hpc_sched"
_REINSTALL = "Install hpc-sched again with pip, as a whole."


def check_versions(_cloud: InspectedCloud, distribution: str = DISTRIBUTION) -> list[Finding]:
    """Return whether what a package requires, with its extra ``nova``, is installed.

    :param distribution: the package
    """
    package = importlib.metadata.distribution(distribution)
    found: list[Finding] = []
    supported = package.metadata["Requires-Python"] or ""
    version = platform.python_version()
    if version not in SpecifierSet(supported):
        found.append(
            failure(
                f"Python {version} is not supported: expected {supported}. "
                "Install Nova and hpc-sched for such a Python."
            )
        )
    shown = [f"Python {version}"]
    for requirement in map(Requirement, package.requires or ()):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": "nova"}):
            continue
        wanted = f"{requirement.name}{requirement.specifier}"
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            found.append(failure(f"{requirement.name} is not installed: pip install '{wanted}'."))
            continue
        shown.append(f"{requirement.name} {version}")
        if requirement.specifier.contains(version, prereleases=True):
            continue
        if requirement.name == "nova":
            found.append(
                failure(
                    f"Nova {version} is not supported: this release of hpc-sched is tested with "
                    f"{requirement.specifier}. Nova promises nothing to out-of-tree filters; look "
                    "for a release of hpc-sched that supports it before you upgrade."
                )
            )
        else:
            found.append(
                failure(f"{requirement.name} {version} is not supported: pip install '{wanted}'.")
            )
    return found or [good(", ".join(sorted(shown, key=str.lower)) + ".")]


def check_validators(_cloud: InspectedCloud, group: str = VALIDATORS) -> list[Finding]:
    """Return whether nova-api, where it runs on this host, validates ``hpc:`` extra specs.

    :param group: the entry points among which Nova looks for validators
    """
    points = importlib.metadata.entry_points(group=group, name=NAME)
    if not points:
        return [
            warning(
                f"There is no entry point {NAME} in {group}: nova-api here lets misspelt hpc: "
                f"extra specs pass. {_REINSTALL}"
            )
        ]
    try:
        number = len(next(iter(points)).load().register())
    except Exception as error:
        # A broken installation may raise anything; nova-api would get the same error.
        return [
            failure(
                f"The validators of hpc: extra specs cannot be loaded: {type(error).__name__}: "
                f"{error}. {_REINSTALL}"
            )
        ]
    return [
        good(
            f"{number} extra specs are validated by nova-api where hpc-sched is installed: also "
            "install it on every other host that runs one."
        )
    ]
