"""The exceptions of hpc_sched."""


class HPCSchedError(Exception):
    """Base of all exceptions of this package."""


class TopologyError(HPCSchedError, ValueError):
    """The topology is missing or wrong; the text names file, line or key.

    :attr:`problems` has a sentence for each problem, ``str`` is the first.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        first, *others = self.problems or ("",)
        if not others:
            return first
        return f"{first} (and {len(others)} more problem{'s' if len(others) > 1 else ''})"


class InterferenceError(HPCSchedError, ValueError):
    """The interference index or a measurement is missing or wrong; the text names file and line."""


class TraceError(HPCSchedError, ValueError):
    """A job trace is missing, damaged or unusable; the text names file and line."""


class CalibrationError(HPCSchedError, ValueError):
    """Measured times cannot be read, or do not determine a model of runtimes."""


class SnapshotError(HPCSchedError, ValueError):
    """The state of a cloud cannot be read, from its APIs or from a saved file.

    The text names the call and the right that it needs, or file, key and what was expected.
    """


class ReadingError(SnapshotError):
    """A call to the APIs of a cloud failed, or a saved file was replaced; another may succeed."""


class SimulationError(HPCSchedError, ValueError):
    """A simulation cannot be run; the text names what was expected."""


class ConservationError(HPCSchedError):
    """The simulator used a slot twice or lost a job: a defect of the policy or the simulator."""


class ConfigError(HPCSchedError, ValueError):
    """An option in nova.conf or on the command line has a value that cannot be used."""


class RequestError(HPCSchedError, ValueError):
    """A flavor or a scheduler hint has a value that cannot be parsed."""


class RefusedError(HPCSchedError):
    """A request needs a guarantee that cannot be given.

    ``str`` is the operator's text with names; ``tenant`` has levels and the request's own counts,
    and none above what was requested.
    """

    def __init__(self, operator: str, tenant: str | None = None) -> None:
        super().__init__(operator)
        self.tenant = tenant if tenant is not None else operator


class UnansweredError(HPCSchedError):
    """A database or Placement did not answer in time, or is skipped because it did not before."""


class MetricsError(HPCSchedError):
    """Metrics cannot be kept or served."""


class DatabaseError(HPCSchedError):
    """Nova's databases lack what a command needs."""


class UnknownHostError(HPCSchedError, LookupError):
    """A host or switch is not part of the topology."""
