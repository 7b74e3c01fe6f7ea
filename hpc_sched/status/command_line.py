"""The command line of hpc-sched-status, on nova.conf and Nova's databases."""

import sys
import warnings

# An operator cannot act on what libraries warn of while they are imported.
if not sys.warnoptions:
    warnings.simplefilter("ignore")

# Threads are chosen before anything else of Nova is imported; modules of hpc_sched use Nova's
# objects at import, which exist once they are registered.
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
from hpc_sched import conf, exceptions, masking
from hpc_sched.configuration import config_files
from hpc_sched.nova_glue import service_setup
from hpc_sched.status.checks import schedulers
from hpc_sched.status.upgrade_check import UpgradeCommands

CONF = nova.conf.CONF


def run(arguments: Sequence[str]) -> int:
    """Run the command line, once in a process, and return its exit code.

    ConfigError where nova.conf cannot be read; SystemExit for wrong usage, and after --help.
    """
    logging.register_options(CONF)
    nova_config.set_lib_defaults()
    conf.register_opts(CONF)
    CONF.register_cli_opt(cfg.SubCommandOpt("command", title="commands", handler=_add_parsers))
    config_files.parse(
        CONF,
        arguments,
        project="nova",
        prog="hpc-sched-status",
        version=hpc_sched.__version__,
        description="Checks what hpc_sched needs of Nova's configuration and of the cloud. Exit "
        "codes: 0 all checks passed, 1 a warning, 2 a failure, 255 an error.",
    )
    service_setup.limit_retries()
    if not CONF.config_file and not CONF.config_dir:
        raise exceptions.ConfigError(
            f"there is no nova.conf where Nova's services look ({config_files.PLACES}): name it "
            "with --config-file or --config-dir"
        )
    try:
        rpc.init(CONF)  # cells are named with their message queues; nothing is sent
    except (ValueError, messaging.MessagingException) as error:
        raise exceptions.ConfigError(
            f"transport_url of nova.conf: {masking.masked(str(error))}"
        ) from error
    try:
        main_db.configure(CONF)
        api_db.configure(CONF)
    except cfg.Error as error:
        # Its text has what follows the $, which may be half a password.
        raise exceptions.ConfigError(
            "an option of [database] or [api_database] in nova.conf cannot be read: "
            f"{type(error).__name__}. A $ in a password is written $$"
        ) from error
    upgradecheck.CONF = CONF  # for its option --json
    return int(upgradecheck.run(CONF))


def _add_parsers(parsers: Any) -> None:
    upgrade: argparse.ArgumentParser = parsers.add_parser("upgrade", help="check the cloud")
    upgrade.add_argument("check", choices=["check"], help="run all checks, print their results")
    upgrade.add_argument("--json", action="store_true", help="print JSON in place of the table")
    upgrade.set_defaults(action_fn=UpgradeCommands().check)
    scheduler: argparse.ArgumentParser = parsers.add_parser(
        "scheduler", help="show what nova-scheduler decides by"
    )
    scheduler.add_argument(
        "show",
        choices=["show"],
        help="print digests of options and topology, and the texts that they are of",
    )
    scheduler.set_defaults(action_fn=schedulers.show)
