"""Where the sample files of etc/ are: in the source tree, or where pip has put them."""

import sysconfig
from pathlib import Path

from hpc_sched import exceptions


def path_of(name: str) -> Path:
    """Return the path of a sample file.

    :raises exceptions.HPCSchedError: naming the places looked at
    """
    places = [
        Path(__file__).resolve().parents[2] / "etc" / name,
        Path(sysconfig.get_path("data")) / "etc" / "hpc_sched" / name,
        Path(sysconfig.get_path("data", sysconfig.get_preferred_scheme("user")))
        / "etc"
        / "hpc_sched"
        / name,
    ]
    for place in places:
        if place.is_file():
            return place
    raise exceptions.HPCSchedError(
        f"{name} is at none of {', '.join(str(place) for place in places)}"
    )
