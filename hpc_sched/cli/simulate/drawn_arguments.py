"""The arguments of hpc-sched simulate that state what is drawn."""

from collections.abc import Callable
from typing import TypeVar

from hpc_sched.cli.common.argument_types import (
    Argument,
    above_zero,
    argument,
    exclusive,
    number,
    parsed_by,
)
from hpc_sched.cli.simulate import default_run
from hpc_sched.sim.jobs import distributions

# Options of drawn jobs: the field of Synthetic that each sets, and its help.
DRAWN = {
    "interarrival": ("interarrivals", "seconds between two arrivals (default: by --use)"),
    "size": ("sizes", "VMs of a job (default: choice:4:8:16:32:64:128)"),
    "runtime": ("runtimes", "seconds that a job takes (default: lognormal:600:1)"),
    "walltime": ("walltimes", "requested walltime, in runtimes (default: constant:2)"),
    "vm-memory": ("memory_mb", "MB of a VM (default: constant:0)"),
}

_Value = TypeVar("_Value")


def _drawn(name: str) -> Callable[[str], distributions.Distribution]:
    return stated(f"--{name}", lambda text, what: distributions.read(text, what, at_least=0))


def _drawn_option(name: str) -> Argument:
    field, what = DRAWN[name]
    return argument(f"--{name}", what, dest=field, type=_drawn(name), metavar="DIST")


def stated(name: str, read: Callable[[str, str], _Value]) -> Callable[[str], _Value]:
    """Return the type of an option that ``read`` parses, given its text and its name."""
    return parsed_by(lambda text: read(text, name), prefix=f"{name}: ")


DISTRIBUTIONS = (
    "Distributions: constant:X, uniform:LOW:HIGH, exponential:MEAN, lognormal:MEDIAN:SIGMA, "
    "choice:X:Y=WEIGHT:..."
)

# fmt: off
DRAWN_JOBS: tuple[Argument, ...] = (
    number("--synthetic",
        f"draw N jobs in place of a trace (default without TRACE: {default_run.SYNTHETIC_JOBS})"),
    exclusive(
        argument("--use",
            "offered load: jobs arrive so that on average they keep this share of the VMs in use "
            "that the cluster holds; sets --interarrival by the means of --size and --runtime, "
            f"without factors of runtimes (default: {default_run.USE:g})",
            type=above_zero, metavar="SHARE"),
        _drawn_option("interarrival"),
    ),
    *map(_drawn_option, list(DRAWN)[1:]),
)
APPLICATIONS: tuple[Argument, ...] = (
    argument("--classes",
        "application classes and their shares, as in sync=0.5,async=0.3,extreme=0.1,none=0.1 "
        "(default: sync=1)",
        type=stated("--classes", distributions.read_mix), default=distributions.ALL_SYNC,
        metavar="MIX"),
    argument("--scores", "cache score of each VM (default: constant:0)",
        type=_drawn("scores"), default=distributions.ZERO, metavar="DIST"),
    argument("--applications",
        "names of applications, as the interference index has them, and their shares, as in "
        "LU.C=0.5,ChaNGa=0.5 (default: the trace's numbers of applications)",
        type=stated("--applications", distributions.read_applications), metavar="MIX"),
)
# fmt: on
