"""The options of nova.conf's section [hpc_sched] on the topology: its source, and its links."""

import functools
import re
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg, types

from hpc_sched import exceptions
from hpc_sched.configuration.option_value import value_of
from hpc_sched.topology.readers import driver_options, topology_driver

TOPOLOGY_RELOAD_INTERVAL = 60

OPTS = [
    cfg.StrOpt(
        "topology_driver",
        default="yaml",
        mutable=True,
        help="Driver that reads the topology of the fabric: a name in the stevedore group "
        "hpc_sched.topology.\n\n"
        "* ``yaml``: a file of nested switches, see etc/topology.yaml.sample\n"
        "* ``slurm``: Slurm's topology.conf or topology.yaml\n"
        "* ``ibnetdiscover``: output of ibnetdiscover, a file or a command\n"
        "* ``lldp``: neighbours that lldpcli prints, one file or a folder of them\n"
        "* ``ironic``: ports of bare-metal nodes, live or as saved JSON\n"
        "* ``kubernetes``: labels of nodes, as kubectl prints them\n"
        "* ``aggregates``: host aggregates with metadata ``hpc:leaf``,\n"
        "  ``hpc:pod`` and further levels; needs neither file nor command",
    ),
    *driver_options.of(*driver_options.SOURCE).values(),
    cfg.IntOpt(
        "topology_reload_interval",
        default=TOPOLOGY_RELOAD_INTERVAL,
        min=0,
        max=86400,
        mutable=True,
        help="Time between two checks for a changed topology, in seconds; 0 checks only on SIGHUP. "
        "A changed topology is loaded in the background; a request keeps the one it began with.",
    ),
    cfg.FloatOpt(
        "topology_settle_time",
        default=300.0,
        min=0,
        max=86400,
        mutable=True,
        help="Time in seconds for which a change must last in a fabric that is discovered "
        "(``ibnetdiscover``, ``lldp``, ``ironic``, ``kubernetes``) before it is used: of each host "
        "and switch for itself, so that a cable that comes and goes moves no host. 0 uses every "
        "change at once. A file that an operator writes, and host aggregates, are used at once.",
    ),
    cfg.BoolOpt(
        "topology_accept_incomplete",
        default=False,
        mutable=True,
        help="Whether a description that was obviously cut off is used when the topology is read "
        "again: the output of ibnetdiscover without its end, or a folder of ``lldp`` with a file "
        "that cannot be read. By default the last good topology stays in use, with one ERROR. At "
        "the start of nova-scheduler there is none: it is used, with a WARNING.",
    ),
    *(
        option
        for argument, option in driver_options.OPTIONS.items()
        if argument not in driver_options.SOURCE
    ),
    cfg.Opt(
        "uplink_oversubscription",
        type=types.Dict(types.Float(min=0.001, max=1000)),
        default={},
        mutable=True,
        help="Oversubscription of the switches of a level: LEVEL:RATIO, separated by commas, "
        "lowest level first. Example: leaf:4,pod:2. A ratio is the rate of the links below a "
        "switch over the rate of its uplinks.\n\n"
        "It counts where the topology states neither uplinks of known rate nor a ratio: "
        "``slurm``, ``ironic``, ``kubernetes`` and ``aggregates`` know neither, ``ibnetdiscover`` "
        "and ``lldp`` find the cables, a file of ``yaml`` may have the keys ``uplinks`` and "
        "``oversubscription``. A level that is not named has 1. Starting value: for each level the "
        "ports of a switch that lead down over those that lead up, such as leaf:3 for 36 and 12.",
    ),
    cfg.FloatOpt(
        "host_link_rate",
        default=100.0,
        min=0.001,
        max=100000,
        mutable=True,
        help="Rate of all links of a host to its leaf switches in Gb/s, in one direction, for "
        "hosts of which the topology states none. Starting value: the rate of one link, times the "
        "rails of a host. Only its ratio to uplinks that the topology states matters.",
    ),
]
GROUP = "hpc_sched"


def source(conf: cfg.ConfigOpts) -> tuple[str, dict[str, Any]]:
    """Return the name of the topology driver and its options that are set.

    Registers the options that this driver alone has.

    :raises exceptions.ConfigError: for an option with a value that cannot be used
    """
    value = functools.partial(value_of, conf)
    driver = value("topology_driver")
    options = {**driver_options.OPTIONS, **topology_driver.options_of(driver)}
    try:
        conf.register_opts(list(options.values()), group=GROUP)
    except cfg.DuplicateOptError as error:
        raise exceptions.ConfigError(
            f"topology_driver {driver}: it has another option [{GROUP}] {error.opt_name} than "
            "hpc_sched"
        ) from error
    found = {argument: value(option.dest) for argument, option in options.items()}
    if not found["command"]:
        del found["timeout"]
    return driver, {
        argument: given
        for argument, given in found.items()
        if given or (given is not None and argument not in driver_options.OPTIONS)
    }


def of_other_packages() -> Iterator[cfg.Opt]:
    """Yield the options of installed drivers that are not hpc_sched's; imports all drivers."""
    yield from (
        option
        for name in topology_driver.driver_names()
        for option in topology_driver.options_of(name).values()
        if option not in OPTS
    )


def check_patterns(conf: cfg.ConfigOpts) -> None:
    """Raise a ConfigError for a pattern that is no regular expression."""
    for argument, option in driver_options.OPTIONS.items():
        if not argument.endswith("pattern"):
            continue
        pattern = conf.hpc_sched[option.dest]
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise exceptions.ConfigError(
                f"[hpc_sched] {option.dest} = {pattern}: not a regular expression: {error}"
            ) from error
