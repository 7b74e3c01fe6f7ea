"""The rules for sharing hosts that the arguments of hpc-sched simulate, or its snapshot, state."""

import argparse
from dataclasses import dataclass

from hpc_sched.core.sharing import interference_file, mdobp_classes
from hpc_sched.core.sharing.cache_interference import ALPHA, BETA, InterferenceIndex, Limits
from hpc_sched.sim.cluster.interference_rules import NO_RULES, InterferenceRules
from hpc_sched.sim.jobs.distributions import Mix
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.topology import plurals

_NOTHING = Snapshot("", (), (), (), ())


@dataclass(frozen=True, slots=True)
class SharingRules:
    """The rules of policy ``gupta2013``, and the interference index that changes runtimes."""

    limits: Limits
    mdobp_classes: frozenset[str]
    index: InterferenceIndex
    interference: InterferenceRules  # of the index
    about: tuple[tuple[str, str], ...]  # heading and description of what is not as delivered
    notes: tuple[str, ...]

    @classmethod
    def of(cls, args: argparse.Namespace, snapshot: Snapshot | None) -> "SharingRules":
        """Return the rules; what no argument states is as in the snapshot, else as delivered.

        :raises exceptions.InterferenceError: for an index that cannot be read
        """
        known = snapshot or _NOTHING

        def stated(argument: str, option: str) -> float:
            value = getattr(args, argument)
            return float(nova_options.option(known, option) if value is None else value)

        classes, path = args.mdobp_classes, args.interference_file
        if classes is None:
            classes = nova_options.defaults(known).mdobp_classes
        index = nova_options.index(known) if path is None else interference_file.read_index(path)
        tolerance = stated("interference_tolerance", "interference_tolerance")
        source = "that of the snapshot" if path is None else path
        number = plurals.text(len(index.applications), "application")
        about = {
            "Interference index": index.performance
            and f"{source}, {number}; changes below {tolerance:g} place no job",
            "Classes placed by MDOBP": classes != frozenset(mdobp_classes.DEFAULT)
            and (", ".join(sorted(classes)) or "none at all"),
        }
        return cls(
            limits=Limits(stated("alpha", ALPHA), stated("beta", BETA)),
            mdobp_classes=classes,
            index=index,
            interference=InterferenceRules.of(index, tolerance) if index.performance else NO_RULES,
            about=tuple((heading, text) for heading, text in about.items() if text),
            notes=_notes(args.applications, index),
        )


def _notes(applications: Mix | None, index: InterferenceIndex) -> tuple[str, ...]:
    drawn = () if applications is None else applications.shares
    unknown = [name for name, _ in drawn if name not in index.applications]
    note = f"not in the interference index: {', '.join(unknown)}"
    return (note,) if index.performance and unknown else ()
