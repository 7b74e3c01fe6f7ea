"""What the soak would find: one guard after the other taken out.

Takes minutes, so only with the long soak.
"""

import dataclasses
import threading

import pytest
from nova import exception

from hpc_sched import exceptions
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.filters import group as group_filter
from hpc_sched.filters.colocation import ColocationFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import configured_plugins, served_requests
from hpc_sched.nova_glue.active_session import ActiveSession
from hpc_sched.nova_glue.read.instances import instance_applications, member_records
from hpc_sched.nova_glue.record import decision_record
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.soak.marks import LONG

pytestmark = [LONG, cloud_mark(EMPTY)]
EVENTS = 150


def assert_found(soak, what):
    """Fail unless a run has found this and nothing before it."""
    assert any(what in one for one in soak.wrong), "\n".join(soak.wrong)


def without(monkeypatch, nova, *kinds):
    manager = nova.scheduler.host_manager
    kept = [one for one in manager.enabled_filters if not isinstance(one, kinds)]
    assert len(kept) < len(manager.enabled_filters)
    monkeypatch.setattr(manager, "enabled_filters", kept)


def test_hosts_that_are_shared_against_the_rules(live, nova, monkeypatch):
    ours = (DEDICATED_FILTER, INTERFERENCE_FILTER)
    without(monkeypatch, nova, ColocationFilter)
    plugins = configured_plugins.enabled()
    kept = tuple(name for name in plugins.filters if name not in ours)
    others = dataclasses.replace(plugins, filters=kept)
    monkeypatch.setattr(configured_plugins, "enabled", lambda: others)
    assert_found(live(EVENTS), "host n")


def test_groups_that_have_not_what_they_require(live, nova, monkeypatch):
    ours = group_filter.HPCGroupFilter, HPCHomogeneityFilter, HPCRackCapacityFilter
    without(monkeypatch, nova, *ours)
    # The weigher alone keeps most of them together, and so does what prunes to the plan.
    manager = nova.scheduler.host_manager
    others = [one for one in manager.weighers if not isinstance(one, HopByteWeigher)]
    monkeypatch.setattr(manager, "weighers", others)
    assert_found(live(EVENTS), "group ")


def test_claims_that_a_refusal_leaves_behind(live, nova, monkeypatch):
    def refuse(self, call, plugin, refused):
        raise exception.NoValidHost(reason=refused.tenant)

    def keep(self, session, call):
        # At the second VM, when the first has been claimed.
        call.spec.tries = getattr(call.spec, "tries", 0) + 1
        if call.spec.tries > 1:
            raise exceptions.RefusedError("late", "late")
        return call.states

    monkeypatch.setattr(group_filter.HPCGroupFilter, "run_filter_once_per_request", False)
    monkeypatch.setattr(ActiveSession, "_refuse", refuse)
    monkeypatch.setattr(group_filter.HPCGroupFilter, "keep", keep)
    assert_found(live(EVENTS), "allocation ")


def test_a_weigher_that_fails(live, monkeypatch):
    monkeypatch.setattr(HopByteWeigher, "_order", lambda *_: 1 / 0)
    assert_found(live(EVENTS), "weighs all hosts alike")


def test_a_member_that_is_overlooked(live, monkeypatch):
    real = member_records.cell_members

    def cell_members(*args):
        found = real(*args)
        del found.rows[3:]
        return found

    monkeypatch.setattr(member_records, "cell_members", cell_members)
    assert_found(live(EVENTS), "group ")


def test_requests_that_stay_in_the_registry(live, monkeypatch):
    monkeypatch.setattr(served_requests, "_sessions", {})
    assert_found(live(EVENTS), "entries in the registry")


def test_a_cache_that_forgets_nobody(live, monkeypatch):
    everybody, real = {}, instance_applications.ApplicationCache

    def cached(settings=(), said=None, kept=None):
        everybody.update(kept or {})
        return real(settings, said or {}, dict(everybody))

    monkeypatch.setattr(instance_applications, "ApplicationCache", cached)
    assert_found(live(400), "in the cache of applications")


@pytest.mark.parametrize("what", ["threads", "open files"])
def test_what_every_request_leaves_open(live, monkeypatch, tmp_path, what):
    real, done, kept = decision_record.log, threading.Event(), []

    def tell(*decision):
        if what == "threads":
            threading.Thread(target=done.wait, daemon=True).start()
        else:
            kept.append((tmp_path / "file").open("w"))
        return real(*decision)

    monkeypatch.setattr(decision_record, "log", tell)
    try:
        assert_found(live(EVENTS), what)
    finally:
        done.set()
        for file in kept:
            file.close()
