"""The application classes that MDOBP places (Gupta2013, Algorithm 1)."""

from collections.abc import Collection

# Every class but extreme, which has dedicated hosts: the published algorithm packs all of these.
CHOICES = ("sync", "async", "none")
# Without none: requests that are not HPC are placed as by Nova alone.
DEFAULT = ("sync", "async")


def places(app_class: str, classes: Collection[str]) -> bool:
    """True if MDOBP, where it is enabled, chooses the hosts of a class.

    :param classes: some of :data:`CHOICES`
    """
    return app_class in CHOICES and app_class in classes
