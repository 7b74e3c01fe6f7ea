"""Base classes of the commands."""

import argparse
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import Any

from cliff.command import Command
from cliff.formatters.base import ListFormatter
from cliff.formatters.value import ValueFormatter
from cliff.lister import Lister
from stevedore.extension import Extension, ExtensionManager

from hpc_sched import exceptions, terminal_text
from hpc_sched.cli.common.argument_types import Argument
from hpc_sched.snapshot.source.connection import Connect

TEXT = "text"

Table = tuple[Sequence[str], Iterable[Sequence[Any]]]  # columns and rows


class HPCSchedCommand(Command):
    """A command with an epilog that keeps its lines."""

    EPILOG: str  # examples and exit codes
    ARGUMENTS: Sequence[Argument] = ()
    exit_code = 0
    failed_code = 1  # exit code after an error
    # Connects to the cloud in place of an option that names it.
    cloud: Connect | None = None

    def get_epilog(self) -> str:
        """Return the epilog without reading the metadata of all distributions, as cliff does."""
        return self.EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the command's own arguments."""
        self.parser: argparse.ArgumentParser = super().get_parser(prog_name)
        self.parser.formatter_class = argparse.RawDescriptionHelpFormatter
        if self.cloud is not None:
            self.parser.set_defaults(cloud=self.cloud)
        self.add_arguments(self.parser)
        return self.parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        for add in self.ARGUMENTS:
            add(parser)

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that exclude each other."""

    def refuse(self, *faults: tuple[object, str]) -> None:
        """End with exit code 2 and the text of the first fault that is there, if any is."""
        for is_there, text in faults:
            if is_there:
                self.parser.error(text)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        self.check(parsed_args)
        try:
            return int(super().run(parsed_args)) or self.exit_code
        except exceptions.HPCSchedError as error:
            # cliff would log the first problem alone.
            self.app.LOG.error(error, exc_info=bool(self.app.options.debug))
            for problem in getattr(error, "problems", ())[1:]:
                self.app.LOG.error(problem)
            return self.failed_code

    def write_lines(self, lines: Iterable[str]) -> None:
        """Write lines to standard output; escape what a terminal would obey.

        Switch names come from the fabric, names of servers and groups from tenants.
        """
        self.app.stdout.write("".join(f"{terminal_text.text_of(line)}\n" for line in lines))


class TextFormats(HPCSchedCommand, Lister):
    """A command that prints rows, and has formats of its own that print lines."""

    texts: Sequence[str] = ()  # names of these formats
    lines: Sequence[str] = ()  # what they print, set by take_action()

    # In quotes: the class takes no type before stevedore 5.6.
    def _load_formatter_plugins(self) -> "ExtensionManager[ListFormatter]":
        # In this class only: an entry point would add the format to all commands built on cliff.
        # The formatter is a placeholder, because produce_output() writes the text.
        plugins = super()._load_formatter_plugins()
        placeholder = f"{ValueFormatter.__module__}:{ValueFormatter.__name__}"
        for name in self.texts:
            point = EntryPoint(name, placeholder, self.formatter_namespace)
            plugins.extensions.append(Extension(name, point, ValueFormatter, ValueFormatter()))
        return plugins

    def check(self, args: argparse.Namespace) -> None:
        """Refuse columns of a text."""
        has_columns = args.formatter in self.texts and (args.columns or args.sort_columns)
        self.refuse((has_columns, "columns need a format that has them, such as -f table"))

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Write the text, or the rows in the requested format."""
        if parsed_args.formatter in self.texts:
            self.write_lines(self.lines)
            return 0
        return int(super().produce_output(parsed_args, column_names, data))


class HPCSchedLister(TextFormats):
    """A command that prints rows; the format ``table`` has lines above and below them."""

    above: Sequence[str] = ()
    below: Sequence[str] = ()

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Print the rows; escape what a terminal would obey."""
        if parsed_args.formatter != "table":
            return super().produce_output(parsed_args, column_names, data)
        printable = [
            [terminal_text.text_of(cell) if isinstance(cell, str) else cell for cell in row]
            for row in data
        ]
        self.write_lines(self.above)
        super().produce_output(parsed_args, column_names, printable)
        self.write_lines(self.below)
        return 0


class TextLister(TextFormats):
    """A command with the format ``text``, the default, in addition to those of cliff."""

    texts = (TEXT,)

    @property
    def formatter_default(self) -> str:
        """The name of the format for people."""
        return TEXT
