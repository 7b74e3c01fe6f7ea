"""A guard against what would not end: no measurement.

For work of which no steps can be counted, such as a search by a regular expression within one call:
on the input of such a test, what is not linear takes hours.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Seconds of processor time, which do not pass while others compute; a hundred times what is needed.
MOST = 60.0


class TooLong(BaseException):  # what is tested may catch any Exception
    """A block has not ended."""


@contextmanager
def ends(seconds: float = MOST) -> Iterator[None]:
    """Raise TooLong in a block that takes more processor time; in the main thread.

    A call into C is interrupted at its end, or where it looks for signals itself.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooLong(f"not at its end after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
