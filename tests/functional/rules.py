"""The rules of Gupta2013 for VMs that share a host, said once more and exactly, for the tests."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations


@dataclass(frozen=True)
class Running:
    """A VM as its flavor describes it."""

    uuid: str
    app_class: str
    name: str | None
    score: Fraction
    group: str


def running(uuid: str, extra_specs: Mapping[str, str], group: str, in_group: bool) -> Running:
    """Return what a VM runs.

    :param in_group: whether it is in a server group; it is ``sync`` then where it says nothing
    """
    return Running(
        uuid,
        extra_specs.get("hpc:app_class", "sync" if in_group else "none"),
        extra_specs.get("hpc:app_name"),
        Fraction(extra_specs.get("hpc:cache_score", "0")),
        group,
    )


def broken(
    on_host: Collection[Running],
    alpha: float,
    beta: float,
    apart: Collection[frozenset[str]],
) -> list[str]:
    """Return the rules that the VMs of one host break.

    :param apart: pairs of applications that must not meet; of one name: each with itself
    """
    found = []
    if any(vm.app_class == "extreme" for vm in on_host):
        # An instance alone on its host is bound by nothing else there.
        if len({vm.group for vm in on_host}) > 1:
            found.append("beside extreme")
        return found
    score = sum(vm.score for vm in on_host)
    if score > Fraction(str(alpha)):
        found.append("alpha")
    if any(vm.app_class == "sync" for vm in on_host) and score > Fraction(str(beta)):
        found.append("beta")
    if any(
        frozenset({one.name, other.name}) in apart
        for one, other in combinations(on_host, 2)
        if one.name and other.name
    ):
        found.append("forbidden pair")
    return found
