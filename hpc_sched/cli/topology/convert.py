"""hpc-sched topology convert."""

import argparse
from typing import Any

from cliff.command import Command

from hpc_sched.cli.common import output, topology_with_cloud
from hpc_sched.cli.topology.validate import summary
from hpc_sched.topology.writers import formats

_EPILOG = """\
examples:

    ibnetdiscover | hpc-sched topology convert - --to yaml --output topology.yaml
    hpc-sched topology convert topology.yaml --to slurm --output /etc/slurm/topology.conf
    hpc-sched topology convert --to svg --output fabric.svg
    hpc-sched topology convert --to svg --cloud mycloud --output fabric.svg
    hpc-sched topology convert --snapshot state.json.gz --to yaml
    hpc-sched topology convert topology.yaml --to dot | dot -Tpdf -o fabric.pdf

exit codes: 0 done, 1 the topology cannot be read or FILE not written, 2 wrong usage
"""


class TopologyConvert(Command):
    """Write a fabric as a topology file (yaml, slurm) or a picture (svg, dot).

    What the format cannot say is told on standard error. With --cloud or --snapshot svg shows
    which hosts are free.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--to", choices=formats.NAMES, required=True, help="the format")
        parser.add_argument(
            "--output",
            metavar="FILE",
            default="-",
            help="file to write, as a whole or not at all (default: standard output)",
        )
        parser.add_argument(
            "--title", help="with --to svg: what stands above the picture (default: nothing)"
        )
        topology_with_cloud.add_arguments(parser)
        self.parser = parser
        return parser

    def get_epilog(self) -> str:
        """Return the examples and the exit codes."""
        return _EPILOG

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the fabric; return the exit code."""
        args = parsed_args
        for option, value in (("--cloud", args.cloud), ("--title", args.title)):
            if value is not None and args.to != "svg":
                self.parser.error(f"{option} means nothing with --to {args.to}")
        topology, uses = topology_with_cloud.fabric_of(args)
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
