"""The arguments of hpc-sched simulate that describe the network."""

from hpc_sched.cli.common.argument_types import Argument, argument, exclusive
from hpc_sched.cli.simulate import default_run
from hpc_sched.cli.simulate.drawn_arguments import stated
from hpc_sched.core.traffic.patterns import PATTERNS
from hpc_sched.sim.jobs import communication
from hpc_sched.sim.network.neighbours.job_speeds import DETAILS

ABOUT = (
    "With a network, a job's speed follows from its placement and from the messages of its\n"
    "neighbours, and changes when one of them starts or ends. By default there is one for drawn\n"
    f"jobs on the default fabric, --network {default_run.NETWORK} with --communication\n"
    f"{default_run.COMMUNICATION}, an assumption; no other job waits for messages."
)

# An option and its help are one paragraph.
# fmt: off
NETWORK: tuple[Argument, ...] = (
    exclusive(
        argument("--network",
            f"jobs communicate: patterns and their shares, of {', '.join(PATTERNS)}, as in "
            "ring=0.4,alltoall=0.2,halo3=0.2,none=0.2",
            type=stated("--network", communication.read_patterns), metavar="MIX"),
        argument("--network-file",
            "the same from a file: CSV with the columns pattern, communication, and job or "
            "application", metavar="FILE"),
    ),
    argument("--communication",
        "part of the runtime that a job communicates for, alone on its best hosts (default: "
        "constant:0.3 with --network)",
        type=stated("--communication", communication.read_shares), metavar="DIST"),
    argument("--oversubscription",
        "rate of the links below the switches of a level over that of their uplinks, as in "
        "leaf=4,pod=1 (default: that of the topology file or the generated fabric, else 1)",
        metavar="LEVEL=X,..."),
    argument("--network-detail",
        "how times of messages are computed: by bytes on links, by steps whose messages share "
        "links until they end, or every message for itself, which takes long (default: links)",
        choices=DETAILS),
)
# fmt: on
