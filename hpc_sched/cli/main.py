"""The command hpc-sched."""

import sys
from collections.abc import Sequence

from cliff.app import App
from cliff.commandmanager import CommandManager

import hpc_sched
from hpc_sched import exceptions


class HPCSchedApp(App):
    """hpc-sched: where Nova puts groups of HPC VMs on a fat tree."""

    NAME = "hpc-sched"  # cliff would take it from sys.argv
    # Messages for people, without the logger's name in front.
    CONSOLE_MESSAGE_FORMAT = "%(message)s"

    def __init__(self) -> None:
        super().__init__(
            description="Topology-aware placement of groups of HPC VMs for OpenStack Nova. "
            "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.",
            version=hpc_sched.__version__,
            command_manager=CommandManager("hpc_sched.cli"),
            deferred_help=True,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    :param argv: arguments without the program's name; those of this process by default
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        # cliff would open a shell of its own; a command without arguments wants help.
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
