"""Least squares with what the rows determine, and what they do not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Of columns scaled to at most 1. What is smaller than the first is rounding; what the rows
# determine is resolved far better than the second, and what they do not far worse.
_ROUNDING = 1e-10
_RESOLVED = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The coefficients that come closest, the shortest of them where several do."""

    coefficients: Array  # shape (columns,)
    scale: Array  # shape (columns,): what makes the columns comparable in size
    resolution: Array  # shape (columns, columns), of scaled columns: onto what rows determine
    residuals: Array  # shape (rows,)
    freedom: int  # rows beyond what the coefficients take

    def determines(self, contrast: Array) -> bool:
        """Tell whether the rows determine a sum of coefficients with these weights."""
        scaled = contrast / self.scale
        scaled /= np.abs(scaled).max()
        return bool(np.abs(self.resolution @ scaled - scaled).max() < _RESOLVED)

    def comparable(self, columns: Sequence[int]) -> list[int]:
        """Return the most columns whose coefficients' differences are determined, in order.

        The first such columns where others are as many. O(columns³).
        """
        groups: list[list[int]] = []
        units = np.eye(len(self.coefficients))
        for column in columns:
            for group in groups:
                # Being comparable is transitive.
                if self.determines(units[column] - units[group[0]]):
                    group.append(column)
                    break
            else:
                groups.append([column])
        return max(groups, key=len, default=[])


def fitted(design: Array, values: Array, groups: Sequence[int]) -> Fit:
    """Return the fit of values to the columns of a design and a constant for each group of rows.

    The constants are taken out beforehand, so that there may be any number of groups.
    O(rows * columns²).

    :param design: shape (rows, columns)
    :param values: shape (rows,)
    :param groups: of each row, from 0
    """
    of = np.asarray(groups)
    rows = np.bincount(of)
    scale = np.abs(design).max(axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    x = design / scale
    x -= _means(x, of, rows)[of]
    y = values - _means(values[:, None], of, rows)[of, 0]
    coefficients, _, rank, _ = np.linalg.lstsq(x, y, rcond=_ROUNDING)
    return Fit(
        coefficients=coefficients / scale,
        scale=scale,
        resolution=np.linalg.pinv(x, rcond=_ROUNDING) @ x,
        residuals=y - x @ coefficients,
        freedom=len(values) - len(rows) - int(rank),
    )


def _means(columns: Array, groups: NDArray[np.int64], rows: NDArray[np.int64]) -> Array:
    sums = np.zeros((len(rows), columns.shape[1]))
    np.add.at(sums, groups, columns)
    means: Array = sums / rows[:, None]
    return means
