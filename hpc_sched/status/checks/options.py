"""Check: the values in [hpc_sched] are valid, and no name in that section is misspelt."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

import nova.conf
from oslo_config import cfg, iniparser

from hpc_sched import conf, exceptions, masking
from hpc_sched.core.sharing.interference_file import read_index
from hpc_sched.enabled_plugins import INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.status.finding import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import InspectedCloud

CONF = nova.conf.CONF


def check(_cloud: InspectedCloud) -> list[Finding]:
    """Return what is wrong in the section [hpc_sched] of nova.conf."""
    files = list(CONF.config_file or ())
    for folder in CONF.config_dir or ():
        files += sorted(str(path) for path in Path(folder).glob("*.conf"))
    found = unknown_names(files)
    try:
        conf.check(CONF)
    except ValueError as error:
        return [*found, failure(f"{error}. nova-scheduler does not start with it.")]
    found += [*_interference_file(), *_decision_log()]
    return found or [good("All options of [hpc_sched] can be used.")]


def unknown_names(paths: Iterable[str]) -> list[Finding]:
    """Return a warning for every name in [hpc_sched] that is no option; oslo.config ignores it.

    :param paths: the files of nova.conf
    """
    known = [opt.dest for opt in conf.OPTS]
    found = []
    for path in paths:
        sections: dict[str, dict[str, list[str]]] = {}
        try:
            cfg.ConfigParser(path, sections).parse()
        except (OSError, UnicodeError, iniparser.ParseError) as error:
            found.append(failure(f"{path}: cannot be read: {masking.masked(str(error))}."))
            continue
        for name in sections.get(conf.GROUP.name, {}):
            if name.replace("-", "_") not in known:
                close = difflib.get_close_matches(name, known, 1)
                meant = f"did you mean {close[0]}?" if close else "remove it."
                found.append(
                    warning(f"{path}: [hpc_sched] {name} is no option and has no effect: {meant}")
                )
    return found


def _interference_file() -> list[Finding]:
    path = CONF.hpc_sched.interference_file
    if not path:
        return []
    if not configured_plugins.enabled().has_filter(INTERFERENCE_FILTER):
        return [
            warning(
                f"interference_file = {path} is not used: {INTERFERENCE_FILTER} is not "
                "enabled. Add it to enabled_filters, or remove the option."
            )
        ]
    try:
        index = read_index(path)
    except exceptions.InterferenceError as error:
        return [failure(f"interference_file: {error}. nova-scheduler does not start with it.")]
    return [good(f"{path} knows {len(index.applications)} applications.")]


def _decision_log() -> list[Finding]:
    path = CONF.hpc_sched.decision_log
    if not path:
        return []
    if os.path.lexists(path):
        writable = not os.path.isdir(path) and os.access(path, os.W_OK)
    else:
        folder = os.path.dirname(path) or os.curdir
        writable = os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
    if writable:
        return []
    return [
        warning(
            f"decision_log = {path} cannot be written by the user of this command: decisions "
            "are lost. Make its folder, writable for the user of nova-scheduler."
        )
    ]
