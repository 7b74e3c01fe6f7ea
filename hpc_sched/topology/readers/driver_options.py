"""The options of nova.conf that are arguments of hpc_sched's own topology drivers.

They are one table, apart from the drivers: all of them are registered whichever driver is
configured, and none of the others is imported for that. ``configuration.topology_options`` and the
commands (``cli.common.sources``) take them from here.

A new reader needs

* a module in this package with a subclass of ``TextDriver`` (or ``TopologyDriver``), and its entry
  point in pyproject.toml
* its ``patterns``, ``others`` and ``rank``, and a line in the table of ranks in ``topology_driver``
* for each argument an entry in :data:`OPTIONS`, in the order of the sample configuration, and its
  name in the driver's ``options``. Its default is None or empty: whatever has a value is given to
  the driver, and one that does not take it says so
* for each of these an argument of commands in ``cli.common.sources._READING``; one that says where
  the text is gets none, and is left out of ``_OPTIONS`` there
* a line in the help of ``topology_driver`` in ``configuration.topology_options``, and then
  etc/hpc_sched.conf.sample from oslo-config-generator
* ``is_discovered``, if its source changes with every cable that fails; then a word in the help of
  ``topology_settle_time`` too
* a section in docs/operator/fabric.rst, broken input in tests/broken_topologies.py, and texts for
  the fuzzer in tests/fuzz/corpus.py
"""

from typing import Any

from oslo_config import cfg

# How to write a file that is read again when it changes.
REPLACE = (
    "The file is read again when it changes. Replace it by mv: a file that is being written could "
    "be read half. "
)

# Arguments that say where a text comes from; the others say how it is read.
SOURCE = ("path", "command", "timeout")
# By argument, in the order of the sample configuration.
OPTIONS: dict[str, Any] = {
    "path": cfg.StrOpt(
        "topology_file",
        mutable=True,
        help="File with the topology, for drivers that read one; start from "
        "etc/topology.yaml.sample. nova-scheduler does not start if it is missing or wrong: check "
        f"it with ``hpc-sched topology validate``.\n\n{REPLACE}"
        "If it is missing or wrong later, the last good topology stays in use, and the log names "
        "the wrong line.",
    ),
    "command": cfg.ListOpt(
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
    "timeout": cfg.FloatOpt(
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
    "name_map": cfg.StrOpt(
        "topology_name_map",
        mutable=True,
        help="File that maps names in the topology to the names of hosts in Nova. A line has a "
        "name, or the GUID of a host channel adapter, and the nodename (on bare metal the UUID of "
        "the node). A node name map of OpenSM and infiniband-diags has this format and names "
        "switches too. Not used by ``aggregates``; ``ironic`` needs none.",
    ),
    "aggregate_key": cfg.DictOpt(
        "topology_aggregate_key",
        default={},
        mutable=True,
        help="Keys of metadata that name the switches above the hosts of an aggregate, for "
        "``aggregates``: level and key, lowest level first. Example: "
        "leaf:rack,pod:row,core:availability_zone. By default the key of a level is ``hpc:`` and "
        "its name.",
    ),
    "node_key": cfg.DictOpt(
        "topology_node_key",
        default={},
        mutable=True,
        help="What names the switches above a node, for ``kubernetes`` and ``ironic``: level and "
        "key, lowest level first. For ``kubernetes`` a label, such as ``leaf:example.com/rack``; "
        "by default the labels of Topograph and of the large clouds are known. For ``ironic``, "
        "where ports name the leaves, the beginning of a trait, such as ``pod:CUSTOM_POD_``, or a "
        "key of the node's properties or extra.",
    ),
    "port_pattern": cfg.StrOpt(
        "topology_port_pattern",
        mutable=True,
        help="Regular expression for the ports that count: for ``lldp`` names of a host's "
        "interfaces, for ``ironic`` physical networks. By default all do.",
    ),
    "switch_pattern": cfg.StrOpt(
        "topology_switch_pattern",
        mutable=True,
        help="Regular expression for the switches that count, by name or id, for ``lldp`` and "
        "``ironic``. With ``lldp`` it also says which neighbours are switches; by default those "
        "that say so themselves.",
    ),
    "cloud": cfg.StrOpt(
        "topology_cloud",
        mutable=True,
        help="Cloud in clouds.yaml whose bare-metal API ``ironic`` reads, in place of "
        "``topology_file``. Needs openstacksdk, and a user with the right to list nodes and ports.",
    ),
    "tree": cfg.StrOpt(
        "topology_name",
        mutable=True,
        help="Name of the topology, a tree or blocks, to read from a topology.yaml with several, "
        "for ``slurm``. By default the first one with ``cluster_default: true``, else the only "
        "tree, else the only one of blocks.",
    ),
    "host_pattern": cfg.StrOpt(
        "topology_host_pattern",
        mutable=True,
        help="Regular expression for the descriptions of host channel adapters, for "
        "``ibnetdiscover``. The host name is the match of its first group, or the whole match "
        "without a group; an adapter that does not match belongs to no host. By default a "
        'description is a host name, alone or with that of the adapter: "node0001 HCA-1" or '
        r'"node0001 mlx5_0". Example: ^(\S+) mlx5_[0-3]$',
    ),
}


def of(*arguments: str) -> dict[str, Any]:
    """Return the options of these arguments, as :attr:`TopologyDriver.options` has them."""
    return {argument: OPTIONS[argument] for argument in arguments}


def of_text(*arguments: str) -> dict[str, Any]:
    """Return the options of :class:`TextDriver`, and of some more arguments."""
    return of(*SOURCE, "name_map", *arguments)
