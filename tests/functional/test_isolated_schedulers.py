"""Isolated groups that schedulers in processes of their own place at the same moment.

The fabric is that of :mod:`tests.functional.mixed_schedulers`: two leaves of four hosts.
"""

from collections.abc import Iterator

import pytest
from oslo_utils import uuidutils

from tests.functional.cloud_kinds import EMPTY
from tests.functional.mixed_schedulers import Mixed, MixedScheduler, leaves_of, mixed_cloud
from tests.functional.outcomes import Outcome
from tests.functional.scheduler_processes import needs_files
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = [needs_files, cloud_mark(EMPTY)]

ROUNDS = 4
ISOLATED = {"vcpus": 8, "app_class": "sync", "objective": "isolated"}


@pytest.fixture(scope="module")
def mixed(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mixed]:
    with mixed_cloud(cloud_of_module, tmp_path_factory.mktemp("isolated")) as found:
        yield found


def vms(count: int) -> list[str]:
    return [uuidutils.generate_uuid() for _ in range(count)]


def place_at_once(schedulers: list[MixedScheduler], count: int, **specs: object) -> list[Outcome]:
    """Let each scheduler place a group of its own at the same moment."""
    groups = [vms(count) for _ in schedulers]
    for scheduler, group in zip(schedulers, groups, strict=True):
        scheduler.begin(group, **ISOLATED, **specs)
    return [one.end(group) for one, group in zip(schedulers, groups, strict=True)]


def test_of_two_schedulers_one_places_a_group_across_leaves(mixed):
    schedulers = [mixed.scheduler("ctl1"), mixed.scheduler("ctl2")]
    for _ in range(ROUNDS):
        # There is room for both.
        found = place_at_once(schedulers, 4, min_leaves=2)
        assert sorted(len(leaves_of(one)) for one in found) == [0, 2], found
        [refused] = [one.refused for one in found if one.refused]
        assert "uplinks that no other isolated group uses" in refused
        mixed.clear()


def test_groups_below_one_leaf_are_placed_by_both(mixed):
    schedulers = [mixed.scheduler("ctl1"), mixed.scheduler("ctl2")]
    found = place_at_once(schedulers, 8)
    assert [len(leaves_of(one)) for one in found] == [1, 1]
    mixed.clear()
