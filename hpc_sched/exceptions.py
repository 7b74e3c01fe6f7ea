"""Every exception that hpc_sched raises on purpose."""


class HPCSchedError(Exception):
    """Base of all exceptions of this package."""


class TopologyError(HPCSchedError, ValueError):
    """The fabric's description is missing or wrong; the text names file, line or key.

    :attr:`problems` holds a sentence for everything that was found wrong, ``str`` says the first.
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
    """The interference index or a measurement is missing or wrong.

    The text names file, line and what was expected.
    """


class TraceError(HPCSchedError, ValueError):
    """A job trace is missing or damaged, or cannot be read for what it holds.

    The text names file, line and what was expected.
    """


class CalibrationError(HPCSchedError, ValueError):
    """Measured times cannot be read, or no model of runtimes follows from them.

    The text names file, line and what was expected.
    """


class SnapshotError(HPCSchedError, ValueError):
    """The state of a cloud cannot be read, from its APIs or from a saved file.

    The text names the call and the right that it needs, or file, key and what was expected.
    """


class SimulationError(HPCSchedError, ValueError):
    """A simulation was asked for that cannot be run: the text says what was expected."""


class ConservationError(HPCSchedError):
    """The simulator has used a slot twice or lost a job: an error of its own."""


class ConfigError(HPCSchedError, ValueError):
    """An option in nova.conf or on the command line has a value that cannot be used."""


class RequestError(HPCSchedError, ValueError):
    """A flavor or a scheduler hint asks for something in a form that cannot be understood."""


class RefusedError(HPCSchedError):
    """A request asks for a guarantee that cannot be given.

    ``str`` is the operator's text with names; ``tenant`` has counts and levels only.
    """

    def __init__(self, operator: str, tenant: str | None = None) -> None:
        super().__init__(operator)
        self.tenant = tenant if tenant is not None else operator


class UnansweredError(HPCSchedError):
    """A database or Placement has not answered in time, or is left alone since it did not."""


class DatabaseError(HPCSchedError):
    """Nova's databases do not say what a command wants to know of them."""


class UnknownHostError(HPCSchedError, LookupError):
    """A host or switch is not part of the topology."""
