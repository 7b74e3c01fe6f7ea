"""Check: all nova-schedulers of the cloud decide by the same options and topology.

With what ``hpc-sched-status scheduler show`` prints: digests, and the texts that they are of.
"""

import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Result

import hpc_sched
from hpc_sched import conf, digests, exceptions, masking
from hpc_sched.core.logged.decision_summary import LoggedScheduler
from hpc_sched.core.sharing.interference_file import read_index
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.snapshot.log import logged_decisions, logged_schedulers
from hpc_sched.status.finding import Findings, failure, good, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud
from hpc_sched.topology import canonical_text, plurals

# The end of the decision log that is read: thousands of records.
MAX_BYTES = 16 << 20
HERE = "this nova.conf"
_COMPARE = (
    "Compare the decision logs of all controllers with hpc-sched check schedulers, or the line "
    '"hpc_sched ... on ...: options ..., topology ..." in the log of each nova-scheduler'
)


def check(cloud: InspectedCloud) -> Findings:
    """Return whether nova-schedulers that are up have other options or another topology than here.

    Reads the services, in one query, and the newest records of the decision log. A scheduler is not
    seen if it has no plugin or a version before this one, writes another decision log, or got no
    request of a group since.
    """
    up: list[str] | None = None
    try:
        up = cloud.schedulers()
    except exceptions.DatabaseError as error:
        yield failure(str(error))
    here: dict[str, LoggedScheduler] = {}
    try:
        here[HERE], _ = described(cloud)
    except (exceptions.HPCSchedError, cfg.Error) as error:
        yield warning(f"No scheduler is compared with this nova.conf: {error}.")
    path = CONF.hpc_sched.decision_log
    if path:
        try:
            yield from _compared(path, up, here, _seen(path))
        except exceptions.SnapshotError as error:
            yield warning(f"decision_log: {error}. Schedulers are not compared.")
    elif up is not None:
        yield _unseen(up, here)


def _unseen(up: Sequence[str], here: dict[str, LoggedScheduler]) -> Result:
    """Return what is known without a decision log."""
    texts = "".join(f" Here: {one.text()}." for one in here.values())
    if len(up) < 2:
        return good(f"{_count(up)}.{texts}")
    return warning(
        f"{_count(up)}, and without decision_log it is not seen whether they have the same options "
        f"and topology.{texts} Set decision_log on each. {_COMPARE}."
    )


def _compared(
    path: str,
    up: Sequence[str] | None,
    here: dict[str, LoggedScheduler],
    seen: dict[str, logged_schedulers.SeenScheduler],
) -> Findings:
    # One that is down decides nothing any more.
    current = {host: one for host, one in seen.items() if up is None or host in up}
    own = {
        name: logged_schedulers.SeenScheduler(one, "", conf.recorded_mode(CONF))
        for name, one in here.items()
    }
    different = list(logged_schedulers.differences(own | current))
    if different:
        yield from (warning(f"{text[0].upper()}{text[1:]}.") for text in different)
        times = ", ".join(f"{host} {one.time}" for host, one in current.items())
        yield warning(
            f"Newest records: {times}. Copy nova.conf and topology to the hosts that differ and "
            "restart or SIGHUP their nova-scheduler; a record of before the restart counts until "
            "the next group. To see what differs run hpc-sched-status scheduler show on each, and "
            "diff the outputs."
        )
    elif here:
        yield good(
            f"{plurals.text(len(current), 'nova-scheduler')} seen in {path}, none decides "
            "otherwise than this nova.conf. "
            f"{'; '.join(one.text() for one in here.values())}."
        )
    missing = [host for host in up or () if host not in seen]
    if not missing or len(up or ()) < 2:
        return
    unseen = f"{_count(up or [])}; not seen in {path}: {', '.join(missing)}"
    if len(current) > 1:
        yield warning(
            f"{unseen}: without the plugin, with a version of it before this one, with another "
            "decision log, without group requests since, or in a compressed file, which is not "
            f"read. {_COMPARE}."
        )
    else:
        # A log of its own has no other controller: no warning may last for ever.
        yield good(
            f"{unseen}, as where each controller has a log of its own, or where older records "
            f"are in a compressed file, which is not read. {_COMPARE}."
        )


def _count(up: Sequence[str]) -> str:
    if not up:
        return "No nova-scheduler is up"
    number = plurals.text(len(up), "nova-scheduler")
    return f"{number} {'are' if len(up) > 1 else 'is'} up: {', '.join(up)}"


def _seen(path: str) -> dict[str, logged_schedulers.SeenScheduler]:
    """Return the schedulers in the log's end; none if there is no log yet."""
    try:
        return logged_schedulers.seen_in(logged_decisions.recent(path, MAX_BYTES))
    except exceptions.SnapshotError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise


def described(cloud: InspectedCloud) -> tuple[LoggedScheduler, tuple[str, ...]]:
    """Return the scheduler that this nova.conf and its files describe, as it would start now.

    With it the lines of the canonical texts of all digests.

    :raises exceptions.TopologyError: if the topology is missing or wrong
    :raises exceptions.InterferenceError: if the interference index is
    """
    options = scheduler_digests.option_lines()
    topology = canonical_text.lines_of(cloud.topology())
    path = CONF.hpc_sched.interference_file
    has_index = path and configured_plugins.enabled().reads_interference
    index = read_index(path).lines() if has_index else None
    scheduler = LoggedScheduler(
        host=CONF.host,
        version=hpc_sched.__version__,
        options=digests.of(options),
        topology=digests.of(topology),
        interference=None if index is None else digests.of(index),
    )
    return scheduler, (*options, *(index or ()), *topology)


def show() -> int:
    """Print digests and texts, for a comparison with those of another host; return the exit code.

    The host is on standard error: the outputs of equal schedulers are equal.

    255 if topology, interference index or an option cannot be read.
    """
    try:
        scheduler, lines = described(InspectedCloud())
    except (exceptions.HPCSchedError, cfg.Error) as error:
        print(masking.masked(str(error)), file=sys.stderr)
        return 255
    print(f"nova-scheduler on {scheduler.host}", file=sys.stderr)
    print(f"hpc_sched {scheduler.version}: {scheduler.digests}")
    print("\n".join(lines))
    return 0
