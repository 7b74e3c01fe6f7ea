"""When flows end that begin together: shares are computed again at every end."""

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.network.fair_rates import FairRates
from hpc_sched.sim.network.flows import Flows

# A flow with less than this part of its bytes left has ended: flows that end together do so up to
# rounding only.
DONE = 1e-12


def finish_times(capacity: Reals, links: Array, size: Reals, block: Array, others: Flows) -> Reals:
    """Return when each transfer has sent all its bytes, s after its block has begun.

    Rates are computed again whenever a transfer ends, in all blocks at a time: as often as the
    block with the most different ends needs it. Transfers that are alike are one row. Shape
    (transfers,).

    :param capacity: bytes/s by link; the last one is unbounded, and pads paths
    :param links: of each transfer, each at most once. Shape (transfers, longest path)
    :param size: bytes. Shape (transfers,)
    :param block: of each transfer; those of one block begin together, and blocks know nothing of
        each other. Shape (transfers,)
    :param others: flows that never end, in every block
    :raises ValueError: for a size that is negative, infinite or NaN
    """
    if not (np.isfinite(size) & (size >= 0)).all():
        raise ValueError("the size of a transfer must be a number of at least 0")
    ends = np.zeros(len(size))
    none = len(capacity) - 1
    sent = np.flatnonzero((size > 0) & (links != none).any(axis=1))
    if not len(sent):
        return ends
    blocks, of_block = np.unique(block[sent], return_inverse=True)
    count = len(blocks)
    every = Flows.on(links[sent]) + others.rows(np.tile(np.arange(len(others.links)), count))
    block = np.concatenate([of_block, np.repeat(np.arange(count), len(others.links))])
    sizes = np.concatenate([size[sent], np.full(count * len(others.links), np.inf)])
    # A link of one block is another one in the next.
    used, index = np.unique(every.links, return_inverse=True)
    of_blocks = np.append(np.tile(capacity[used], count), np.inf)
    index = index.reshape(every.links.shape) + block[:, None] * len(used)
    apart = np.where(every.links == none, len(of_blocks) - 1, index)
    # A link that one transfer alone uses does not make it another kind, only its capacity.
    is_private = np.bincount(apart.ravel(), minlength=len(of_blocks)) == 1
    own = np.where(is_private[apart], of_blocks[apart], np.inf).min(axis=1)
    apart = np.where(is_private[apart], len(of_blocks) - 1, apart)
    bound = np.minimum(every.bound, own / every.weight)
    _, first, row_of = np.unique(
        np.column_stack([block, apart, sizes, bound]),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    row_of = row_of.ravel()
    weight: Reals = np.bincount(row_of, every.weight).astype(np.float64)
    alike = Flows(apart[first], weight, bound[first])
    found = _ends(FairRates(of_blocks, alike), sizes[first], block[first])
    ends[sent] = found[row_of[: len(sent)]]
    return ends


def _ends(rates: FairRates, size: Reals, block: Array) -> Reals:
    """Return when each row ends. Rows are in the order of their blocks."""
    left, ends = size.copy(), np.full(len(size), np.inf)
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    now = np.zeros(len(starts))
    is_finite = np.isfinite(size)
    active = np.ones(len(size), dtype=np.bool_)
    while True:
        goes_on = np.logical_or.reduceat(active & is_finite, starts)
        active &= goes_on[block]
        if not active.any():
            return ends
        rate = rates.of(active)
        need = np.divide(left, rate, out=np.full(len(left), np.inf), where=active & is_finite)
        step = np.minimum.reduceat(need, starts)
        step[~goes_on] = 0.0
        now += step
        left -= np.where(active & is_finite, step[block] * rate, 0.0)
        over = active & is_finite & ((need <= step[block]) | (left <= DONE * size))
        ends[over] = now[block[over]]
        active &= ~over
