"""Types of the arrays that the algorithms work on."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Reals: TypeAlias = NDArray[np.float64]
