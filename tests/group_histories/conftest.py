"""Fixtures of the histories of groups."""

import gc
import logging
from collections.abc import Callable, Iterator

import pytest

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses threads
from tests.group_histories import runs
from tests.group_histories.runs import Runs
from tests.protocol.conftest import begin, quiet
from tests.protocol.nova_model import NovaModel

__all__ = ["begin", "quiet"]


@pytest.fixture(scope="module")
def histories(
    begin: Callable[[], NovaModel], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    # What is there already does not end with a history: to search it for cycles takes long.
    gc.collect()
    gc.freeze()
    # pytest would keep each line, with the exceptions and all that these refer to.
    logger = logging.getLogger("hpc_sched")
    logger.propagate = False
    with runs.opened(begin, tmp_path_factory.mktemp("fabrics")) as found:
        yield found
    logger.propagate = True
    gc.unfreeze()
