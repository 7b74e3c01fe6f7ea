"""What flavors and scheduler hints say in the ``hpc:`` namespace, read and judged."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_sched import exceptions
from hpc_sched.core import extra_spec_names
from hpc_sched.core.constraints import Constraints
from hpc_sched.core.extra_spec_names import (
    APP_CLASSES,
    DECIMAL,
    MAX_GROUP_SIZE,
    MAX_SHOWN,
    MAX_VALUE,
)
from hpc_sched.core.extra_spec_names import HOMOGENEOUS as HOMOGENEOUS_CHOICES
from hpc_sched.core.sharing.cache_interference import Application

APP_CLASS = "hpc:app_class"
APP_NAME = "hpc:app_name"
CACHE_SCORE = "hpc:cache_score"
GROUP_SIZE = "hpc:group_size"
REQUIRE = "hpc:require"
PREFER = "hpc:prefer"
MAX_LEAVES = "hpc:max_leaves"
HOMOGENEOUS = "hpc:homogeneous"
GUARANTEES = (REQUIRE, MAX_LEAVES, HOMOGENEOUS)

# Classes that are placed by topology; async is consolidated, none is not HPC at all.
TOPOLOGY_CLASSES = frozenset({"extreme", "sync"})
# Classes that share hosts with others; extreme has its own, and fills the fewest.
SHARING_CLASSES = frozenset({"sync", "async"})


@dataclass(frozen=True, slots=True)
class Defaults:
    """The options of [hpc_sched] that judge what is said, and stand in for what is not."""

    app_class: str = "sync"
    homogeneous: str = "prefer"
    user_hints: bool = False  # whether hints count beside extra specs


@dataclass(frozen=True, slots=True)
class HPCSpecs:
    """What a request says, with what was wrong in it left out."""

    app_class: str
    constraints: Constraints
    homogeneous: str
    stated: tuple[str, ...]  # keys that only a group can have
    faults: tuple[str, ...]  # a sentence each, without names of switches or hosts
    is_unclear: bool = False  # a guarantee is asked for in words that cannot be read

    @property
    def by_topology(self) -> bool:
        """True if the class is packed by leaf."""
        return self.app_class in TOPOLOGY_CLASSES

    @property
    def is_flat(self) -> bool:
        """True if the fabric does not matter: the cloud counts as one leaf."""
        return not self.by_topology and not self.needs_place

    @property
    def shares_hosts(self) -> bool:
        """True if MDOBP chooses hosts for the class, where its weigher is enabled."""
        return self.app_class in SHARING_CLASSES

    @property
    def needs_place(self) -> bool:
        """Tell whether the request asks for a guarantee of where its VMs are in the fabric."""
        return self.constraints.require is not None or self.constraints.max_leaves is not None

    @property
    def needs_proof(self) -> bool:
        """Tell whether the request asks for a guarantee rather than a preference."""
        return self.needs_place or self.is_unclear or self.homogeneous == "true"


def read(
    extra_specs: Mapping[str, Any],
    hints: Mapping[str, Any],
    levels: Sequence[str],
    defaults: Defaults,
) -> HPCSpecs:
    """Return what a request asks for; never raises for what a user wrote.

    The flavor's extra spec wins over the hint of the same name, and hints count only where
    the options allow them. Class ``none`` has no wishes, whatever else is said.

    :param levels: the names of the topology's levels
    """
    reader = _Reader(extra_specs, hints, levels, defaults)
    app_class = reader.application(in_group=True).app_class
    if app_class == "none":
        if APP_CLASS not in reader.seen:
            reader.fault_of_unclassed()
        return HPCSpecs(app_class, Constraints(), "false", (), tuple(reader.faults))
    constraints = Constraints(
        require=reader.level(REQUIRE),
        prefer=reader.level(PREFER),
        max_leaves=reader.number(MAX_LEAVES, extra_spec_names.MAX_LEAVES),
        group_size=reader.number(GROUP_SIZE, MAX_GROUP_SIZE),
    )
    homogeneous = reader.choice(HOMOGENEOUS, HOMOGENEOUS_CHOICES)
    stated = [key for key in (REQUIRE, PREFER, MAX_LEAVES, GROUP_SIZE) if key in reader.seen]
    if homogeneous == "true":
        stated.append(HOMOGENEOUS)
    return HPCSpecs(
        app_class,
        constraints,
        homogeneous or defaults.homogeneous,
        tuple(stated),
        tuple(reader.faults),
        is_unclear=not reader.unread.isdisjoint(GUARANTEES),
    )


def application(
    extra_specs: Mapping[str, Any],
    hints: Mapping[str, Any],
    defaults: Defaults,
    *,
    in_group: bool,
) -> tuple[Application, tuple[str, ...]]:
    """Return what a VM runs as its flavor and hints have it, and what is wrong in them.

    The rules are those of :func:`read`, for requests and for VMs that run already.

    :param in_group: whether the VM belongs with others; one that does not and names no class
        is of class ``none``
    """
    reader = _Reader(extra_specs, hints, (), defaults)
    return reader.application(in_group=in_group), tuple(reader.faults)


class _Reader:
    """Reads one value after the other and notes what is wrong with them."""

    def __init__(
        self,
        extra_specs: Mapping[str, Any],
        hints: Mapping[str, Any],
        levels: Sequence[str],
        defaults: Defaults,
    ) -> None:
        self.specs = extra_specs
        self.hints = hints if defaults.user_hints else {}
        self.default_app_class = defaults.app_class
        self.levels = levels
        self.seen: set[str] = set()
        self.unread: set[str] = set()
        self.faults: list[str] = []

    def application(self, *, in_group: bool) -> Application:
        default = self.default_app_class if in_group else "none"
        return Application(
            app_class=self.choice(APP_CLASS, APP_CLASSES) or default,
            name=self.name(APP_NAME),
            score=self.decimal(CACHE_SCORE),
        )

    def fault_of_unclassed(self) -> None:
        """Note the wishes of a request that is of class ``none`` because it names no class."""
        stated = [key for key in GUARANTEES if self._value(key) not in (None, "false", "prefer")]
        if stated:
            self.unread.update(stated)
            self.faults.append(
                f"{', '.join(stated)}: only HPC applications can have that; the flavor must say "
                f"{APP_CLASS}=sync or extreme, for without it requests here are of class none"
            )

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        value = self._value(key)
        if value is None or value.lower() in choices:
            return None if value is None else value.lower()
        self._fault(key, value, f"one of {', '.join(choices)}")
        return None

    def level(self, key: str) -> str | None:
        value = self._value(key)
        if value is None or value in self.levels:
            return value
        self._fault(key, value, f"one of the levels {', '.join(self.levels)}")
        return None

    def number(self, key: str, most: int) -> int | None:
        value = self._value(key)
        if value is None:
            return None
        if re.fullmatch("[0-9]{1,20}", value) and 1 <= int(value) <= most:
            return int(value)
        self._fault(key, value, f"a whole number from 1 to {most}")
        return None

    def name(self, key: str) -> str | None:
        value = self._value(key)
        if value is None or extra_spec_names.is_name(value):
            return value
        self._fault(key, value, extra_spec_names.EXPECTED)
        return None

    def decimal(self, key: str) -> float:
        value = self._value(key)
        if value is None:
            return 0.0
        if re.fullmatch(DECIMAL, value):
            return float(value)
        self._fault(key, value, "a decimal number >= 0 such as 12.5")
        return 0.0

    def _value(self, key: str) -> str | None:
        try:
            value = self._wish(key)
        except exceptions.RequestError as error:
            self.unread.add(key)
            self.faults.append(str(error))
            return None
        if value is not None:
            self.seen.add(key)
        return value

    def _wish(self, key: str) -> str | None:
        if key in self.specs:
            return _text(key, self.specs[key])
        values = self.hints.get(key)
        if not values:
            return None
        if isinstance(values, list | tuple):
            if len(values) > 1:
                raise exceptions.RequestError(f"{key}: expected one value, found {len(values)}")
            values = values[0]
        return _text(key, values)

    def _fault(self, key: str, value: str, expected: str) -> None:
        self.unread.add(key)
        shown = repr(value)
        if len(shown) > MAX_SHOWN:
            shown = f"{shown[: MAX_SHOWN - 3]}..."
        self.faults.append(f"{key}={shown}: expected {expected}")


def _text(key: str, value: Any) -> str:
    """Return a value as text, without blanks at its ends.

    :raises exceptions.RequestError: for what is none, and for a text that is too long
    """
    if not isinstance(value, str | int | float):
        raise exceptions.RequestError(f"{key}: expected a text, found a {type(value).__name__}")
    try:
        text = str(value).strip()
    except ValueError:  # Python writes out no number of thousands of digits
        text = None
    if text is None or len(text) > MAX_VALUE:
        raise exceptions.RequestError(f"{key}: expected at most {MAX_VALUE} characters, found more")
    return text
