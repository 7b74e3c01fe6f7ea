"""Fixtures of histories on a whole Nova."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import nova.conf
import pytest
from nova.servicegroup.drivers import db
from nova.virt import fake

from tests.functional.nova_histories.nova_group_cloud import NovaGroupCloud, ShiftedClock
from tests.functional.nova_histories.nova_history import NovaHistory
from tests.functional.nova_histories.nova_kind import DRAWN
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud
from tests.group_histories import fabrics
from tests.group_histories.runs import Runs
from tests.turned_clock import installed

CONF = nova.conf.CONF


def _is_up(real: Callable[..., bool]) -> Callable[..., bool]:
    """Return what is true if a service is up, by the option as it is now."""

    def is_up(driver: db.DbDriver, service: object) -> bool:
        # Nova's API has read the option before the cloud was given its own.
        driver.service_down_time = CONF.service_down_time
        return real(driver, service)

    return is_up


@pytest.fixture
def histories(shared_cloud: TestedCloud, tmp_path: Path) -> Iterator[Runs]:
    """Return what runs histories on the shared cloud."""
    shared_cloud.flags(cell_timeout=BUSY_MACHINE, group="hpc_sched")
    cloud = NovaGroupCloud(shared_cloud, ShiftedClock())
    at_once = fake.FakeDriver.live_migration

    def begin() -> NovaHistory:
        cloud.clear()
        return NovaHistory(cloud, topologies)

    with (
        fabrics.loaded(tmp_path) as topologies,
        installed(cloud.clock),
        # Nova's driver for tests migrates until a test ends it.
        mock.patch.object(fake.FakeLiveMigrateDriver, "live_migration", at_once),
        mock.patch.object(db.DbDriver, "is_up", _is_up(db.DbDriver.is_up)),
    ):
        try:
            yield Runs(begin, DRAWN)
        finally:
            cloud.clear()
            cloud.end()
