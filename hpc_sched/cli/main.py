"""The command hpc-sched."""

import logging
import os
import shlex
import sys
from collections.abc import Sequence

from cliff.app import App
from cliff.commandmanager import CommandManager

from hpc_sched import __version__, exceptions
from hpc_sched.cli.common import output


class HPCSchedApp(App):
    """The application hpc-sched."""

    NAME = "hpc-sched"  # cliff's default is sys.argv[0]
    # Without the logger's name.
    CONSOLE_MESSAGE_FORMAT = "%(message)s"

    def __init__(self) -> None:
        super().__init__(
            description="Topology-aware placement of groups of HPC VMs for OpenStack Nova. "
            "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.",
            version=__version__,
            command_manager=CommandManager("hpc_sched.cli"),
            deferred_help=True,
        )

    def run(self, argv: list[str]) -> int:
        """Run the command line; return its exit code."""
        self.command_line = shlex.join([self.NAME, *argv])
        return int(super().run(argv))

    def configure_logging(self) -> None:
        """Log to standard error; of libraries only warnings, unless ``-v`` asks for more."""
        super().configure_logging()
        if self.options.verbose_level < 2:
            logging.root.handlers[-1].addFilter(_is_ours_or_warning)


def _is_ours_or_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.startswith(("hpc_sched", "hpc-sched"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default this process's arguments; return its exit code."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - stays open like the original
    output.discard_errors_if_closed()
    if sys.stdout is None:
        print("standard output: is closed", file=sys.stderr)
        return 1
    output.escape_unencodable(sys.stdout)
    handlers = list(logging.root.handlers)
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
    finally:
        # cliff adds a handler in every run; a second run in this process would log errors twice.
        logging.root.handlers[:] = handlers
    return output.flush(sys.stdout) or code


def _run(arguments: list[str]) -> int:
    try:
        # Without arguments cliff would open a shell of its own.
        return int(HPCSchedApp().run(arguments or ["--help"]))
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:
        return int(end.code or 0)
    except exceptions.HPCSchedError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
