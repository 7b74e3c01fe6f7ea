"""What a test says of the VMs on hosts stays true, however busy the machine is."""

import logging
import threading
import time
from collections.abc import Iterator

import pytest
from nova.scheduler import host_manager

from tests.functional.claims import claims_on
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def said() -> Iterator[threading.Event]:
    """Hold up the thread that reads VMs as a scheduler starts, if there is one, until it is set."""
    event, starting = threading.Event(), threading.get_ident()

    def hold_up(record: logging.LogRecord) -> bool:
        is_read = record.getMessage().startswith("START:_async_init_instance_info")
        if is_read and threading.get_ident() != starting:
            event.wait(60)
        return True

    logger = host_manager.LOG.logger
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addFilter(hold_up)
    yield event
    event.set()
    logger.removeFilter(hold_up)
    logger.setLevel(level)


def test_a_scheduler_that_reads_late_forgets_nothing_that_a_test_has_said(
    cloud: TestedCloud, said: threading.Event
):
    with claims_on(cloud, {"n01": 0}, options={}) as claims:
        manager = claims.scheduler.host_manager
        claims.know_no_instances(claims.scheduler)
        told = manager._instance_info
        assert told["n01"] == {"instances": {}, "updated": True}
        said.set()
        # As long as a thread might take to forget it.
        for _ in range(20):
            assert manager._instance_info is told
            time.sleep(0.02)
