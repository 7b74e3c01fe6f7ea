"""hpc-sched topology convert."""

import argparse
from typing import Any

from hpc_sched.cli.common import cloud_source, output
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.cli.topology.validate import summary
from hpc_sched.topology.writers import formats


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

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument("--to", choices=formats.NAMES, required=True, help="the format")
        parser.add_argument(
            "--output",
            metavar="FILE",
            default="-",
            help="file to write, as a whole or not at all (default: standard output)",
        )
        parser.add_argument("--title", help="with --to svg: title of the picture (default: none)")
        cloud_source.add_source_arguments(parser)

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, options of another format."""
        for option, value in (("--cloud", args.cloud), ("--title", args.title)):
            if value is not None and args.to != "svg":
                self.parser.error(f"{option} means nothing with --to {args.to}")

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the topology; return the exit code."""
        args = parsed_args
        topology, uses = cloud_source.topology_of_source(args)
        options: dict[str, Any] = {"title": args.title} if args.title else {}
        if uses and args.to == "svg":
            options |= {"states": uses.states(), "notes": uses.notes()}
        done = formats.written(topology, args.to, **options)
        for warning in done.warnings:
            output.say(f"warning: {warning}")
        if args.output == "-":
            output.write_utf8(done.text, self.app.stdout)
        else:
            output.save(done.text, args.output)
            output.say(f"{args.output}: wrote {summary(topology)}")
        return 0
