"""Resources of hosts, from short texts."""

from collections.abc import Sequence

from hpc_sched import exceptions
from hpc_sched.sim.cluster.cluster import HostType
from hpc_sched.topology import hostlist

FORM = "vcpus=N[,memory=MB][,processor=NAME][:HOSTS]"
DEFAULT = HostType(vcpus=16, memory_mb=65536)
# More than any machine has; anything beyond is a typing error.
_MOST = 1 << 40


def read(texts: Sequence[str], what: str) -> tuple[HostType, dict[str, HostType]]:
    """Return the default host type, and the types of named hosts.

    ``vcpus=64,memory=262144,processor=gold-6338`` is for all hosts, ``vcpus=32:n[001-016]`` for
    those hosts. Of two texts that name one host the later holds.

    :param what: name of the texts in errors
    :raises exceptions.SimulationError: stating what was expected
    """
    default = DEFAULT
    named: dict[str, HostType] = {}
    for text in texts:
        stated, colon, hosts = text.partition(":")
        type_ = _type(stated, what)
        if not colon:
            default = type_
            continue
        try:
            named.update(dict.fromkeys(hostlist.expand(hosts), type_))
        except ValueError as failure:
            raise exceptions.SimulationError(f"{what}: {failure}") from failure
    return default, named


def _type(text: str, what: str) -> HostType:
    stated: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in ("vcpus", "memory", "processor") or not value or not equals:
            raise exceptions.SimulationError(f"{what}: expected {FORM}, found {part.strip()!r}")
        stated[name] = value
    if "vcpus" not in stated:
        raise exceptions.SimulationError(f"{what}: expected {FORM}, found no vcpus in {text!r}")
    return HostType(
        vcpus=_number(stated["vcpus"], "vcpus", 1, what),
        memory_mb=_number(stated.get("memory", str(DEFAULT.memory_mb)), "memory", 0, what),
        processor=stated.get("processor"),
    )


def _number(text: str, name: str, least: int, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and least <= int(text[:18]) <= _MOST):
        raise exceptions.SimulationError(
            f"{what}: {name}: expected a whole number >= {least}, found {text!r}"
        )
    return int(text)
