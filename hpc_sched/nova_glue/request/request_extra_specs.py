"""What a flavor and the hints of a request say of the group, as Nova hands them over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import nova.conf
from nova import objects

from hpc_sched.core import extra_specs as extra_specs_
from hpc_sched.core.extra_specs import Defaults, HPCSpecs
from hpc_sched.core.sharing.cache_interference import Application

CONF = nova.conf.CONF


def read(spec: objects.RequestSpec, levels: Sequence[str]) -> HPCSpecs:
    """Return what a request asks for; never raises for what a user wrote.

    :param levels: the names of the topology's levels
    """
    return extra_specs_.read(extra_specs_of(spec.flavor), hints_of(spec), levels, _defaults())


def application(
    extra_specs: Mapping[str, Any], hints: Mapping[str, Any], *, in_group: bool
) -> tuple[Application, tuple[str, ...]]:
    """Return what a VM runs as its flavor and hints have it, and what is wrong in them.

    :param in_group: whether the VM belongs with others; one that does not and names no class
        is of class ``none``
    """
    return extra_specs_.application(extra_specs, hints, _defaults(), in_group=in_group)


def names_class(extra_specs: Mapping[str, Any], hints: Mapping[str, Any]) -> bool:
    """Tell whether a flavor or hints name an application class that there is."""
    # Who names none is left without one.
    defaults = replace(_defaults(), app_class="")
    said, _ = extra_specs_.application(extra_specs, hints, defaults, in_group=True)
    return bool(said.app_class)


def extra_specs_of(flavor: objects.Flavor) -> Mapping[str, Any]:
    """Return a flavor's extra specs, none where they are not loaded."""
    return (flavor.extra_specs or {}) if "extra_specs" in flavor else {}


def hints_of(spec: objects.RequestSpec) -> Mapping[str, Any]:
    """Return a request's scheduler hints."""
    return (spec.scheduler_hints or {}) if spec.obj_attr_is_set("scheduler_hints") else {}


def _defaults() -> Defaults:
    ours = CONF.hpc_sched
    return Defaults(ours.default_app_class, ours.default_homogeneous, ours.allow_user_hints)
