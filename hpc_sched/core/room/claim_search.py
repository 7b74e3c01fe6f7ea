"""How many VMs a host takes where each VM may be claimed in several ways."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hpc_sched.core.room.providers import Amounts, most_by_class, times, without

Use = TypeVar("Use")

# Claims that a search tries on one host, beyond one pass over the candidates for each VM.
EFFORT = 512
# The same where each claim is fitted by Nova's code, which takes some 0.3 ms; and such claims
# for all hosts of one request.
FIT_EFFORT = 32
MAX_FITS = 4096


def claim_order(candidates: Sequence[Amounts], free: Amounts, most: int) -> tuple[int, ...]:
    """Return the candidates of the largest number of VMs, up to ``most``, in order of the claims.

    A candidate may be named several times. If the search ends at its bound, the claims found are
    possible, but not proven the most.

    :param candidates: of one VM on this host; equal demands
    :param free: free amounts of the inventories that the candidates name
    """
    most = min([most, *most_by_class(free, candidates).values()])
    greedy = _greedy_order(candidates, free, most)
    if len(greedy) == most:
        return greedy
    found = fitted_order(candidates, free, most, (), lambda use, _: use, EFFORT)
    return max(greedy, found, key=len)


def _greedy_order(candidates: Sequence[Amounts], free: Amounts, most: int) -> tuple[int, ...]:
    """Return claims, each of the candidate of whose inventories most is left."""
    if len(candidates) == 1:
        return (0,) * min(most, times(free, candidates[0])) if candidates[0] else (0,) * most
    order: list[int] = []
    left = dict(free)
    while len(order) < most:
        parts = [[left.get(key, 0) // wanted[key] for key in wanted] for wanted in candidates]
        fitting = [number for number, each in enumerate(parts) if min(each, default=1) > 0]
        if not fitting:
            break
        best = max(fitting, key=lambda number: sum(parts[number]))
        order.append(best)
        left = without(left, candidates[best])
    return tuple(order)


def fitted_order(
    candidates: Sequence[Amounts],
    free: Amounts,
    most: int,
    use: Use,
    fit: Callable[[Use, int], Use | None],
    effort: int = FIT_EFFORT,
) -> tuple[int, ...]:
    """Return what :func:`claim_order` does, of candidates that must fit in another way too.

    Of equally long orders the first found. Depth first, each VM's candidate not before the one of
    the VM before it: claims commute. The first descent takes each candidate as often as it can be
    claimed.

    :param use: what VMs have taken before, in that other way
    :param fit: returns the use after one more VM with a candidate, or None if it does not fit
    :param effort: claims that are tried beyond those of the first descent
    """
    most = min([most, *most_by_class(free, candidates).values()])
    best: tuple[int, ...] = ()
    order: list[int] = []
    # Per VM: what is free and in use before its claim, and the next candidate to try.
    stack: list[tuple[Amounts, Use, int]] = [(free, use, 0)]
    effort += len(candidates) + most
    while stack and len(best) < most and effort > 0:
        left, used, number = stack.pop()
        del order[len(stack) :]
        if number == len(candidates):
            continue
        effort -= 1
        stack.append((left, used, number + 1))
        if any(left.get(key, 0) < amount for key, amount in candidates[number].items()):
            continue
        after = fit(used, number)
        if after is not None:
            order.append(number)
            best = max(best, tuple(order), key=len)
            stack.append((without(left, candidates[number]), after, number))
    return best
