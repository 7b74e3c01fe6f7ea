"""The source of the topology that nova.conf names: its description and its errors."""

from collections.abc import Mapping
from typing import Any

from nova.conf import CONF
from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.nova_glue.io.watched_file import fingerprint
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import topology_driver
from hpc_sched.topology.readers.reader_errors import shown_command

# Of a description, in the log.
MAX_PROBLEMS = 20


def read(source: tuple[str, dict[str, Any]]) -> tuple[topology_driver.TopologyDriver, Any, object]:
    """Return the driver of a source, the description that it reads, and the description's mark.

    The mark changes with the description, and with the option that decides whether it is used. It
    is None if the driver has none.
    """
    driver = topology_driver.driver(source[0], **source[1])
    description = driver.read()
    if (mark := driver.mark(description)) is not None:
        mark = mark, CONF.hpc_sched.topology_accept_incomplete
    return driver, description, mark


def check_complete(topology: Topology) -> None:
    """Raise TopologyError for a description that was cut off, unless that is accepted."""
    if topology.incomplete and not CONF.hpc_sched.topology_accept_incomplete:
        why = "incomplete, and topology_accept_incomplete is false"
        raise exceptions.TopologyError(*(f"{text}: {why}" for text in topology.incomplete))


def fingerprints(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Return a value that changes with the files that options name."""
    return tuple(fingerprint(options.get(name)) for name in ("path", "name_map"))


def name(source: tuple[str, Mapping[str, Any]]) -> str:
    """Return the file, command or driver of a source, for log lines."""
    driver, options = source
    command = options.get("command")
    return str(options.get("path") or (shown_command(command) if command else driver))


def error_text(error: Exception) -> tuple[str, bool]:
    """Return the log text of an error, and whether it is a known kind, without a traceback."""
    if isinstance(error, exceptions.TopologyError):
        return "; ".join(error.problems[:MAX_PROBLEMS]), True
    if isinstance(error, exceptions.ConfigError | cfg.Error):
        return str(error), True
    # A site's own driver may raise anything.
    return f"Reading the topology failed: {type(error).__name__}: {error}", False
