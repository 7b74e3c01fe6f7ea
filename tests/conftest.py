"""Settings of all tests."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from hpc_sched.cli import main
from hpc_sched.topology.readers import command_output
from tests import tiers
from tests.simgrid.witness import needs_simgrid  # noqa: F401  # a fixture
from tests.turned_clock import TurnedClock, turned

# The same examples in every run: a red build is red for everybody, and a slow machine that
# shares its cores with other tests makes nothing fail.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
settings.register_profile(
    "nightly", settings.get_profile("repeatable"), max_examples=400, print_blob=True
)
settings.load_profile("repeatable")
# It would also draw constants of our modules: of those that other tests of a process have loaded.
providers.is_local_module_file = lambda path: False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of tests and their order to the options."""
    group = parser.getgroup("tiers of tests", "see tests/README.rst")
    group.addoption(
        "--tier",
        choices=tiers.SELECTIONS,
        default="default",
        help="which tests run: those of the default tier, with those of ci, nightly ones, or all",
    )
    group.addoption("--part", choices=tiers.PARTS, help="run this part of the nightly tests alone")
    group.addoption(
        "--order-seed",
        metavar="SEED",
        help="shuffle the tests that share a cloud by this number, or by a drawn one: random",
    )
    group.addoption(
        "--rewrite-transcripts",
        action="store_true",
        help="write the transcripts of tests/protocol again, after an intended change",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist hand out groups in our order, and draw the seed of the order once."""
    if config.option.part and "nightly" not in tiers.SELECTIONS[config.option.tier]:
        raise pytest.UsageError("--part names tests of the nightly tier: add --tier nightly")
    # As it is in a terminal, for the programs that tests interrupt: a shell ignores it for what it
    # runs in the background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    if hasattr(config, "workerinput"):
        config.option.order_seed = config.workerinput["order_seed"]
    elif config.option.order_seed == "random":
        config.option.order_seed = str(random.SystemRandom().randrange(10**6))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node: Any) -> None:
    """Tell a worker the seed that was drawn: all must collect in the same order."""
    node.workerinput["order_seed"] = node.config.option.order_seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Print the seed of the order."""
    seed = config.option.order_seed
    return [f"order of the tests that share a cloud: --order-seed={seed}"] if seed else []


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests of a tier; those on clouds come first, each kind in one process."""
    left: list[pytest.Item] = []
    for item in items:
        item.add_marker(pytest.mark.xdist_group(tiers.group_of(item)))
        if not tiers.is_selected(item, config.option.tier, config.option.part):
            left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        out = set(map(id, left))
        items[:] = [item for item in items if id(item) not in out]
    items.sort(key=lambda item: tiers.place(item, config.option.order_seed))


@pytest.fixture
def turned_clock() -> Iterator[TurnedClock]:
    """Let the plugin use a clock that the test turns."""
    with turned() as clock:
        yield clock


@pytest.fixture
def run_experiment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs hpc-sched experiment in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.main(["experiment", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


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
