"""Settings of all tests."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from hpc_sched.topology.readers import command_output
from tests.turned_clock import TurnedClock, turned

# The same examples in every run: a red build is red for everybody, and a slow machine that
# shares its cores with other tests makes nothing fail.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("repeatable")

# The files that take minutes, the longest first.
LONG = (
    "test_histories.py",
    "test_status_command.py",
    "test_wishes.py",
    "test_case_study.py",
    "test_hostile_tenants.py",
    "test_live_state.py",
    "test_streams_on_nova.py",
    "test_figure_1.py",
    "test_faults_cells.py",
    "test_soak.py",
    "test_unnoticed.py",
    "test_placement.py",
    "test_queries.py",
    # The slow ones.
    "test_planner_milp.py",
    "test_planner_brute_force.py",
    "test_streams.py",
    "test_databases.py",
    "test_parallel_creates.py",
    "test_plans_at_scale.py",
    "test_databases_in_trouble.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist hand out files in our order, not those with the most tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: no worker is left alone with one of them."""
    if hasattr(config, "workerinput"):
        place = {name: i for i, name in enumerate(LONG)}
        items.sort(key=lambda item: place.get(item.path.name, len(LONG)))


@pytest.fixture
def turned_clock() -> Iterator[TurnedClock]:
    """Let the plugin use a clock that the test turns."""
    with turned() as clock:
        yield clock


@pytest.fixture
def unkillable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no signal reach the process group of a topology command, as if it were root's."""

    killpg = os.killpg

    def refuse(group: int, number: int) -> None:
        killpg(group, 0)
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", refuse)
        patched.setattr(command_output, "GRACE", 0.3)
        yield
    if command_output._abandoned is not None:
        process = command_output._abandoned.process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        command_output._abandoned = None
