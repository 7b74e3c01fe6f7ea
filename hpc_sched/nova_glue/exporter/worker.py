"""The thread of a worker that writes its metrics, and serves those of all if it is the one.

Nothing here is on the way of a request but :func:`start`, which compares two numbers. On eventlet
the thread is one of the worker's hub: a file system that hangs holds up all requests.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import nova.conf
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.metrics import catalogue, counts
from hpc_sched.metrics.address import address_in
from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.exporter import decision_counts, state_gauges
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from hpc_sched.metrics.endpoint import Endpoint
    from hpc_sched.metrics.value_files import Slot

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

PERIOD = 1.0  # seconds between two writes
_OFF = "; there are no metrics"


class Exporter:
    """The metrics of one process: its files, and the endpoint if no other worker has it."""

    def __init__(self, address: str, directory: Path) -> None:
        """Raise ConfigError or ImportError for what cannot work; touches no file."""
        # Not at the top: prometheus_client is an extra.
        from hpc_sched.metrics import endpoint, value_files

        self._files, self._serve = value_files, endpoint.Endpoint
        self._address, self.directory = address_in(address), directory
        self._lock = threading.Lock()  # of all files
        self._slot: Slot | None = None
        self._endpoint_lock: int | None = None
        self._endpoint: Endpoint | None = None
        self._problem = ""  # logged last; empty without one
        self._is_prepared = self._is_closed = False

    def prepare(self) -> None:
        """Create the directory, without what an earlier start has left; never raises.

        In the parent, so that one process alone reports what is wrong and removes what is old.
        """
        try:
            self._prepare()
        except Exception as error:
            self._report(str(error))

    def run(self) -> None:
        """Write the metrics, and take the endpoint if it is free; never raises."""
        try:
            with self._lock:
                if self._is_closed:
                    return
                self._prepare()
                self._write()
                self._serve_all()
        except exceptions.MetricsError as error:
            self._report(str(error))
        except OSError as error:
            # The directory may be gone: a cleaner of temporary files removes it.
            self._is_prepared = self.directory.is_dir()
            self._report(f"{error.filename or self.directory}: {error.strerror or error}")
        except Exception as error:
            self._report(f"{type(error).__name__}: {error}")
        else:
            if self._problem:
                self._problem = ""
                LOG.info("There are metrics again")

    @property
    def is_running(self) -> bool:
        """True if this process, or the one that it was forked from, has written metrics."""
        return self._slot is not None

    def close(self, *, is_fork: bool = False) -> None:
        """Let others take the slot and the endpoint; in a fork, leave them to its parent."""
        if self._endpoint is not None:
            self._endpoint.close(is_serving=not is_fork)
        # In a fork a thread of the parent may hold it.
        with nullcontext() if is_fork else self._lock:
            self._is_closed = True
            if self._slot is not None:
                self._slot.close()
            if self._endpoint_lock is not None:
                os.close(self._endpoint_lock)

    def _prepare(self) -> None:
        if not self._is_prepared:
            self._files.prepare(self.directory)
            self._is_prepared = True

    def _write(self) -> None:
        if self._slot is not None and not self._slot.keep():
            self._slot = None
        if self._slot is None:
            self._slot = self._files.Slot.claim(self.directory)
            decision_counts.show(self._slot.values_before(catalogue.PROJECT_DECISIONS, "project"))
        # Without a request too: else an idle worker's topology would be old.
        loaded_topology.watch.start()
        state_gauges.update()
        self._slot.write()

    def _serve_all(self) -> None:
        # One worker tries at a time, so that one alone reports a port that is taken.
        self._endpoint_lock = self._files.relocked(
            self.directory / "endpoint.lock", self._endpoint_lock
        )
        if self._endpoint_lock is None:
            if self._endpoint is not None:  # the file was removed, and another worker was first
                self._endpoint.close()
                self._endpoint = None
        elif self._endpoint is None:
            self._endpoint = self._serve(self._address, self._collect, self._report_scrape)
            LOG.info("The metrics of all workers are at http://%s/metrics", self._address)

    def _collect(self) -> Collector:
        with self._lock:
            if self._is_closed:
                raise exceptions.MetricsError("this worker has ended")
            self._write()
            return self._files.collector(self.directory)

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            LOG.error("[hpc_sched] metrics_address: %s%s", problem, _OFF)
        self._problem = problem

    def _report_scrape(self, problem: str) -> None:
        """Log why a scrape failed, unless writing has failed too, most likely for that reason."""
        if not self._problem:
            LOG.error("[hpc_sched] metrics_address: %s%s", problem, _OFF)


_exporter: Exporter | None = None
_prepared: tuple[str, Path] | None = None  # address and directory


def directory() -> Path:
    """Return the directory in which the workers share their metrics.

    It has the address in its name: two nova-schedulers of one host would be counted as one.
    """
    address = re.sub(r"[^0-9A-Za-z.]", "-", CONF.hpc_sched.metrics_address)
    return Path(
        CONF.hpc_sched.metrics_directory or os.path.join(CONF.state_path, "hpc_sched-metrics"),
        address,
    )


def prepare(plugin: str) -> None:
    """Begin to count if ``metrics_address`` is set; never raises.

    Called when filters and weighers are built, in the parent of the workers, but also by commands:
    no file is touched before the first fork. Each worker starts its thread when it is forked. On
    eventlet that is too early, and the first request does.

    :param plugin: class of the filter or weigher
    """
    global _exporter, _prepared
    try:
        address = CONF.hpc_sched.metrics_address
        wanted = (address, directory()) if address else None
        if wanted != _prepared:
            reset()
            _prepared = wanted
            if wanted is not None:
                _exporter = Exporter(*wanted)
                counts.start()
                request_metrics.current = decision_counts.RequestCounts(start)
        counts.expose(catalogue.ERRORS, plugin=plugin)
    except ImportError as error:
        LOG.error(
            "[hpc_sched] metrics_address needs the package prometheus_client: %s%s", error, _OFF
        )
    except Exception as error:
        LOG.error("[hpc_sched] metrics_address: %s%s", error, _OFF)


def reset() -> None:
    """Count no more, and let others serve."""
    global _exporter, _prepared
    counts.stop()
    request_metrics.current = request_metrics.RequestMetrics()
    if _exporter is not None:
        _exporter.close()
    _exporter = _prepared = None


def start() -> None:
    """Start the thread of this process unless it has one, or there are no metrics."""
    if _exporter is not None:
        _thread.start()


def _run() -> None:
    if (exporter := _exporter) is not None:
        exporter.run()


_thread = PeriodicThread(_run, lambda: PERIOD, "hpc_sched metrics")


def _after_fork() -> None:
    """Begin anew in a child: what was counted before is the parent's."""
    global _exporter
    if _exporter is not None and _exporter.is_running:  # a worker's child is no worker
        _exporter.close(is_fork=True)
        _exporter = None
        counts.stop()
    elif _exporter is not None:
        counts.start()
        patcher = sys.modules.get("eventlet.patcher")
        if patcher is None or not patcher.is_monkey_patched("thread"):
            start()


def _before_fork() -> None:
    if _exporter is not None and not _exporter.is_running:
        _exporter.prepare()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
