"""Reads the ``hpc:`` namespace of flavors and scheduler hints."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpc_sched import exceptions
from hpc_sched.core import extra_spec_names
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.constraints.constraint import Constraint, Value
from hpc_sched.core.constraints.extra_spec import MAX_VALUE, NAMESPACE, one_of
from hpc_sched.core.constraints.homogeneous import Homogeneous
from hpc_sched.core.constraints.values import ALL, CONSTRAINTS
from hpc_sched.core.extra_spec_names import (
    APP_CLASS,
    CONSTRAINT_KEYS,
    HOPS,
    ISOLATED,
    KEYS,
    MAX_REPORTED,
    MAX_SHOWN,
    MAX_UNKNOWN,
    NAMES,
    TRAFFIC,
)
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Application

APP_NAME = "hpc:app_name"
CACHE_SCORE = "hpc:cache_score"
OBJECTIVE = "hpc:objective"
HOMOGENEOUS = Homogeneous.spec.name
GUARANTEES = tuple(constraint.spec.name for constraint in ALL if constraint.is_guarantee)


@dataclass(frozen=True, slots=True)
class Defaults:
    """The options of [hpc_sched] that complete a request."""

    app_class: str = "sync"  # of a group whose flavor and hints name none
    homogeneous: str = "prefer"  # the same
    user_hints: bool = False  # whether hints count in addition to extra specs
    implicit_groups: bool = False  # whether a multi-create without server group and class is one
    mdobp_classes: frozenset[str] = frozenset(mdobp_classes.DEFAULT)


def read(
    extra_specs: Mapping[str, Any],
    hints: Mapping[str, Any],
    levels: Sequence[str],
    defaults: Defaults,
) -> HPCSpecs:
    """Return the ``hpc:`` values of a request; never raises for invalid ones.

    The flavor's extra spec wins over the hint of the same name, and hints count only if the
    options allow them. Class ``none`` has no constraints, whatever its other keys are.

    :param levels: the names of the topology's levels
    """
    reader = _SpecReader(extra_specs, hints, levels, defaults)
    app_class = reader.application(in_group=True).app_class
    names_none = app_class == "none" and APP_CLASS in reader.seen
    ignored = reader.report_unknown(is_refused=not names_none)
    by_mdobp = mdobp_classes.places(app_class, defaults.mdobp_classes)
    if app_class == "none":
        if not names_none:
            reader.fault_of_unclassed()
        faults = tuple(reader.faults)
        return HPCSpecs(
            app_class, NO_CONSTRAINTS, "false", (), faults, ignored=ignored, by_mdobp=by_mdobp
        )
    constraints, homogeneous, pattern, objective = reader.of_group()
    group_keys = [one.spec.name for one in CONSTRAINTS if one.spec.name in reader.seen]
    if homogeneous == "true":
        group_keys.append(HOMOGENEOUS)
    if objective == ISOLATED:
        group_keys.append(OBJECTIVE)
    return HPCSpecs(
        app_class,
        constraints,
        str(homogeneous or defaults.homogeneous),
        tuple(group_keys),
        tuple(reader.faults),
        is_unclear=not reader.unread.isdisjoint((*GUARANTEES, OBJECTIVE)),
        ignored=ignored,
        by_mdobp=by_mdobp,
        objective=objective,
        pattern=pattern,
    )


@dataclass(frozen=True, slots=True)
class FlavorFaults:
    """What is wrong in the extra specs of a flavor: sentences with key, value and what to write."""

    application: tuple[str, ...]  # refused by the filters for groups and for sharing hosts
    group: tuple[str, ...]  # refused by the filter for groups
    ignored: tuple[str, ...]  # refused by none


def check_flavor(
    extra_specs: Mapping[str, Any], levels: Sequence[str], defaults: Defaults
) -> FlavorFaults:
    """Return the faults of a flavor. A value is checked whatever the flavor's class.

    :param levels: the names of the topology's levels; empty if they are not known
    """
    reader = _SpecReader(extra_specs, {}, levels, defaults)
    app_class = reader.application(in_group=True).app_class
    names_none = app_class == "none" and APP_CLASS in reader.seen
    of_application, reader.faults = reader.faults, []
    if app_class == "none" and not names_none:
        reader.fault_of_unclassed()
    of_group, reader.faults = reader.faults, []
    reader.of_group()
    # Class none has no constraints, as in read().
    ignored: list[str] = []
    (ignored if app_class == "none" else of_group).extend(reader.faults)
    for key, sentence, constraint in itertools.islice(reader.unknown(), MAX_REPORTED):
        text = f"{key}={_shown(repr(extra_specs[key]))}: {sentence}"
        (ignored if constraint is None or names_none else of_group).append(text)
    return FlavorFaults(tuple(of_application), tuple(of_group), tuple(ignored))


def application(
    extra_specs: Mapping[str, Any], hints: Mapping[str, Any], defaults: Defaults, *, in_group: bool
) -> tuple[Application, tuple[str, ...]]:
    """Return the application of a VM, by default of class none outside groups, and its faults."""
    reader = _SpecReader(extra_specs, hints, (), defaults)
    return reader.application(in_group=in_group), tuple(reader.faults)


def named_class(
    extra_specs: Mapping[str, Any], hints: Mapping[str, Any], defaults: Defaults
) -> str | None:
    """Return the valid application class that a flavor or hints name, or None."""
    return _SpecReader(extra_specs, hints, (), defaults).app_class()


def is_implicit_group(
    extra_specs: Mapping[str, Any], hints: Mapping[str, Any], defaults: Defaults
) -> bool:
    """True if the VMs of a multi-create without a server group are a group: class or option."""
    app_class = named_class(extra_specs, hints, defaults)
    return defaults.implicit_groups or app_class not in (None, "none")


@dataclass
class _SpecReader:
    """Reads one value after the other and collects their faults."""

    specs: Mapping[str, Any]
    hints: Mapping[str, Any]
    levels: Sequence[str]
    defaults: Defaults
    seen: set[str] = field(default_factory=set)  # keys with a value
    unread: set[str] = field(default_factory=set)  # keys whose value is invalid
    faults: list[str] = field(default_factory=list)

    def application(self, *, in_group: bool) -> Application:
        default = self.defaults.app_class if in_group else "none"
        app_class = self.app_class() or default
        name = self._checked(APP_NAME, extra_spec_names.is_name, extra_spec_names.EXPECTED)
        score = self._checked(
            CACHE_SCORE,
            re.compile(extra_spec_names.DECIMAL).fullmatch,
            "a decimal number >= 0 such as 12.5",
        )
        return Application(
            app_class,
            name,
            float(score or 0),
            is_isolated=app_class != "none" and self._is_isolated(),
        )

    def of_group(self) -> tuple[Constraints, Value | None, str | None, str]:
        """Return the constraints, ``hpc:homogeneous``, ``hpc:pattern`` and ``hpc:objective``."""
        return (
            self.constraints(),
            self.value(Homogeneous),
            self._checked(TRAFFIC.name, re.compile(TRAFFIC.pattern).fullmatch, TRAFFIC.expected),
            self.objective(),
        )

    def app_class(self) -> str | None:
        choices = extra_spec_names.APP_CLASSES
        value = self._checked(APP_CLASS, lambda text: text.lower() in choices, one_of(choices))
        return value and value.lower()

    def fault_of_unclassed(self) -> None:
        """Report the guarantees of a request that is of class ``none`` only by default."""
        keys = [
            key
            for key in GUARANTEES
            if (self._value(key) or "false").lower().partition(":")[0] not in ("false", "prefer")
        ]
        if self._is_isolated():
            keys.append(OBJECTIVE)
        if keys:
            self.unread.update(keys)
            self.faults.append(
                f"{', '.join(keys)}: only HPC applications can have that; the flavor must say "
                f"{APP_CLASS}=sync or extreme, for without it requests here are of class none"
            )

    def constraints(self) -> Constraints:
        """Return the constraints without those that contradict each other, which are faults."""
        found = Constraints(**{one.name: self.value(one) for one in CONSTRAINTS})
        if not (contradictions := found.contradictions):
            return found
        self.faults += contradictions.values()
        excluded = {one for pair in contradictions for one in pair}
        self.unread.update(one.spec.name for one in excluded)
        return found.changed(**{one.name: None for one in excluded})

    def objective(self) -> str:
        """Return the objective; a hint that states one is a fault."""
        if OBJECTIVE not in self.specs and self._value(OBJECTIVE) is not None:
            self.faults.append(f"{OBJECTIVE}: only a flavor can have that, no scheduler hint")
            return HOPS
        choices = extra_spec_names.OBJECTIVES
        value = self._checked(OBJECTIVE, lambda text: text.lower() in choices, one_of(choices))
        return value.lower() if value else HOPS

    def _is_isolated(self) -> bool:
        """True if the flavor asks for uplinks of its groups' own."""
        return str(self.specs.get(OBJECTIVE)).strip().lower() == ISOLATED

    def value(self, constraint: type[Constraint]) -> Value | None:
        expected = constraint.expected(self.levels)
        text = self._checked(
            constraint.spec.name, lambda found: constraint.parse(found, self.levels), expected
        )
        return None if text is None else constraint.parse(text, self.levels)

    def report_unknown(self, *, is_refused: bool) -> tuple[str, ...]:
        """Report misspelt constraints; return the sentences on other unknown keys.

        :param is_refused: whether a misspelt constraint is a fault
        """
        found = [
            (text, is_refused and meant is not None)
            for _, text, meant in itertools.islice(self.unknown(), MAX_REPORTED)
        ]
        self.faults += [text for text, is_fault in found if is_fault]
        return tuple(text for text, is_fault in found if not is_fault)

    def unknown(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield each unknown key, a sentence, and the constraint that it misspells or None.

        Misspelt constraints come first, then extra specs, then the names.
        """
        hints = self.hints if self.defaults.user_hints else {}
        found: list[tuple[str, str, str | None]] = []
        for what, keys in (("extra spec", self.specs), ("scheduler hint", hints)):
            unknown = (key for key in keys if key.startswith(NAMESPACE) and key not in KEYS)
            some = sorted(itertools.islice(unknown, MAX_UNKNOWN))
            found += [(what, key, extra_spec_names.meant_key(key, CONSTRAINT_KEYS)) for key in some]
        for what, key, constraint in sorted(found, key=lambda one: one[2] is None):
            meant = constraint or extra_spec_names.meant_key(key, KEYS)
            remedy = (
                f"did you mean {meant}?" if meant else f"expected {NAMESPACE} and {one_of(NAMES)}"
            )
            yield key, f"unknown {what} {_shown(repr(key)[1:-1])}; {remedy}", constraint

    def _checked(self, key: str, is_valid: Callable[[str], object], expected: str) -> str | None:
        """Return a value, or None if it is missing or invalid."""
        value = self._value(key)
        if value is None or is_valid(value):
            return value
        self.unread.add(key)
        self.faults.append(f"{key}={_shown(repr(value))}: expected {expected}")
        return None

    def _value(self, key: str) -> str | None:
        try:
            value = self._stated(key)
        except exceptions.RequestError as error:
            self.unread.add(key)
            self.faults.append(str(error))
            return None
        if value is not None:
            self.seen.add(key)
        return value

    def _stated(self, key: str) -> str | None:
        if key in self.specs:
            return _text(key, self.specs[key])
        values = self.hints.get(key) if self.defaults.user_hints else None
        if not values:
            return None
        if isinstance(values, list | tuple):
            if len(values) > 1:
                raise exceptions.RequestError(f"{key}: expected one value, found {len(values)}")
            [values] = values
        return _text(key, values)


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _text(key: str, value: Any) -> str:
    """Return a value as text, without blanks at its ends."""
    if not isinstance(value, str | int | float):
        raise exceptions.RequestError(f"{key}: expected a text, found a {type(value).__name__}")
    try:
        text = str(value).strip()
    except ValueError:  # str() refuses integers of thousands of digits
        text = None
    if text is None or len(text) > MAX_VALUE:
        raise exceptions.RequestError(f"{key}: expected at most {MAX_VALUE} characters, found more")
    return text
