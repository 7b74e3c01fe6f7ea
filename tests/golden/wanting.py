"""What a request wants and what nova.conf says, drawn from a seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.golden.clouds import APPLICATIONS, FLAVORS, SCORES
from tests.golden.trees import Fabric

DEDICATED, INTERFERENCE = "HPCDedicatedHostFilter", "HPCInterferenceFilter"
HOMOGENEITY, GROUP, RACKS = "HPCHomogeneityFilter", "HPCGroupFilter", "HPCRackCapacityFilter"
HOP_BYTE, BUNCH, RACK_CAPACITY = "HopByteWeigher", "BunchWeigher", "RackCapacityWeigher"
MDOBP = "MDOBPWeigher"
POLICIES = ("soft-anti-affinity", "anti-affinity", "soft-affinity", "affinity", None)

_UNPRUNED = (HOMOGENEITY, GROUP)
_ALL = (DEDICATED, INTERFERENCE, HOMOGENEITY, GROUP, RACKS)
# Filters and weighers, as sites may enable them.
_ENABLED = (
    (_ALL, (HOP_BYTE, MDOBP)),
    (_ALL, (HOP_BYTE, MDOBP)),
    (_ALL, (HOP_BYTE,)),
    ((HOMOGENEITY, GROUP, RACKS), (HOP_BYTE,)),
    (_UNPRUNED, (BUNCH,)),
    (_UNPRUNED, (RACK_CAPACITY,)),
    (_ALL, (BUNCH, MDOBP)),
    (_ALL, (RACK_CAPACITY,)),
    ((DEDICATED, INTERFERENCE, GROUP), (MDOBP,)),
    ((DEDICATED, INTERFERENCE), (HOP_BYTE, MDOBP)),
    ((GROUP, DEDICATED, INTERFERENCE, HOMOGENEITY, RACKS), (HOP_BYTE, MDOBP)),
    ((HOMOGENEITY, RACKS), (HOP_BYTE,)),
    ((), (HOP_BYTE, BUNCH, RACK_CAPACITY, MDOBP)),
)
# The interference index of a site: application, application, speed of each beside the other.
_INDEXES = (
    (),
    (("wrf", "lu", 0.7, 0.98), ("wrf", "wrf", 0.91, 0.91), ("ep", "ep", 1.0, 1.0)),
    (("lu", "lu", 0.5, 0.5), ("ep", "wrf", 0.99, 0.79), ("ep", "lu", 0.9, 0.9)),
)
_WRONG = (
    {"hpc:require": "rack of ours"},
    {"hpc:prefer": "island"},
    {"hpc:max_leaves": "0"},
    {"hpc:max_leaves": "two"},
    {"hpc:group_size": "-4"},
    {"hpc:homogeneous": "maybe"},
    {"hpc:app_class": "web"},
    {"hpc:cache_score": "nan"},
    {"hpc:app_name": "../etc"},
    {"hpc:max_leaves": "9" * 40, "hpc:require": "x" * 300},
)


@dataclass(frozen=True)
class Setup:
    """What is enabled in Nova, and the options of the plugin that are set."""

    filters: tuple[str, ...]
    weighers: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    index: tuple[tuple[str, str, float, float], ...] = ()  # the interference index
    with_stock: bool = False  # whether two of Nova's own weighers have a say too
    attempts: int = 3  # [scheduler] max_attempts


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    count: int
    size: tuple[int, int, int]  # vcpus, MB and GB of a VM
    policy: str | None
    max_per_host: int | None
    app_class: str | None  # None where nothing names one
    app_name: str | None
    score: float
    extra_specs: Mapping[str, str]
    hints: Mapping[str, list[str]]
    is_wrong: bool


def draw_setup(dice: random.Random) -> Setup:
    """Return what a site has configured."""
    filters, weighers = dice.choice(_ENABLED)
    options: dict[str, Any] = {"implicit_groups": True}
    choices: Mapping[str, tuple[Any, ...]] = {
        "rack_selection": ("largest", "best_fit"),
        "bunch_weight_scale": ("rank", "listing1"),
        "allow_user_hints": (True, False),
    }
    for name, values in choices.items():
        options[name] = dice.choice(values)
    rare: Mapping[str, tuple[Any, ...]] = {
        "default_app_class": ("none", "async", "extreme"),
        "default_homogeneous": ("true", "false"),
        "processor_order": (["gold", "silver"], ["Intel Icelake 2x8x2"]),
        "implicit_groups": (False,),
        "mdobp_disk": (True,),
        "cache_score_limit": (40.0, 20.0),
        "sync_cache_score_limit": (30.0, 10.0),
        "interference_tolerance": (0.05, 0.3, 0.0),
        "hop_byte_weight_multiplier": (0.0, 2.0),
        "mdobp_weight_multiplier": (0.0, 1.0),
        "bunch_weight_multiplier": (-1.0,),
    }
    for name, values in rare.items():
        value = dice.choice(values)
        if dice.random() < 0.12:
            options[name] = value
    index = dice.choice(_INDEXES)
    return Setup(
        filters,
        weighers,
        options,
        index,
        with_stock=dice.random() < 0.25,
        attempts=dice.choice((1, 3, 3, 6)),
    )


def draw_wanted(dice: random.Random, fabric: Fabric, *, is_metal: bool) -> Wanted:
    """Return what somebody asks for."""
    policy = dice.choice(POLICIES)
    count = dice.choice((*range(1, 17), 2, 3, 4, 5, 6, 8, 24))
    size = dice.choice(FLAVORS)
    if dice.random() < 0.03:
        # More than the filters that prune let pass in one run.
        count, size = dice.randint(65, 140), FLAVORS[0]
    app_class = dice.choice(("sync", "sync", "async", "extreme", "none", None, None))
    app_name, score = dice.choice(APPLICATIONS), dice.choice(SCORES)
    said: dict[str, str] = {}
    if app_class is not None:
        said["hpc:app_class"] = app_class
    if app_name is not None:
        said["hpc:app_name"] = app_name
    if score and app_class != "extreme":
        said["hpc:cache_score"] = str(score)
    if dice.random() < 0.5:
        said |= _wishes(dice, fabric, count)
    is_wrong = dice.random() < 0.07
    if is_wrong:
        said |= dice.choice(_WRONG)
    hints: dict[str, list[str]] = {}
    if dice.random() < 0.2:
        for key in [key for key in said if dice.random() < 0.5]:
            hints[key] = [said.pop(key)]
        if hints and dice.random() < 0.1:
            hints[next(iter(hints))].append("more")
    if is_metal and dice.random() < 0.6:
        said |= dict.fromkeys(("resources:VCPU", "resources:MEMORY_MB", "resources:DISK_GB"), "0")
        said["resources:CUSTOM_METAL"] = "1"
    bound = dice.choice((None, 1, 2, 3)) if policy == "anti-affinity" else None
    return Wanted(
        count, size, policy, bound, app_class, app_name, score, said, hints, is_wrong=is_wrong
    )


def _wishes(dice: random.Random, fabric: Fabric, count: int) -> dict[str, str]:
    """Return what is asked of the places, in words that can be read."""
    # Which names a fabric's levels have follows from its depth.
    levels = {"leaf": ("leaf",), "row": ("leaf", "pod"), "pods": ("leaf", "pod", "core")}
    names = levels.get(fabric.shape, ("leaf", "pod", "core"))
    found = {}
    if dice.random() < 0.35:
        found["hpc:require"] = dice.choice(names)
    if dice.random() < 0.35:
        found["hpc:prefer"] = dice.choice(names)
    if dice.random() < 0.35:
        found["hpc:max_leaves"] = str(dice.choice((1, 2, 2, 3, 4)))
    if dice.random() < 0.25:
        found["hpc:group_size"] = str(count + dice.choice((-2, 1, 4, 12, 30)))
    if dice.random() < 0.5:
        found["hpc:homogeneous"] = dice.choice(("true", "true", "prefer", "false"))
    return {key: value for key, value in found.items() if value not in ("0", "-1")}
