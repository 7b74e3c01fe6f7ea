"""Files and commands that would run something, or grow without end, are read as data in bounds.

YAML is composed to nodes and never made into objects.
"""

import os
import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_sched import exceptions, topology
from hpc_sched.core.sharing import interference_file
from hpc_sched.snapshot.source import snapshot_file
from hpc_sched.topology.readers import command_output
from tests.counted_calls import calls_of
from tests.snapshots import snapshot


def _driver(name: str) -> Callable[[Path], object]:
    return lambda path: topology.load(name, path=str(path))


# All that is read as YAML.
READERS = {
    "yaml": _driver("yaml"),
    "slurm": _driver("slurm"),
    "interference": interference_file.read_index,
}
ERRORS = (exceptions.TopologyError, exceptions.InterferenceError)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system [touch {0}]",
        "!!python/object/new:os.system [touch {0}]",
        "!!python/object/apply:subprocess.check_output [[touch, {0}]]",
    ],
)
@pytest.mark.parametrize("around", ["{0}", "- {0}", "switches: {0}", "- [{0}, a, 1, 1]"])
def test_a_yaml_file_runs_nothing(tmp_path: Path, kind: str, tag: str, around: str):
    made, path = tmp_path / "made", tmp_path / "topology.yaml"
    path.write_text(around.format(tag.format(made)) + "\n")
    with pytest.raises(ERRORS, match=r"topology\.yaml"):
        READERS[kind](path)
    assert not made.exists()


@pytest.mark.parametrize("kind", READERS)
def test_aliases_of_billions_are_not_unfolded(tmp_path: Path, kind: str):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    path = tmp_path / "topology.yaml"
    path.write_text("\n".join([*lines, "switches: *a29"]) + "\n")

    def refused() -> None:
        with pytest.raises(ERRORS):
            READERS[kind](path)

    assert calls_of(refused) < 200_000
    tracemalloc.start()
    refused()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50e6


def test_no_shell_reads_the_words_of_a_command(tmp_path: Path):
    made = tmp_path / "made"
    words = [f"$(touch {made})", f"`touch {made}`", f"; touch {made}", "|", ">", str(made), "*"]
    said = command_output.output_of(["printf", "%s\n", *words], 10.0, 10_000)
    assert said.decode().splitlines() == words
    assert not made.exists()


def test_a_new_snapshot_is_its_writers_alone(tmp_path: Path):
    before = os.umask(0)
    try:
        snapshot_file.write(tmp_path / "state.json", snapshot())
        snapshot_file.write(tmp_path / "state.json.gz", snapshot())
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}
