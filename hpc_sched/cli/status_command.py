"""The command hpc-sched-status, which checks an installation."""

import sys
from collections.abc import Sequence

from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.cli.common import output
from hpc_sched.configuration import config_files

PROGRAM = "hpc-sched-status"
# As in nova-status; the codes of the checks are 0, 1 and 2.
ERROR = 255


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default this process's arguments; return its exit code.

    0 all checks passed, 1 a warning, 2 a failure, 255 an error, wrong usage included, 130
    interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    output.discard_errors_if_closed()
    try:
        from hpc_sched.status import command_line
    except ImportError as error:
        return _error(
            f"{error}. Run this where nova-scheduler runs, in its Python environment, or "
            "pip install 'hpc-sched[nova]'"
        )
    except (cfg.Error, OSError, UnicodeError) as error:
        # From Nova 33 on the import reads nova.conf, to choose threads.
        return _error(config_files.error_text(error, arguments))
    try:
        return command_line.run(arguments)
    except exceptions.ConfigError as error:
        return _error(str(error))
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:
        # argparse exits with 2 on wrong usage, the code of a failed check.
        return ERROR if end.code else 0


def _error(text: str) -> int:
    print(f"{PROGRAM}: {text}", file=sys.stderr)
    return ERROR


if __name__ == "__main__":
    sys.exit(main())
