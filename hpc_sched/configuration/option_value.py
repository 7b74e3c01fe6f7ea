"""The value of an option of nova.conf, with an error that names file, section and option."""

from typing import Any

from oslo_config import cfg


def value_of(
    conf: cfg.ConfigOpts, name: str, section: str = "hpc_sched", *, is_secret: bool = False
) -> Any:
    """Return the value of an option.

    :param is_secret: whether the error must not have parts of the value
    :raises exceptions.ConfigError: naming file, section and option
    """
    try:
        return conf[section][name]
    except (cfg.Error, ValueError) as error:
        # Reads the files again: not loaded without an error.
        from hpc_sched.configuration import config_files

        raise config_files.invalid(conf, name, section, error, is_secret=is_secret) from error
