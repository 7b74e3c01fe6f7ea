"""Faults of the plugin that the histories must find, each as it was once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.ranking import permitted_hosts
from hpc_sched.nova_glue.claim import follower_holds
from hpc_sched.nova_glue.read.instances import group_members, member_records


@contextmanager
def one_switch() -> Iterator[None]:
    """Leave a VM the hosts below the switch of its plan alone, though it has nobody there."""

    def permitted(request: GroupRequest, plan: Any) -> Any:
        if not request.constraints.bind_place and len(request.topology.roots) == 1:
            return np.ones(len(request.room), dtype=np.bool_)
        return permitted_hosts(request.as_planned(plan).problem(), plan)[request.hosts_of_rows]

    with mock.patch.object(GroupRequest, "permitted", permitted):
        yield


@contextmanager
def no_followers() -> Iterator[None]:
    """Forget the members that are to follow one that moves."""
    read = group_members._of_move

    def alone(found: Any, records: Any, *args: Any) -> Any:
        nobody = {"followers": 0, "leaving": Counter(), "moving": frozenset()}
        return replace(read(found, records, *args), queue=(records.own_uuid,), **nobody)

    with mock.patch.object(group_members, "_of_move", alone):
        yield


@contextmanager
def soft_deleted() -> Iterator[None]:
    """Count VMs that are soft-deleted as members."""
    with mock.patch.object(member_records, "is_gone", return_value=False):
        yield


@contextmanager
def no_holds() -> Iterator[None]:
    """Hold no place."""
    with mock.patch.object(follower_holds, "is_on", return_value=False):
        yield


FAULTS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "one_switch": one_switch,
    "no_followers": no_followers,
    "soft_deleted": soft_deleted,
    "no_holds": no_holds,
}

#: A group that is shelved whole: with no_followers it does not come back together.
SHELVED = (
    "fabric one a=1,1 b=1",
    "group w soft-affinity require=leaf",
    "placed w1=a1,w2=a2",
    "shelve w1",
    "shelve w2",
)
