"""The kinds of rounds, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cloud import return_rounds, rounds
from tests.cloud.bursts import BURSTS, Burst
from tests.cloud.deployment import Deployment
from tests.cloud.rounds import Round
from tests.contention.timeline import CallLog

Kind = Callable[[Deployment, CallLog, Sequence[Path], random.Random], Round]


def _burst(draw: Callable[[random.Random], Burst]) -> Kind:
    def run(
        cloud: Deployment, log: CallLog, decisions: Sequence[Path], numbers: random.Random
    ) -> Round:
        return rounds.run(cloud, log, decisions, draw(numbers))

    return run


KINDS: Mapping[str, Kind] = {
    **{name: _burst(draw) for name, draw in BURSTS.items()},
    "evacuation": return_rounds.evacuation,
    "unshelve": return_rounds.unshelve,
}
