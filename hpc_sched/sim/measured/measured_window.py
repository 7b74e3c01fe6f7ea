"""The part of a run that is measured: a window of simulated time, stated in s or in % of the jobs.

============  ==================================================================
``3600,``     from 3600 s to the end of the run
``3600,7e4``  from 3600 s until before 70000 s
``20%,90%``   without the first 20 % of the jobs and the last 10 %
``,90%``      from the start, without the last 10 % of the jobs
``,``         the whole run
============  ==================================================================
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from hpc_sched import decimals, exceptions

FORM = "FROM,UNTIL, each a time in s, a percentage of the jobs as in 20%, or empty"
_PERCENT = "%"
_COUNTED = (
    "Jobs are those submitted in this time, whenever they end; use, makespan and core-hours are of "
    "this time alone"
)
_ALL = 100.0  # %


@dataclass(frozen=True, slots=True)
class Window:
    """Simulated time that is measured, s: from ``since``, and before ``until``."""

    since: float = 0.0
    until: float = math.inf

    def __str__(self) -> str:
        """Return the window for people."""
        end = f"until {self.until:g} s" if math.isfinite(self.until) else "to the end"
        return f"from {self.since:g} s {end}"

    def holds(self, time: float) -> bool:
        """True if a time is in the window."""
        return self.since <= time < self.until


WHOLE_RUN = Window()


@dataclass(frozen=True, slots=True)
class Bound:
    """One side of a stated window."""

    number: float
    is_share: bool = False  # in % of the jobs: the submission of the first job after them; else s

    @property
    def text(self) -> str:
        """The text that :func:`read` reads this bound from."""
        return decimals.text_of(self.number) + (_PERCENT if self.is_share else "")


START, END = Bound(0.0), Bound(math.inf)  # where a side is empty


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """The stated window; its times follow from the jobs of a run."""

    since: Bound = START
    until: Bound = END

    def __str__(self) -> str:
        """Return the text that :func:`read` reads this part from."""
        since = "" if self.since == START else self.since.text
        return f"{since},{'' if self.until == END else self.until.text}"

    @property
    def sentence(self) -> str:
        """What is measured, for people; without the last full stop."""
        since, until = self.since, self.until
        if since.is_share and until.is_share:
            time = (
                f"without the first {since.number:g} % of the jobs and the last "
                f"{_ALL - until.number:g} %"
            )
        else:
            start = _words(since) if since != START else "the start"
            time = f"from {start} {'to the end' if until == END else f'until {_words(until)}'}"
        return f"{time}. {_COUNTED}"

    def window(self, submits: Callable[[], Iterable[float]], jobs: int) -> Window:
        """Return the window in a run.

        :param submits: returns the submit times of the jobs in their order, s; called, and read as
            far as needed, if a bound is a percentage
        :param jobs: their number
        :raises exceptions.SimulationError: if the window is empty
        """
        bounds = self.since, self.until
        first = {b: int(Fraction(repr(b.number)) * jobs / 100) for b in bounds if b.is_share}
        submitted = dict.fromkeys(first.values(), math.inf)  # by the number of jobs before
        if first:
            for number, submit in zip(range(max(submitted) + 1), submits(), strict=False):
                if number in submitted:
                    submitted[number] = submit
        since, until = (submitted[first[b]] if b.is_share else b.number for b in bounds)
        if not since < until:
            raise exceptions.SimulationError(
                f"--measure {self}: expected FROM before UNTIL, found {since:g} s and {until:g} s"
            )
        return Window(since, until)


ALL_OF_IT = MeasuredPart()  # the whole run


def read(text: str, what: str) -> MeasuredPart:
    """Return the part stated by a text such as ``20%,90%`` or ``3600,``.

    :raises exceptions.ConfigError: stating what was expected
    """

    def error(expected: str) -> exceptions.ConfigError:
        return exceptions.ConfigError(f"{what}: expected {expected}, found {text[:80]!r}")

    def bound(stated: str, otherwise: Bound, all_of_it: float) -> Bound:
        if not stated:
            return otherwise
        number = decimals.number_in(stated.removesuffix(_PERCENT).rstrip())
        if number is None or number < 0:
            raise error(FORM)
        is_share = stated.endswith(_PERCENT)
        if is_share and number > _ALL:
            raise error("percentages of at most 100")
        # The whole run has one text.
        return otherwise if is_share and number == all_of_it else Bound(number, is_share)

    sides = [side.strip() for side in text.split(",")]
    if len(sides) != 2:
        raise error(FORM)
    since, until = bound(sides[0], START, 0.0), bound(sides[1], END, _ALL)
    # Bounds of two kinds are compared when the jobs are known.
    if since.is_share == until.is_share and not since.number < until.number:
        raise error("FROM before UNTIL")
    if since == Bound(_ALL, is_share=True):
        raise error("FROM below 100 %, as no job is left")
    return MeasuredPart(since, until)


def _words(bound: Bound) -> str:
    if bound.is_share:
        return f"the first job after {bound.number:g} % of the jobs"
    return f"{bound.number:g} s"
