"""The options of nova.conf's section [hpc_sched] that say where the topology comes from."""

import functools
import re
from typing import Any

from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.configuration.option_value import value_of

TOPOLOGY_RELOAD_INTERVAL = 60

# How to write a file that is read again when it changes.
REPLACE = (
    "The file is read again when it changes. Replace it by mv: a file that is being written could "
    "be read half. "
)
_PATTERNS = ("topology_host_pattern", "topology_port_pattern", "topology_switch_pattern")

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
    cfg.StrOpt(
        "topology_file",
        mutable=True,
        help="File with the topology, for drivers that read one; start from "
        "etc/topology.yaml.sample. nova-scheduler does not start if it is missing or wrong: check "
        f"it with ``hpc-sched topology validate``.\n\n{REPLACE}"
        "If it is missing or wrong later, the last good topology stays in use, and the log names "
        "the wrong line.",
    ),
    cfg.ListOpt(
        "topology_command",
        default=[],
        mutable=True,
        help="Command whose output is the topology, in place of ``topology_file``: program and "
        "arguments, separated by commas. It is run without a shell, as the user of "
        "nova-scheduler, at start and every ``topology_reload_interval``. Example: "
        "/usr/sbin/ibnetdiscover, which needs access to /dev/infiniband/umad*. Do not use sudo: "
        "nova-scheduler cannot kill what it runs. Let root write ``topology_file`` instead; "
        "docs/operator/fabric.rst shows how.",
    ),
    cfg.FloatOpt(
        "topology_command_timeout",
        default=30.0,
        min=0.1,
        max=3600,
        mutable=True,
        help="Time limit of ``topology_command``, in seconds. A command that exceeds it is killed, "
        "and the last good topology stays in use. One that cannot be killed, because it belongs to "
        "another user, is left behind after two more seconds; no other one is started until it has "
        "ended.",
    ),
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
    cfg.StrOpt(
        "topology_name_map",
        mutable=True,
        help="File that maps names in the topology to the names of hosts in Nova. A line has a "
        "name, or the GUID of a host channel adapter, and the nodename (on bare metal the UUID of "
        "the node). A node name map of OpenSM and infiniband-diags has this format and names "
        "switches too. Not used by ``aggregates``; ``ironic`` needs none.",
    ),
    cfg.DictOpt(
        "topology_aggregate_key",
        default={},
        mutable=True,
        help="Keys of metadata that name the switches above the hosts of an aggregate, for "
        "``aggregates``: level and key, lowest level first. Example: "
        "leaf:rack,pod:row,core:availability_zone. By default the key of a level is ``hpc:`` and "
        "its name.",
    ),
    cfg.DictOpt(
        "topology_node_key",
        default={},
        mutable=True,
        help="What names the switches above a node, for ``kubernetes`` and ``ironic``: level and "
        "key, lowest level first. For ``kubernetes`` a label, such as ``leaf:example.com/rack``; "
        "by default the labels of Topograph and of the large clouds are known. For ``ironic``, "
        "where ports name the leaves, the beginning of a trait, such as ``pod:CUSTOM_POD_``, or a "
        "key of the node's properties or extra.",
    ),
    cfg.StrOpt(
        "topology_port_pattern",
        mutable=True,
        help="Regular expression for the ports that count: for ``lldp`` names of a host's "
        "interfaces, for ``ironic`` physical networks. By default all do.",
    ),
    cfg.StrOpt(
        "topology_switch_pattern",
        mutable=True,
        help="Regular expression for the switches that count, by name or id, for ``lldp`` and "
        "``ironic``. With ``lldp`` it also says which neighbours are switches; by default those "
        "that say so themselves.",
    ),
    cfg.StrOpt(
        "topology_cloud",
        mutable=True,
        help="Cloud in clouds.yaml whose bare-metal API ``ironic`` reads, in place of "
        "``topology_file``. Needs openstacksdk, and a user with the right to list nodes and ports.",
    ),
    cfg.StrOpt(
        "topology_name",
        mutable=True,
        help="Name of the topology, a tree or blocks, to read from a topology.yaml with several, "
        "for ``slurm``. By default the first one with ``cluster_default: true``, else the only "
        "tree, else the only one of blocks.",
    ),
    cfg.StrOpt(
        "topology_host_pattern",
        mutable=True,
        help="Regular expression for the descriptions of host channel adapters, for "
        "``ibnetdiscover``. The host name is the match of its first group, or the whole match "
        "without a group; an adapter that does not match belongs to no host. By default a "
        'description is a host name, alone or with that of the adapter: "node0001 HCA-1" or '
        r'"node0001 mlx5_0". Example: ^(\S+) mlx5_[0-3]$',
    ),
]


def source(conf: cfg.ConfigOpts) -> tuple[str, dict[str, Any]]:
    """Return the name of the topology driver and its options that are set.

    :raises exceptions.ConfigError: for an option with a value that cannot be used
    """
    value = functools.partial(value_of, conf)
    command = value("topology_command")
    options: dict[str, Any] = {
        "path": value("topology_file"),
        "command": command,
        "timeout": value("topology_command_timeout") if command else None,
        "name_map": value("topology_name_map"),
        "host_pattern": value("topology_host_pattern"),
        "port_pattern": value("topology_port_pattern"),
        "switch_pattern": value("topology_switch_pattern"),
        "aggregate_key": value("topology_aggregate_key"),
        "node_key": value("topology_node_key"),
        "cloud": value("topology_cloud"),
        "tree": value("topology_name"),
    }
    return value("topology_driver"), {key: found for key, found in options.items() if found}


def check_patterns(conf: cfg.ConfigOpts) -> None:
    """Raise a ConfigError for a pattern that is no regular expression."""
    for name in _PATTERNS:
        pattern = conf.hpc_sched[name]
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise exceptions.ConfigError(
                f"[hpc_sched] {name} = {pattern}: not a regular expression: {error}"
            ) from error
