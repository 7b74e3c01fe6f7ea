"""Commands that print text for people, or rows for programs."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, TextIO

from cliff.formatters.base import ListFormatter
from cliff.lister import Lister
from stevedore.extension import Extension, ExtensionManager

from hpc_sched.cli.common import output
from hpc_sched.cli.common.command import HPCSchedCommand

TEXT = "text"


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a command."""

    text: str  # for people
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    code: int = 0  # the command's exit code


class TextLister(HPCSchedCommand, Lister):
    """A command with the format ``text``, the default, in addition to those of cliff."""

    @property
    def formatter_default(self) -> str:
        """The name of the format for people."""
        return TEXT

    def _load_formatter_plugins(self) -> ExtensionManager[ListFormatter]:
        # An entry point would add the format to every other command built on cliff.
        plugins = super()._load_formatter_plugins()
        point = EntryPoint(TEXT, f"{__name__}:{_TextFormatter.__name__}", self.formatter_namespace)
        plugins.extensions.append(Extension(TEXT, point, _TextFormatter, _TextFormatter()))
        return plugins

    def check(self, args: argparse.Namespace) -> None:
        """Refuse columns of a text."""
        if args.formatter == TEXT and (args.columns or args.sort_columns):
            self.parser.error("columns need a format that has them, such as -f table")

    @abc.abstractmethod
    def answer(self, args: argparse.Namespace) -> Answer:
        """Return the result."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return columns and rows."""
        found = self.answer(parsed_args)
        self.text, self.exit_code = found.text, found.code
        return found.columns, found.rows

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        """Write the text, or the rows in the requested format."""
        if parsed_args.formatter == TEXT:
            output.write(self.text, self.app.stdout)
            return 0
        return int(super().produce_output(parsed_args, column_names, data))


class _TextFormatter(ListFormatter):
    """Name of the format; :class:`TextLister` writes the text itself."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add no options."""

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError
