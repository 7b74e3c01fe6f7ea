"""Running VMs that break the rules for sharing a host (Gupta2013)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hpc_sched.core.sharing.cache_interference import Application, Limits, dedicated_room, room

DEDICATION, CACHE_SCORES, INTERFERENCE = "dedicated host", "cache scores", "interference"

_NO_LIMITS = Limits(math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold on one host."""

    rule: str  # DEDICATION, CACHE_SCORES or INTERFERENCE
    text: str  # what does not hold
    vms: tuple[str, ...]  # that could not join the others today; sorted


def violations(
    vms: Mapping[str, Application],
    limits: Limits,
    incompatible: Callable[[str | None], frozenset[str]] = lambda _name: frozenset(),
    *,
    by_limits: bool = True,
) -> list[Violation]:
    """Return the rules that the VMs of a host break. O(VMs of the host ** 2).

    :param vms: applications by name, or uuid
    :param incompatible: returns the applications with which one must not share a host
    :param by_limits: whether cache scores and the interference index count
    """

    def alone(room_of: Callable[[Application, list[Application]], int]) -> tuple[str, ...]:
        return tuple(
            name
            for name, vm in sorted(vms.items())
            if not room_of(vm, [there for other, there in vms.items() if other != name])
        )

    rules = [(DEDICATION, "class extreme with VMs of others", alone(dedicated_room))]
    if by_limits:
        total = math.fsum(vm.score for vm in vms.values())
        has_sync = any(vm.app_class == "sync" for vm in vms.values())
        most = min(limits.alpha, limits.beta) if has_sync else limits.alpha
        text = f"{total:g} of at most {most:g}" + (" with class sync" if has_sync else "")
        rules += [
            (CACHE_SCORES, text, alone(lambda vm, others: room(vm, others, limits))),
            (
                INTERFERENCE,
                "applications that the index keeps apart",
                alone(lambda vm, others: room(vm, others, _NO_LIMITS, incompatible(vm.name))),
            ),
        ]
    return [Violation(rule, text, found) for rule, text, found in rules if found]
