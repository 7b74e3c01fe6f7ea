"""A guard against what would not end: no measurement.

For work within one call of a built-in function, such as a search by a regular expression, of which
no steps can be counted: on the input of such a test, what is not linear takes hours.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Seconds of processor time, which do not pass while others compute; a hundred times what is needed.
MOST = 60.0


@contextmanager
def ends() -> Iterator[None]:
    """Raise an AssertionError if a block takes a minute of processor time; in the main thread."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not at its end after {MOST:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
