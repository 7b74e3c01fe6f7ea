"""Commands that print text for people, or rows for programs."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

from cliff.formatters.base import ListFormatter
from cliff.formatters.value import ValueFormatter
from cliff.lister import Lister
from stevedore.extension import Extension, ExtensionManager

from hpc_sched.cli.common import output
from hpc_sched.cli.common.base_command import HPCSchedCommand

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
        # In this class only: an entry point would add the format to all commands built on cliff.
        # The formatter is a placeholder, because produce_output() writes the text.
        plugins = super()._load_formatter_plugins()
        value = f"{ValueFormatter.__module__}:{ValueFormatter.__name__}"
        point = EntryPoint(TEXT, value, self.formatter_namespace)
        plugins.extensions.append(Extension(TEXT, point, ValueFormatter, ValueFormatter()))
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
