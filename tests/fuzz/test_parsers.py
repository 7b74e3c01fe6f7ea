"""Damaged inputs: a parser answers with a topology that holds, or with TopologyError; in time.

HPC_SCHED_FUZZ is how many inputs each parser gets, HPC_SCHED_FUZZ_SEED makes other ones. What
fails is written to a file that the failure names; the same seed and number give it again.
"""

import os
import resource
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.topology import Topology, hostlist
from hpc_sched.topology.readers import name_map, topology_driver
from hpc_sched.topology.readers.text_driver import Text, TextDriver
from tests import cpu_guard
from tests.fuzz import corpus
from tests.fuzz.corpus import Corpus
from tests.fuzz.mutation import mutated
from tests.unit.fabrics import check

COUNT = int(os.environ.get("HPC_SCHED_FUZZ", "1000"))
SEED = os.environ.get("HPC_SCHED_FUZZ_SEED", "0")
# Seconds of processor time for one input. All are small: most take a millisecond.
MOST_SECONDS = 5.0
# Memory of the process beyond that at its start; MemoryError is no TopologyError.
MOST_MEMORY = 1 << 30
# What is refused at a million names is refused at fewer here: fabrics.check looks at every host.
MOST_NAMES = 4000
MOST_PROBLEMS = 128
MOST_TEXT = 200_000

Parser = Callable[[bytes], object]


def text_drivers() -> Iterator[tuple[str, TextDriver]]:
    for name in topology_driver.driver_names():
        with suppress(exceptions.TopologyError):
            driver = topology_driver.driver(name, path="fuzz")
            if isinstance(driver, TextDriver):
                yield name, driver


def parsers() -> Iterator[object]:
    """Yield every parser with every corpus that it reads."""
    for name, driver in text_drivers():
        # A driver without a corpus gets those of all others.
        every = {form: each for forms in corpus.BY_DRIVER.values() for form, each in forms.items()}
        for form, texts in corpus.BY_DRIVER.get(name, every).items():
            yield pytest.param(_parsing(driver), texts, id=f"{name}: {form}")
    yield pytest.param(lambda text: name_map.NameMap(text, "fuzz"), corpus.NAME_MAP, id="name map")


def _parsing(driver: TextDriver) -> Parser:
    def parse(text: bytes) -> Topology:
        fabric = driver.parse(Text(text, "fuzz"))
        check(fabric)
        return fabric

    return parse


@contextmanager
def bounded_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def outcome(parse: Parser, text: bytes) -> str:
    """Return the kind of a parser's answer in one word, or its fault."""
    try:
        with cpu_guard.ends(MOST_SECONDS):
            parse(text)
    except exceptions.TopologyError as error:
        if not error.problems or not all(isinstance(each, str) for each in error.problems):
            return f"an error without a text: {error!r}"
        if len(error.problems) > MOST_PROBLEMS or sum(map(len, error.problems)) > MOST_TEXT:
            return f"too long an error: {len(error.problems)} problems"
        return "refused" if str(error).startswith("fuzz:") else f"a text without place: {error}"
    except cpu_guard.TooLong:
        return f"no end within {MOST_SECONDS:g} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "read"


@pytest.mark.parametrize(("parse", "texts"), parsers())
def test_the_corpus_itself_is_read(parse: Parser, texts: Corpus):
    assert [outcome(parse, text) for text in texts.texts] == ["read"] * len(texts.texts)


@pytest.mark.parametrize(("parse", "texts"), parsers())
def test_damaged_texts_are_read_or_refused(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parse: Parser,
    texts: Corpus,
):
    monkeypatch.setattr(hostlist, "MAX_NAMES", MOST_NAMES)
    seen: Counter[str] = Counter()
    parser = request.node.callspec.id
    with bounded_memory():
        for number in range(COUNT):
            text = mutated(texts, f"{parser} {SEED} {number}")
            found = outcome(parse, text)
            seen[found] += 1
            if found not in ("read", "refused"):
                path = tmp_path / "input"
                path.write_bytes(text)
                pytest.fail(f"{parser}, seed {SEED}, number {number}, in {path}: {found}")
    # Damage that is always refused, or never, would test half of a parser. That of ibnetdiscover
    # passes over most of it.
    assert COUNT < 500 or min(seen["read"], seen["refused"]) > COUNT // 200, seen
    print(f"{parser}: {dict(seen)}")


RANGE = "n[1-999999999]"
HUGE = [
    pytest.param("yaml", f"switches:\n- name: a\n  hosts: '{RANGE}'\n", id="yaml"),
    pytest.param("yaml", "switches:\n- name: a\n  hosts: 'r[1-9999]n[1-9999]'\n", id="a product"),
    pytest.param("slurm", f"SwitchName=a Nodes={RANGE}\n", id="nodes in topology.conf"),
    pytest.param("slurm", f"SwitchName=a Switches={RANGE}\n", id="switches in topology.conf"),
    pytest.param("slurm", f"BlockName=a Nodes={RANGE}\n", id="nodes of a block"),
    pytest.param(
        "slurm",
        f"- topology: t\n  tree:\n    switches:\n    - {{switch: a, nodes: '{RANGE}'}}\n",
        id="topology.yaml",
    ),
]


@pytest.mark.parametrize(("driver", "text"), HUGE)
def test_a_huge_range_is_refused_before_it_takes_memory(driver: str, text: str):
    made = topology_driver.driver(driver, path="fuzz")
    tracemalloc.start()
    try:
        noun = "switch" if "Switches=" in text else "host"
        with pytest.raises(exceptions.TopologyError, match=f"{noun} names; at most 1000000"):
            made.parse(Text(text.encode(), "fuzz"))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
