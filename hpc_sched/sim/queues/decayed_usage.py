"""What users have used of the cluster, where recent use counts more."""

import math
from collections.abc import Mapping

User = int | None  # None: jobs whose user is unknown


class DecayedUsage:
    """Usage of each user: vcpu-seconds, each halved once per half-life since it was used.

    With rate r(s) of the vcpus of a user's running jobs at time s and half-life H the usage at
    time t is the integral of r(s) * 2 ** (-(t - s) / H) over s up to t.
    """

    def __init__(self, half_life: float) -> None:
        """Start at time 0, without any usage.

        :param half_life: s, above 0
        """
        self._half_life = half_life
        self._time = 0.0
        self._usage: dict[User, float] = {}

    def advance(self, time: float, rates: Mapping[User, float]) -> None:
        """Advance to a time until which users have used the vcpus of ``rates``. O(users)."""
        decay = math.log(2) / self._half_life
        passed = time - self._time
        # What a vcpu that was used all this time counts at its end; expm1 is exact for short ones.
        one = -math.expm1(-decay * passed) / decay
        for user in {*self._usage, *rates}:
            kept = self._usage.get(user, 0.0) * math.exp(-decay * passed)
            self._usage[user] = kept + rates.get(user, 0.0) * one
        self._time = time

    def of(self, user: User) -> float:
        """Return the usage of a user at the time advanced to, vcpu-seconds."""
        return self._usage.get(user, 0.0)
