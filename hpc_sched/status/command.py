"""The command line of hpc-sched-status, on nova.conf and Nova's databases."""

import sys
import warnings

# What the libraries of a release warn of as they are imported is nothing that an operator can mend.
if not sys.warnoptions:
    warnings.simplefilter("ignore")

# Nova wants its threads chosen before anything else of it is imported. Its objects are known to
# our own modules once they are registered.
from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

from nova import objects

objects.register_all()

import argparse
from collections.abc import Sequence
from typing import Any

import nova.conf
import oslo_messaging as messaging
from nova import config as nova_config
from nova import rpc
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from oslo_config import cfg
from oslo_log import log as logging
from oslo_upgradecheck import upgradecheck

import hpc_sched
from hpc_sched import conf, masking
from hpc_sched.status.upgrade_check import UpgradeCommands

CONF = nova.conf.CONF

PROGRAM = "hpc-sched-status"
ERROR = 255


def run(arguments: Sequence[str]) -> int:
    """Run the command line once in this process and return its exit code.

    :param arguments: without the program's name
    """
    commands = UpgradeCommands()
    logging.register_options(CONF)
    nova_config.set_lib_defaults()
    conf.register_opts(CONF)
    CONF.register_cli_opt(
        cfg.SubCommandOpt(
            "command",
            title="commands",
            handler=lambda parsers: _add_parsers(parsers, commands),
        )
    )
    try:
        read_configuration(arguments)
    except (cfg.Error, OSError, UnicodeError) as error:
        print(f"{PROGRAM}: {masking.masked(str(error))}", file=sys.stderr)
        return ERROR
    if not CONF.config_file and not CONF.config_dir:
        print(
            f"{PROGRAM}: there is no nova.conf where Nova's services look: name it with "
            "--config-file",
            file=sys.stderr,
        )
        return ERROR
    try:
        rpc.init(CONF)  # cells are named with their message queues; nothing is sent
    except (ValueError, messaging.MessagingException) as error:
        why = masking.masked(str(error))
        print(f"{PROGRAM}: transport_url of nova.conf: {why}", file=sys.stderr)
        return ERROR
    try:
        main_db.configure(CONF)
        api_db.configure(CONF)
    except cfg.Error as error:
        # Its text has what stands behind the $, which may be half a password.
        print(
            f"{PROGRAM}: an option of [database] or [api_database] in nova.conf cannot be read: "
            f"{type(error).__name__}. A $ in a password is written $$",
            file=sys.stderr,
        )
        return ERROR
    upgradecheck.CONF = CONF  # where it looks for --json
    return int(upgradecheck.run(CONF))


def read_configuration(arguments: Sequence[str]) -> None:
    """Read nova.conf as nova-scheduler does, and the command line.

    Databases that do not answer are not waited for as long as a service would.

    :raises cfg.Error: where a file is missing or is no configuration
    :raises SystemExit: for wrong usage, and after --help
    """
    files = cfg.find_config_files(project="nova", prog="nova-scheduler")
    folders = cfg.find_config_dirs(project="nova", prog="nova-scheduler")
    CONF(
        list(arguments),
        project="nova",
        prog=PROGRAM,
        version=hpc_sched.__version__,
        default_config_files=files,
        default_config_dirs=folders,
        description="Checks what hpc_sched needs of Nova's configuration and of the cloud. Exit "
        "codes: 0 all checks passed, 1 a warning, 2 a failure, 255 an error.",
    )
    for group in ("database", "api_database"):
        CONF.set_default("max_retries", 1, group)
        CONF.set_default("retry_interval", 1, group)


def _add_parsers(parsers: Any, commands: UpgradeCommands) -> None:
    """Add ``upgrade check``, spelt as in the other services' commands."""
    upgrade: argparse.ArgumentParser = parsers.add_parser("upgrade", help="check the cloud")
    upgrade.add_argument("check", choices=["check"], help="run all checks, print their results")
    upgrade.add_argument("--json", action="store_true", help="print JSON in place of the table")
    upgrade.set_defaults(action_fn=commands.check)
