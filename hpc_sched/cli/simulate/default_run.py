"""What hpc-sched simulate does where no argument states it; most of it is of drawn jobs.

The run without arguments is a steady load on a fat tree with oversubscribed switches: long enough
for policies to differ in hops, leaves and waits, short enough to wait for. Its sizes and runtimes
are those of :class:`Synthetic`.
"""

import argparse
import math

from hpc_sched.sim.cluster import fat_tree
from hpc_sched.sim.jobs.communication import USUAL, read_patterns, read_shares
from hpc_sched.sim.jobs.distributions import Distribution, Mix
from hpc_sched.sim.measured.measured_window import ALL_OF_IT, MeasuredPart
from hpc_sched.sim.measured.measured_window import read as read_part

# The default comparison: stock Nova, Dudina2013, the exact plan.
POLICIES = ("nova-default", "dudina2013", "exact-plan")
SYNTHETIC_JOBS = 2000
# Of both 64 hosts are under a switch of level pod, 8 under a leaf. A trace keeps the one that it
# had before drawn jobs got another one.
FABRIC_OF_DRAWN_JOBS = "levels=3,radix=12,oversubscription=2,hosts=256"
FABRIC_OF_A_TRACE = "levels=3,radix=16,oversubscription=1,hosts=256"
# An assumption, not measured: without a network waits are the same under all policies. A tenth of
# the runtime: with more, the load is no longer steady where VMs are on random hosts.
NETWORK = "ring=0.3,halo3=0.3,alltoall=0.1,none=0.3"
COMMUNICATION = "constant:0.1"
USE = 0.9  # share of the VMs that the cluster holds
MEASURE = "20%,90%"
# With fewer drawn jobs there is no steady load to measure.
FEWEST_MEASURED = 100


def fabric(args: argparse.Namespace) -> fat_tree.FatTree | None:
    """Return the fabric to generate, or None if a topology or a snapshot has it."""
    if args.topology is not None or args.snapshot is not None:
        return None
    by_default = FABRIC_OF_DRAWN_JOBS if args.trace is None else FABRIC_OF_A_TRACE
    found: fat_tree.FatTree = args.generate or fat_tree.read(by_default, "--generate")
    return found


def patterns(args: argparse.Namespace) -> Mix | None:
    """Return the patterns that jobs communicate by, or None if none is stated or assumed.

    They are assumed of drawn jobs on their own fabric, where no other model of runtimes is stated.
    """
    if args.network is not None:
        stated: Mix = args.network
        return stated
    others = (
        *(args.trace, args.topology, args.generate, args.snapshot, args.network_file),
        *(args.hop_factors, args.speeds, args.interference, args.calibrate),
        args.interference_file,
    )
    is_assumed = all(each is None for each in others)
    return read_patterns(NETWORK, "--network") if is_assumed else None


def shares(args: argparse.Namespace) -> Distribution:
    """Return the part of the runtime that jobs communicate for: stated, assumed or usual."""
    if args.communication is not None:
        stated: Distribution = args.communication
        return stated
    return USUAL if args.network is not None else read_shares(COMMUNICATION, "--communication")


def use(args: argparse.Namespace) -> float | None:
    """Return the offered load; None for a trace, and where the interarrival time is stated."""
    if args.trace is not None or args.interarrivals is not None:
        return None
    return USE if args.use is None else float(args.use)


def measured(args: argparse.Namespace, jobs: int) -> MeasuredPart:
    """Return what is measured: of a load that ``use`` sets, without its start and its end."""
    if args.measure is not None:
        stated: MeasuredPart = args.measure
        return stated
    is_steady = use(args) is not None and jobs >= FEWEST_MEASURED and math.isinf(args.until)
    return read_part(MEASURE, "--measure") if is_steady else ALL_OF_IT
