"""hpc-sched topology show and convert."""

import argparse
import importlib
from typing import Any

from hpc_sched import exceptions
from hpc_sched.cli.common import output, shown_flavors, sources
from hpc_sched.cli.common.argument_types import argument, exclusive, flag, number
from hpc_sched.cli.common.base_command import HPCSchedCommand, Table, TextLister
from hpc_sched.cli.topology import free_room, switch_tree
from hpc_sched.cli.topology.topology_check import MEMBERS, summary
from hpc_sched.snapshot import cloud_room, host_usage
from hpc_sched.topology import plurals, switch_names
from hpc_sched.topology.model import Topology

# Format to the module with its text_of(topology), which returns a text, or a text and warnings.
_WRITERS = {"yaml": "yaml_writer", "slurm": "slurm_writer", "dot": "dot", "svg": "svg"}


class TopologyShow(TextLister):
    """Show a topology: its switches as a tree, with folded host names.

    With another --format than text: a row for each of the lowest switches that are shown. With
    --free: what the cloud could take now.
    """

    EPILOG = f"""\
examples:

  The topology of nova.conf, and that of a file:

    hpc-sched topology show
    hpc-sched topology show /etc/slurm/topology.conf

  The output of a command, one pod of it, and nothing below the level pod:

    ibnetdiscover | hpc-sched topology show -
    hpc-sched topology show topology.yaml --switch pod1
    hpc-sched topology show fabric.txt --switch 0x0002c90200404718 --members
    hpc-sched topology show topology.yaml --level pod

  With its use: VMs, vcpus used of all, hosts without VMs, and hosts that take none (disabled, down
  or unknown to Nova):

    hpc-sched topology show --cloud mycloud

  A row for each leaf, or each switch below which nothing is shown, for programs:

    hpc-sched topology show topology.yaml -f json
    hpc-sched topology show topology.yaml -f value -c Switch -c Hosts

  What the cloud could take, of all flavors that name an hpc:app_class other than none, or of one:

    hpc-sched topology show --cloud mycloud --free
    hpc-sched topology show --cloud mycloud --free --flavor hpc.large -f json

{free_room.MEANING}
exit codes: 0 done, 1 the topology or the cloud cannot be read or has no such switch, 2 wrong usage
"""

    ARGUMENTS = (
        argument(
            "--switch",
            "this switch, by its name, a member's or a GUID, and all below it",
            metavar="NAME",
        ),
        MEMBERS,
        exclusive(
            number("--depth", "N levels of switches from the top"),
            argument("--level", "nothing below this level, such as leaf or pod", metavar="NAME"),
        ),
        flag("--free", "the room of a cloud in place of the switches: see below"),
        shown_flavors.ARGUMENT,
        *sources.SOURCE_ARGUMENTS,
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that mean nothing together."""
        super().check(args)
        parts = {
            "--switch": args.switch,
            "--depth": args.depth,
            "--level": args.level,
            "--members": args.members or None,
        }
        named = next((name for name, value in parts.items() if value is not None), None)
        self.refuse(
            (args.free and named, f"--free is of the whole cloud: {named} means nothing with it"),
            (args.flavor and not args.free, "--flavor means nothing without --free"),
            shown_flavors.fault(args.flavor),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each of the lowest switches; with --free for each flavor and level."""
        args = parsed_args
        if args.free:
            return self._free(args)
        topology, uses = sources.topology_of_source(args)
        level = _level(topology, args.level)
        tops = None if args.switch is None else _switches(topology, args.switch)
        shown = switch_tree.switches_of(topology, tops, args.depth, level)
        for text in topology.incomplete:
            output.say(f"incomplete: {text}")
        for names, what, command in (
            (topology.remarks, "remark", "on this topology: see hpc-sched topology validate"),
            (
                uses.unnamed if uses else (),
                "hypervisor",
                "not in this topology: see hpc-sched topology check",
            ),
        ):
            if names:
                output.say(f"{plurals.text(len(names), what)} {command}")
        branches = switch_tree.UNICODE
        try:
            "".join(branches).encode(self.app.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            branches = switch_tree.ASCII
        self.lines = switch_tree.lines_of(shown, uses, branches, args.members)
        return switch_tree.rows(shown, uses)

    def _free(self, args: argparse.Namespace) -> Table:
        cloud = sources.cloud_on(args, args.source)
        fabric, flavors = cloud.description, shown_flavors.of(cloud, args.flavor)
        if not flavors:
            output.note("no flavor names an hpc:app_class other than none: choose with --flavor")
        rooms = [cloud_room.of(cloud, flavor) for flavor in flavors]
        free = cloud_room.free_leaves(fabric, host_usage.of(fabric, cloud.snapshot))
        self.lines = free_room.lines_of(rooms, free, len(fabric.leaves))
        return free_room.rows(rooms, free, len(fabric.leaves), args.formatter)


def _switches(topology: Topology, name: str) -> tuple[str, ...]:
    found = switch_names.known_as(topology, name)
    if not found:
        raise exceptions.UnknownHostError(f"switch {name!r} is not in the topology")
    if found != (name,):
        output.say(f"{name} is part of {' and '.join(found)}")
    return found


def _level(topology: Topology, name: str | None) -> int:
    if name is not None and name not in topology.levels:
        raise exceptions.TopologyError(
            f"--level {name}: expected one of {', '.join(topology.levels)}"
        )
    return 1 if name is None else topology.levels.index(name) + 1


class TopologyConvert(HPCSchedCommand):
    """Write a topology as a file (yaml, slurm) or a picture (svg, dot).

    Warns on standard error about what the format cannot hold. With --cloud or --snapshot svg
    shows which hosts are free.
    """

    EPILOG = """\
examples:

    ibnetdiscover | hpc-sched topology convert - --to yaml --output topology.yaml
    hpc-sched topology convert topology.yaml --to slurm --output /etc/slurm/topology.conf
    hpc-sched topology convert --to svg --output fabric.svg
    hpc-sched topology convert --to svg --cloud mycloud --output fabric.svg
    hpc-sched topology convert --snapshot state.json.gz --to yaml
    hpc-sched topology convert topology.yaml --to dot | dot -Tpdf -o fabric.pdf

exit codes: 0 done, 1 the topology cannot be read or FILE not written, 2 wrong usage
"""

    ARGUMENTS = (
        argument("--to", "the format", choices=tuple(_WRITERS), required=True),
        argument(
            "--output",
            "file to write, as a whole or not at all (default: standard output)",
            metavar="FILE",
            default="-",
        ),
        argument("--title", "with --to svg: title of the picture (default: none)"),
        *sources.SOURCE_ARGUMENTS,
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, options of another format."""
        self.refuse(
            *(
                (
                    args.to != "svg" and value is not None,
                    f"{option} means nothing with --to {args.to}",
                )
                for option, value in (("--cloud", args.cloud), ("--title", args.title))
            )
        )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the topology; return the exit code."""
        args = parsed_args
        topology, uses = sources.topology_of_source(args)
        options: dict[str, Any] = {"title": args.title} if args.title else {}
        if uses and args.to == "svg":
            options |= {"states": uses.states(), "notes": uses.notes()}
        text, warnings = _written(topology, args.to, **options)
        for warning in (*(f"incomplete: {text}" for text in topology.incomplete), *warnings):
            output.say(f"warning: {warning}")
        if args.output == "-":
            output.write_utf8(text, self.app.stdout)
        else:
            output.save(text, args.output)
            output.say(f"{args.output}: wrote {summary(topology)}")
        return 0


def _written(topology: Topology, name: str, **options: Any) -> tuple[str, tuple[str, ...]]:
    """Return a topology in a format, with ``options`` of its ``text_of``; and warnings."""
    # Imported late: only one writer is needed, and often none.
    module = importlib.import_module(f"hpc_sched.topology.writers.{_WRITERS[name]}")
    found = module.text_of(topology, **options)
    return (found, ()) if isinstance(found, str) else found
