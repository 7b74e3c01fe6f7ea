"""Kinds of clouds, each a fabric and a configuration, and the one cloud that runs in a process.

A test names the kind that it needs, ``pytestmark = cloud_mark(KIND)``, and takes the fixture
``cloud``. Tests of one kind run in one process, one after the other, on the same cloud: each leaves
it as it found it, which the fixture checks. The order of the tests of a kind does not matter.
"""

import gc
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from nova import context as nova_context

from hpc_sched import conf
from hpc_sched.demo.nova_cloud import read_options
from hpc_sched.nova_glue.claim import claim_followup, hold_followup
from hpc_sched.nova_glue.claim.holds import store
from tests.functional import cloud_state, faults
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.request_log import RequestLog
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud
from tests.functional.thin_cloud import ThinCloud
from tests.functional.trees import hosts_below, write_tree

CONF = nova.conf.CONF

Options = Mapping[tuple[str, str], Any]


# Seconds in which real computes account for what a test has deleted or moved.
SETTLES = 20.0


def _no_options(_folder: Path) -> Options:
    return {}


def _nothing(_cloud: TestedCloud) -> None:
    pass


@dataclass(frozen=True, eq=False)
class CloudKind:
    """A fabric and a configuration. Computes are rows, or real services where ``is_real``."""

    name: str
    #: nested switches, a list of hosts at each leaf; without it the plugin is not enabled
    tree: Mapping[str, Any] | None
    #: options of nova.conf beside those of the sample, given a folder for files
    options: Callable[[Path], Options] = _no_options
    #: hosts in the order in which their computes start; those of the tree by default
    hosts: Sequence[str] | None = None
    #: hosts of the second cell
    second_cell: Sequence[str] = ()
    #: VCPUs in use from the beginning, by others than VMs of this cloud
    in_use: Mapping[str, int] = field(default_factory=dict)
    #: VCPUs and MB of hosts that differ from the others; where computes are rows
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: attributes of the cloud: vcpus, memory_mb, with_scheduler ...
    attributes: Mapping[str, Any] = field(default_factory=dict)
    #: puts into a new cloud what every test finds there: VMs, aggregates, disabled services
    fill: Callable[[TestedCloud], None] = _nothing
    is_real: bool = False

    def start(self, folder: Path) -> TestedCloud:
        """Return a running cloud of this kind with its computes.

        :param folder: an empty one, for the topology and what the options name
        """
        cloud: TestedCloud = TestedCloud("runTest") if self.is_real else ThinCloud("runTest")
        for name, value in self.attributes.items():
            setattr(cloud, name, value)
        if self.second_cell:
            cloud.NUMBER_OF_CELLS = 2
        if self.tree is not None:
            path = write_tree(folder / "topology.yaml", self.tree)
            cloud.options = read_options(SAMPLE_CONF) | {
                ("hpc_sched", "topology_file"): str(path),
                # Nothing in the background: a test that changes the file says when it is read.
                ("hpc_sched", "topology_reload_interval"): 0,
                ("hpc_sched", "cell_timeout"): BUSY_MACHINE,
                **self.options(folder),
            }
        cloud.folder = folder
        cloud.setUp()
        try:
            others = set(self.second_cell)
            hosts = self.hosts if self.hosts is not None else hosts_below(self.tree or {})
            if not self.is_real:
                cloud.in_use, cloud.sizes = self.in_use, self.sizes
            cloud.start_computes([host for host in hosts if host not in others])
            if others:
                cloud.start_computes(self.second_cell, cell="cell2")
            self.fill(cloud)
        except BaseException:
            # Its threads would keep the process alive.
            cloud.doCleanups()
            raise
        return cloud


def cloud_mark(kind: CloudKind) -> pytest.MarkDecorator:
    """Return the mark of tests that run on a cloud of a kind."""
    return pytest.mark.cloud(kind)


class RunningCloud:
    """The cloud of this process; Nova's fixtures allow one at a time."""

    def __init__(self, new_folder: Callable[[str], Path]) -> None:
        self._new_folder = new_folder
        self._kind: CloudKind | None = None
        self._cloud: TestedCloud | None = None
        self._found: cloud_state.CloudState | None = None
        self.log = RequestLog()

    def of(self, kind: CloudKind) -> TestedCloud:
        """Return the running cloud of a kind, started if another one runs or none."""
        if self._cloud is None or kind is not self._kind:
            self.end()
            self._cloud = kind.start(self._new_folder("cloud"))
            self._kind = kind
            self._found = cloud_state.read(self._cloud)
        return self._cloud

    def used(self, kind: CloudKind) -> Iterator[TestedCloud]:
        """Lend the cloud to one test; end it where the test has changed it, which is an error."""
        cloud = self.of(kind)
        found = self._found
        assert found is not None
        self.log = RequestLog()
        logging.getLogger().addHandler(self.log)
        try:
            yield cloud
        finally:
            logging.getLogger().removeHandler(self.log)
        try:
            left = self._left(kind, cloud, found)
        except BaseException:
            # What cannot be checked is not handed on.
            self.end()
            raise
        if left:
            self.end()
            pytest.fail("the test has changed the cloud that it shares:\n" + "\n".join(left))

    @staticmethod
    def _left(kind: CloudKind, cloud: TestedCloud, found: cloud_state.CloudState) -> list[str]:
        """Undo what a test may leave; return a line for each other thing that it has left."""
        faults.wait_until(lambda: not claim_followup._followed)
        faults.wait_until(lambda: not hold_followup._followed)
        faults.start_afresh()
        # Those of VMs that have not followed end by themselves, after minutes.
        store.release(store.read().held)
        cloud_state.tidy(found)
        left = cloud_state.difference(found, cloud_state.read(cloud))
        deadline = time.monotonic() + SETTLES * kind.is_real
        while left and time.monotonic() < deadline:
            time.sleep(0.5)
            # What computes do once a minute: moves end in it.
            for compute in getattr(cloud, "computes", {}).values():
                compute.manager.update_available_resource(nova_context.get_admin_context())
            left = cloud_state.difference(found, cloud_state.read(cloud))
        return left

    def shown(self) -> list[tuple[str, str]]:
        """Return title and text of what a failure should show: the hosts, and the last request."""
        if self._cloud is None or self._kind is None:
            return []
        state = cloud_state.read(self._cloud)
        return [
            (f"cloud: {self._kind.name}", cloud_state.drawing(self._kind.tree or {}, state)),
            ("log of the last request", self.log.of_last_request()),
        ]

    def end(self) -> None:
        """End the cloud, if one runs."""
        if self._cloud is not None:
            self._cloud.doCleanups()
            self._cloud = self._kind = self._found = None
            gc.collect()
            conf.register_opts(CONF)
        faults.start_afresh()
