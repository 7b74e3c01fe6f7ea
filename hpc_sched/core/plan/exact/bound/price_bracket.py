"""The price of a leaf at which plans use as many leaves as are allowed."""

from fractions import Fraction

from hpc_sched.core.plan.exact.search import Point


class PriceBracket:
    """Prices at which the best plans use more leaves than allowed, and no more."""

    def __init__(self, limit: int, free: Point, known: Point) -> None:
        """Begin without a price, and with a plan that uses no more than ``limit`` leaves."""
        self.limit = limit
        self.high = free  # more leaves
        self.low: Point | None = None
        self._known, self._most = known, Fraction(free.saved - known.saved + 1)
        # Plans on few leaves cost more with each one less: the price is above the mean one.
        steep = 2 if 4 * known.leaves < 3 * free.leaves and known.leaves > 16 else 1
        self.price: Fraction | None = steep * self._to_known() // 1 + Fraction(1)  # to try next
        self._is_line = self._is_interpolated = False

    @property
    def line(self) -> Fraction:
        """The price at which the best plans with fewer and with more leaves are worth as much."""
        assert self.low is not None
        span = self.high.leaves - self.low.leaves
        return Fraction(self.high.saved - self.low.saved, span)

    @property
    def ends(self) -> list[Point]:
        """The best plans with fewer leaves, if known, and with more."""
        return [self.low, self.high] if self.low else [self.high]

    def add(self, point: Point) -> None:
        """Note the best plan at the price, and choose the next one; None if there is no better."""
        before, price = self.high, point.price
        has_ended = self._is_line and point.value(price) <= before.value(price)
        if point.leaves > self.limit:
            self.high = point
        else:
            self.low = point
        self.price = None if has_ended else self._next(before)

    def _to_known(self) -> Fraction:
        """Return the mean price of the leaves that a known plan uses less."""
        high, known = self.high, self._known
        return Fraction(high.saved - known.saved, high.leaves - known.leaves)

    def _next(self, before: Point) -> Fraction:
        high, low = self.high, self.low
        if low is None:
            # As far again as the leaves that are too many, by those that the last rise saved.
            rise = Fraction(high.leaves - self.limit + 1, max(before.leaves - high.leaves, 1))
            price = high.price + (high.price - before.price) * rise
            # At the most that a leaf can save no plan uses more leaves than the known one.
            return min(max(price, self._to_known()) // 1 + Fraction(1), self._most)
        span = high.leaves - low.leaves
        price = high.price + (low.price - high.price) * (high.leaves - self.limit) // span
        self._is_line = self._is_interpolated or not high.price < price < low.price
        self._is_interpolated = True
        # On the line both ends are worth as much: a secant.
        return self.line if self._is_line else Fraction(price)
