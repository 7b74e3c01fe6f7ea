"""Commands whose answer is text for people, or rows for programs."""

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

TEXT = "text"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say."""

    text: str  # for people
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    code: int = 0  # the command's exit code


class TextLister(Lister):
    """A command with the format ``text``, the default, beside those of cliff."""

    @property
    def formatter_default(self) -> str:
        """The name of the format for people."""
        return TEXT

    def _load_formatter_plugins(self) -> ExtensionManager[ListFormatter]:
        # As an entry point the format would turn up in every other command built on cliff.
        plugins = super()._load_formatter_plugins()
        point = EntryPoint(TEXT, f"{__name__}:{_TextFormatter.__name__}", self.formatter_namespace)
        plugins.extensions.append(Extension(TEXT, point, _TextFormatter, _TextFormatter()))
        return plugins

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        self.parser = parser
        return parser

    @abc.abstractmethod
    def answer(self, args: argparse.Namespace) -> Answer:
        """Return what the command has to say."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return the rows."""
        if parsed_args.formatter == TEXT and (parsed_args.columns or parsed_args.sort_columns):
            self.parser.error("columns need a format that has them, such as -f table")
        self.said = self.answer(parsed_args)
        return self.said.columns, self.said.rows

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        """Write the text, or the rows in the format that was asked for."""
        if parsed_args.formatter == TEXT:
            output.write(self.said.text, self.app.stdout)
            return 0
        return int(super().produce_output(parsed_args, column_names, data))

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the command's exit code."""
        super().run(parsed_args)
        return self.said.code


class _TextFormatter(ListFormatter):
    """A name among the formats; the text does not come from rows."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: the text has no options of its own."""

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Refuse: a command writes its text itself."""
        raise NotImplementedError
