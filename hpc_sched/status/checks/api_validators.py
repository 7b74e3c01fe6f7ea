"""Check: nova-api, where it runs on this host, checks the extra specs of the hpc: namespace."""

import importlib.metadata

from hpc_sched.status.check_result import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import Cloud

GROUP = "nova.api.extra_spec_validators"
NAME = "hpc_sched"


def check(_cloud: Cloud, group: str = GROUP) -> list[Finding]:
    """Return whether the validators are installed.

    :param group: the entry points among which Nova looks for them
    """
    points = importlib.metadata.entry_points(group=group, name=NAME)
    if not points:
        return [
            warning(
                f"There is no entry point {NAME} in {group}: nova-api here lets misspelt hpc: "
                "extra specs pass. Install hpc-sched again with pip, as a whole."
            )
        ]
    try:
        number = len(next(iter(points)).load().register())
    except Exception as error:
        # Whatever a broken installation raises; nova-api would meet the same.
        return [
            failure(
                f"The validators of hpc: extra specs cannot be loaded: {type(error).__name__}: "
                f"{error}. Install hpc-sched again with pip, as a whole."
            )
        ]
    return [
        good(
            f"{number} extra specs are validated by nova-api where hpc-sched is installed: also "
            "install it on every other host that runs one."
        )
    ]
