"""Checks: the installed versions are those that this release is tested with, and pip has
registered the validators of extra specs.
"""

import importlib.metadata
import platform

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from hpc_sched import extensions
from hpc_sched.status.finding import Findings, Verdict, failure, good, warning
from hpc_sched.status.inspected_cloud import InspectedCloud

NAME = "hpc_sched"
_REINSTALL = "Install hpc-sched again with pip, as a whole."


def check_versions(_cloud: InspectedCloud, distribution: str = "hpc-sched") -> Verdict:
    """Return whether what a package requires, with its extra ``nova``, is installed."""
    package = importlib.metadata.distribution(distribution)
    # Where the package importlib_metadata is installed, absent keys raise KeyError.
    supported = "".join(package.metadata.get_all("Requires-Python") or ())
    version = platform.python_version()
    if version not in SpecifierSet(supported):
        yield failure(
            f"Python {version} is not supported: expected {supported}. Install Nova and hpc-sched "
            "for such a Python."
        )
    shown = [f"Python {version}"]
    for requirement in map(Requirement, package.requires or ()):
        name, specifier = requirement.name, requirement.specifier
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": "nova"}):
            continue
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield failure(f"{name} is not installed: pip install '{name}{specifier}'.")
            continue
        shown.append(f"{name} {version}")
        if not specifier.contains(version, prereleases=True):
            yield failure(
                f"Nova {version} is not supported: this release of hpc-sched is tested with "
                f"{specifier}. Nova promises nothing to out-of-tree filters; look "
                "for a release of hpc-sched that supports it before you upgrade."
                if name == "nova"
                else f"{name} {version} is not supported: pip install '{name}{specifier}'."
            )
    return ", ".join(sorted(shown, key=str.lower)) + "."


def check_validators(
    _cloud: InspectedCloud, group: str = "nova.api.extra_spec_validators"
) -> Findings:
    """Return whether nova-api, if it runs here, validates ``hpc:`` extra specs by entry point."""
    points = extensions.points(group).select(name=NAME)
    if not points:
        yield warning(
            f"There is no entry point {NAME} in {group}: nova-api here lets misspelt hpc: "
            f"extra specs pass. {_REINSTALL}"
        )
        return
    try:
        number = len(next(iter(points)).load().register())
    except Exception as error:
        # A broken installation may raise anything; nova-api would get the same error.
        yield failure(
            f"The validators of hpc: extra specs cannot be loaded: {type(error).__name__}: "
            f"{error}. {_REINSTALL}"
        )
    else:
        yield good(
            f"{number} extra specs are validated by nova-api where hpc-sched is installed: also "
            "install it on every other host that runs one."
        )
