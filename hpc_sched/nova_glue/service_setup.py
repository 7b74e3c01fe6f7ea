"""What commands outside Nova's services do before they use its objects and databases."""

from collections.abc import Sequence

import nova.conf
from nova import config as nova_config
from nova import objects, rpc
from nova.db.api import api as api_db
from nova.db.main import api as main_db

from hpc_sched import conf

CONF = nova.conf.CONF

_is_read = False


def register_objects() -> None:
    """Register Nova's objects; modules of hpc_sched use them at import."""
    objects.register_all()


def read_configuration(files: Sequence[str], folders: Sequence[str]) -> None:
    """Read nova.conf, and configure the databases; once in a process, later calls do nothing.

    :raises oslo_config.cfg.Error: if it cannot be read
    """
    global _is_read
    if _is_read:
        return
    nova_config.set_lib_defaults()
    conf.register_opts(CONF)
    arguments = [f"--config-file={path}" for path in files]
    arguments += [f"--config-dir={path}" for path in folders]
    CONF(
        arguments,
        project="nova",
        prog="hpc-sched",
        default_config_files=[],
        default_config_dirs=[],
    )
    limit_retries()
    rpc.init(CONF)  # cells are named with their message queues; nothing is sent
    main_db.configure(CONF)
    api_db.configure(CONF)
    _is_read = True


def limit_retries() -> None:
    """Try databases that do not answer once more: a service does so much more often."""
    for group in ("database", "api_database"):
        CONF.set_default("max_retries", 1, group)
        CONF.set_default("retry_interval", 1, group)
