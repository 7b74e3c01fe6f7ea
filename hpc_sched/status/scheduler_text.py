"""What a nova-scheduler with this nova.conf would use: digests, and the texts that they are of."""

import sys

from oslo_config import cfg

import hpc_sched
from hpc_sched import digests, exceptions, masking
from hpc_sched.core.decision_entry import LoggedScheduler
from hpc_sched.core.sharing.interference_file import read_index
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud
from hpc_sched.topology import canonical_text


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
