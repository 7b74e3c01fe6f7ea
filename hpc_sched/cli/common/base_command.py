"""Base classes of the commands."""

import argparse
from collections.abc import Sequence
from typing import Any

from cliff.command import Command
from cliff.lister import Lister

from hpc_sched import terminal_text


class HPCSchedCommand(Command):
    """A command with an epilog that keeps its lines."""

    EPILOG: str  # examples and exit codes
    exit_code = 0

    def get_epilog(self) -> str:
        """Return the epilog; cliff's own method reads the metadata of all distributions first."""
        return self.EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the command's own arguments."""
        self.parser: argparse.ArgumentParser = super().get_parser(prog_name)
        self.parser.formatter_class = argparse.RawDescriptionHelpFormatter
        self.add_arguments(self.parser)
        return self.parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that exclude each other."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        self.check(parsed_args)
        return int(super().run(parsed_args)) or self.exit_code


class HPCSchedLister(HPCSchedCommand, Lister):
    """A command that prints rows; the format ``table`` has lines above and below them."""

    above: Sequence[str] = ()
    below: Sequence[str] = ()

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Print the rows; escape what a terminal would obey."""
        if parsed_args.formatter != "table":
            return int(super().produce_output(parsed_args, column_names, data))
        printable = [
            [terminal_text.text_of(cell) if isinstance(cell, str) else cell for cell in row]
            for row in data
        ]
        self._write(self.above)
        super().produce_output(parsed_args, column_names, printable)
        self._write(self.below)
        return 0

    def _write(self, lines: Sequence[str]) -> None:
        self.app.stdout.write("".join(f"{terminal_text.text_of(line)}\n" for line in lines))
