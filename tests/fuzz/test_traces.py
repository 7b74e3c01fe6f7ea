"""Damaged job traces: every row is a record or counted with a reason, or there is a TraceError.

HPC_SCHED_FUZZ and HPC_SCHED_FUZZ_SEED as in test_parsers.
"""

import gzip
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from hpc_sched.exceptions import TraceError
from hpc_sched.sim.jobs import swf
from hpc_sched.sim.jobs.swf import TraceStatistics
from tests import cpu_guard
from tests.fuzz.corpus import SWF
from tests.fuzz.mutation import mutated
from tests.fuzz.test_parsers import COUNT, MOST_SECONDS, SEED, bounded_memory


def outcome(path: Path) -> str:
    """Return the kind of a trace reader's answer in one word, or its fault."""
    counts = TraceStatistics()
    records = []
    try:
        with cpu_guard.ends(MOST_SECONDS):
            records.extend(swf.read(path, statistics=counts))
    except TraceError as error:
        return "refused" if str(error).startswith(f"{path}:") else f"an error: {error}"
    if counts.rows != counts.usable + counts.unusable.total() or counts.usable != len(records):
        return f"rows that are not counted: {counts}"
    for record in records:
        numbers = (record.submit, record.runtime, record.requested_time or 0.0)
        if not all(math.isfinite(each) and each >= 0 for each in numbers) or record.processors < 1:
            return f"a record that cannot be: {record}"
    order = [(record.submit, record.line) for record in records]
    return "read" if order == sorted(order) else f"records out of order: {order}"


@pytest.mark.parametrize("form", ["plain", "compressed", "compressed, then damaged"])
def test_damaged_traces_are_read_or_refused(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(swf, "HELD", 2)
    path = tmp_path / "trace.swf"
    seen: Counter[str] = Counter()
    with bounded_memory():
        for number in range(COUNT // 3):
            seed = f"{form} {SEED} {number}"
            text = mutated(SWF, seed)
            if form != "plain":
                text = gzip.compress(text, 1, mtime=0)
            if form == "compressed, then damaged":
                at = random.Random(seed).randrange(len(text))
                text = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
            path.write_bytes(text)
            found = outcome(path)
            seen[found] += 1
            if found not in ("read", "refused"):
                pytest.fail(f"{form}, seed {SEED}, number {number}, in {path}: {found}")
    # Damage that is always refused, or never, would test half of the reader.
    assert COUNT < 1500 or min(seen["read"], seen["refused"]) > COUNT // 1000, seen
    print(f"{form}: {dict(seen)}")
