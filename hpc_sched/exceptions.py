"""Every exception that hpc_sched raises on purpose."""


class HPCSchedError(Exception):
    """Base of all exceptions of this package."""


class TopologyError(HPCSchedError, ValueError):
    """The fabric's description is missing or wrong; the text names file, line or key."""


class ConfigError(HPCSchedError, ValueError):
    """An option in nova.conf or on the command line has a value that cannot be used."""


class RequestError(HPCSchedError, ValueError):
    """A flavor or a scheduler hint asks for something in a form that cannot be understood."""


class UnknownHostError(HPCSchedError, LookupError):
    """A host or switch is not part of the topology."""
