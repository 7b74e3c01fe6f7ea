"""What the VMs of a group send, as ``hpc:pattern`` states it."""

import math
import os
import re
from dataclasses import dataclass
from functools import lru_cache

from hpc_sched import exceptions, files
from hpc_sched.core.extra_spec_names import TRAFFIC
from hpc_sched.core.traffic import rank_bytes
from hpc_sched.core.traffic.matrix_file import content_of, matrix_in
from hpc_sched.core.traffic.patterns import PATTERNS, halo
from hpc_sched.core.traffic.rank_bytes import MOST_RANKS, Traffic

# All send the same to all others: crossings then depend on numbers of VMs alone.
_UNIFORM = ("uniform", "alltoall")


@dataclass(frozen=True, slots=True)
class StatedTraffic:
    """What a group's VMs send, as far as its pattern is usable."""

    traffic: Traffic | None  # None: uniform
    # Why a stated pattern counts as uniform, or None. Names files of the operator: not for tenants.
    remark: str | None = None


def stated_traffic(
    pattern: str | None, ranks: int, directory: files.Path | None = None
) -> StatedTraffic:
    """Return what the VMs of a group send; uniform, with a remark, for a pattern without use.

    A pattern is a preference: a group of another size than it has, or a file that cannot be read,
    refuses nothing. O(messages + ranks ** 2); for one of the last patterns O(1), or linear in the
    length of its file.

    :param pattern: value of ``hpc:pattern``; None: uniform
    :param ranks: VMs of the group, members included
    :param directory: of the operator's matrices; None without one
    """
    if pattern is None or pattern in _UNIFORM or not ranks:
        return StatedTraffic(None)
    try:
        return StatedTraffic(_traffic(pattern, ranks, directory))
    except exceptions.RequestError as error:
        return StatedTraffic(None, f"hpc:pattern={pattern[:80]}: {error}; planned as uniform")


def _traffic(pattern: str, ranks: int, directory: files.Path | None) -> Traffic:
    """Return what ranks send by a pattern.

    :raises exceptions.RequestError: for a pattern that does not fit the group or cannot be read
    """
    if re.fullmatch(TRAFFIC.pattern, pattern) is None:
        raise exceptions.RequestError(f"expected {TRAFFIC.expected}")
    if ranks > MOST_RANKS:
        raise exceptions.RequestError(f"expected at most {MOST_RANKS} VMs, the group has {ranks}")
    name, _, detail = pattern.partition(":")
    if name == "matrix":
        if directory is None:
            raise exceptions.RequestError("[hpc_sched] pattern_directory is not set")
        path = os.path.join(directory, f"{detail}.csv")
        return _of_matrix(content_of(path), path, ranks)
    return _of_steps(name, detail, ranks)


# A request needs its traffic for the plan and for remarks, and the next one needs it again. By the
# content: a file may have changed. At most 35 MB each.
@lru_cache(maxsize=2)
def _of_matrix(content: bytes, name: str, ranks: int) -> Traffic:
    return rank_bytes.of_matrix(matrix_in(content, name, ranks))


@lru_cache(maxsize=16)
def _of_steps(name: str, detail: str, ranks: int) -> Traffic:
    if not detail:
        return rank_bytes.of_steps(ranks, PATTERNS[name](ranks))
    sides = tuple(map(int, detail.split("x")))
    if math.prod(sides) != ranks:
        raise exceptions.RequestError(
            f"a grid of {math.prod(sides)} VMs, the group has {ranks}: state halo{len(sides)} for "
            "the sides that are nearest to each other"
        )
    return rank_bytes.of_steps(ranks, halo(sides))
