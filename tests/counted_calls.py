"""What a function costs, as the number of calls that it makes.

A number of calls is the same on a busy machine, and in each run; seconds are not.
"""

import itertools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(function: Callable[[], object]) -> int:
    """Return the number of calls of functions, Python's and built-in ones, that a function makes.

    Calls in threads that it starts count too.
    """
    count = itertools.count()

    def note(_frame: FrameType, event: str, _called: Any) -> None:
        if event in ("call", "c_call"):
            next(count)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return next(count)
