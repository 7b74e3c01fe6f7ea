"""The holds of the plugin, as the harness reads them in Placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.group_histories.cloud import GroupCloud
    from tests.group_histories.requests import Request


def of_others(cloud: GroupCloud, request: Request) -> Mapping[str, int]:
    """Return how many VMs of other groups hold each node. None yet: nothing is held."""
    return {}


def are_made() -> bool:
    """True if the plugin holds places for those that follow."""
    return False


def is_hold(cloud: GroupCloud, consumer: str) -> bool:
    """True if a consumer is a hold of the plugin."""
    return False
