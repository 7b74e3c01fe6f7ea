"""Fixtures of the protocol of claims."""

import logging
from collections.abc import Callable, Iterator

import pytest

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses threads
from tests.protocol import nova_model
from tests.protocol.nova_model import NovaModel


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    """Log nothing below WARNING, and nothing of Nova, whose claims fail all the time."""
    nova = logging.getLogger("nova")
    before = nova.level
    logging.disable(logging.INFO)
    nova.setLevel(logging.CRITICAL)
    yield
    nova.setLevel(before)
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def begin(
    quiet: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], NovaModel]]:
    """Return what begins a cloud in memory."""
    with nova_model.installed(tmp_path_factory.mktemp("protocol")) as begin:
        yield begin
