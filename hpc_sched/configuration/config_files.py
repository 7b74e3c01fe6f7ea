"""The files of nova.conf, with errors that name the file and the option."""

import argparse
import glob
import os
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg, iniparser

from hpc_sched import exceptions, masking

# Where nova-scheduler finds its files, unless arguments name them.
PLACES = "nova.conf or nova-scheduler.conf in ~/.nova, ~, /etc/nova and /etc"


def defaults() -> dict[str, Any]:
    """Return the files and folders that nova-scheduler reads, as arguments of ConfigOpts."""
    names = {"project": "nova", "prog": "nova-scheduler"}
    return {
        "default_config_files": cfg.find_config_files(**names),
        "default_config_dirs": cfg.find_config_dirs(**names),
    }


def paths_read(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that options were read from, in their order; none before they were."""
    # ConfigOpts has public attributes for the last folder alone, and none for the order.
    arguments = getattr(conf, "_args", None)
    if arguments is None:
        return []
    return _paths_named(arguments, conf.default_config_files, conf.default_config_dirs)


def sections_of(path: str) -> dict[str, dict[str, list[str]]]:
    """Return the settings of one file by section and name, or raise ConfigError."""
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(path, sections).parse()
    except (OSError, UnicodeError, iniparser.ParseError) as error:
        raise exceptions.ConfigError(
            f"{path}: cannot be read: {masking.masked(str(error))}"
        ) from error
    return sections


def parse(conf: cfg.ConfigOpts, arguments: Sequence[str], **settings: Any) -> None:
    """Read options from arguments and the files of nova.conf.

    :param settings: further arguments of ConfigOpts
    :raises exceptions.ConfigError: naming the file that cannot be read
    """
    try:
        conf(list(arguments), **defaults(), **settings)
    except (cfg.Error, OSError, UnicodeError) as error:
        raise exceptions.ConfigError(error_text(error, arguments)) from error


def error_text(error: Exception, arguments: Sequence[str]) -> str:
    """Return the text of an error that ended the reading of nova.conf, masked."""
    # The only one without a path.
    if isinstance(error, UnicodeError):
        for path in _paths_named(arguments, *defaults().values()):
            try:
                sections_of(path)
            except exceptions.ConfigError as found:
                return str(found)
    return masking.masked(str(error))


def _paths_named(
    arguments: Sequence[str], files: Iterable[str], folders: Iterable[str]
) -> list[str]:
    """Return the files that arguments name, as oslo.config reads them: the last one counts.

    :param files: read before, unless the arguments name any
    :param folders: the same
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config-file", action="append", dest="named", type=_file, default=[])
    parser.add_argument("--config-dir", action="append", dest="named", type=_files_of)
    named, _ = parser.parse_known_args(arguments)
    options = {argument.partition("=")[0] for argument in arguments}
    found = [] if "--config-file" in options else [_file(path) for path in files]
    found += [] if "--config-dir" in options else [_files_of(folder) for folder in folders]
    return [path for paths in (*found, *named.named) for path in paths]


def _file(path: str) -> list[str]:
    return [os.path.expanduser(path)]


def _files_of(folder: str) -> list[str]:
    return sorted(glob.glob(os.path.join(os.path.expanduser(folder), "*.conf")))


def invalid(
    conf: cfg.ConfigOpts, name: str, section: str, error: Exception, *, is_secret: bool
) -> exceptions.ConfigError:
    """Return the error of an option that cannot be read, see ``option_value.value_of``."""
    # oslo.config's name of the environment variable that counts before all files.
    variable = f"OS_{section}__{name}".upper()
    places = [variable] if variable in os.environ else _paths_that_set(conf, name, section)
    place = "".join(f"{place}: " for place in places[-1:])
    # Its text begins with what is said here.
    why = str(error.__context__ if isinstance(error, cfg.ConfigSourceValueError) else error)
    if is_secret:
        # It has what follows the $, which may be half a password.
        why = f"{type(error).__name__}. A $ in a password is written $$"
    return exceptions.ConfigError(f"{place}[{section}] {name} is not valid: {why}")


def _paths_that_set(conf: cfg.ConfigOpts, name: str, section: str) -> list[str]:
    """Return the files with an option, the one that counts last."""
    found = []
    for path in paths_read(conf):
        try:
            settings = sections_of(path).get(section, {})
        except exceptions.ConfigError:  # it has changed since it was read
            continue
        if name in (key.replace("-", "_") for key in settings):
            found.append(path)
    return found
