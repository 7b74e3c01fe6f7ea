"""Modules that need the packages of the extra ``sim``, which pictures and pages are drawn with."""

import importlib
from pathlib import Path
from typing import Any

from hpc_sched import exceptions


def load(name: str, option: str) -> Any:
    """Return a module that is imported only where an option needs it.

    :param name: of the module
    :raises exceptions.HPCSchedError: naming the package that is not installed
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package == "hpc_sched":
            raise
        raise exceptions.HPCSchedError(
            f"{option} needs the package {package}: pip install 'hpc-sched[sim]'"
        ) from missing


def check_picture(path: Path, name: str) -> None:
    """Check, before anything is computed, that ``--picture`` can be drawn and saved.

    :param name: of the module that draws it
    :raises exceptions.HPCSchedError: if it cannot
    """
    if path.is_dir() or not path.parent.is_dir():
        raise exceptions.HPCSchedError(
            f"{path}: cannot be written: expected a file in a folder that exists"
        )
    load(name, "--picture")
