"""Checks of options: those of [hpc_sched] are valid, those of Nova's scheduler suit groups."""

import difflib
import os
from collections.abc import Iterable

from hpc_sched import conf, exceptions
from hpc_sched.configuration import config_files
from hpc_sched.core.logged.decision_summary import SHADOW
from hpc_sched.core.sharing.interference_file import read_index
from hpc_sched.enabled_plugins import GROUP_FILTER, INTERFERENCE_FILTER, MDOBP_WEIGHER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.claim import claim_conditions
from hpc_sched.status.finding import Findings, Verdict, failure, good, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud

# Programs that run another one as root.
_AS_ROOT = ("sudo", "doas", "pkexec")

_SHADOW = (
    "mode = shadow: hpc_sched places no VM and refuses none, it only logs what it would do. What "
    "is said here of its effects holds once mode is active."
)


def check(_cloud: InspectedCloud) -> Verdict:
    """Return what is wrong in the section [hpc_sched] of nova.conf."""
    yield from unknown_names(config_files.paths_read(CONF))
    try:
        if conf.is_shadow(CONF):
            yield good(_SHADOW)
        conf.check(CONF)
    except ValueError as error:
        yield failure(f"{error}. nova-scheduler does not start with it{_unless()}.")
    else:
        yield from _topology_command()
        yield from _interference_file()
        yield from _decision_log()
    return "All options of [hpc_sched] can be used."


def _unless() -> str:
    """Return what is added to a fault with which nova-scheduler does not start."""
    is_shadow = conf.recorded_mode(CONF) == SHADOW
    return ", except in shadow mode, which logs it and goes on" if is_shadow else ""


def unknown_names(paths: Iterable[str]) -> Findings:
    """Warn of names in [hpc_sched] of these files that are no option; oslo.config ignores them."""
    [(_, known_opts)] = conf.list_opts()
    # oslo.config still reads an option under the names that it had.
    known = [
        name.replace("-", "_")
        for opt in known_opts
        for name in (opt.dest, *(former.name for former in opt.deprecated_opts))
        if name is not None
    ]
    for path in paths:
        try:
            sections = config_files.sections_of(path)
        except exceptions.ConfigError as error:
            yield failure(f"{error}.")
            continue
        for name in sections.get(conf.GROUP.name, {}):
            if name.replace("-", "_") not in known:
                close = difflib.get_close_matches(name, known, 1)
                meant = f"did you mean {close[0]}?" if close else "remove it."
                yield warning(f"{path}: [hpc_sched] {name} is no option and has no effect: {meant}")


def _topology_command() -> Findings:
    names = [os.path.basename(part) for part in CONF.hpc_sched.topology_command]
    if names and names[0] in _AS_ROOT and "timeout" not in names:
        yield warning(
            f"topology_command runs {names[0]}: nova-scheduler cannot kill what it runs when "
            "topology_command_timeout is over, and then reads the topology no more until it ends. "
            "Let root write topology_file, or set a limit inside, as in "
            f"{names[0]},timeout,--signal=KILL,20,ibnetdiscover."
        )


def _interference_file() -> Findings:
    path = CONF.hpc_sched.interference_file
    if not path:
        return
    plugins = configured_plugins.enabled()
    if not plugins.has_filter(INTERFERENCE_FILTER):
        only = f"is read by {MDOBP_WEIGHER} alone, and keeps no applications apart"
        harm = only if plugins.reads_interference else "is not used"
        yield warning(
            f"interference_file = {path} {harm}: {INTERFERENCE_FILTER} is not "
            "enabled. Add it to enabled_filters, or remove the option."
        )
    if not plugins.reads_interference:
        return
    try:
        yield good(f"{path} knows {len(read_index(path).applications)} applications.")
    except exceptions.InterferenceError as error:
        yield failure(
            f"interference_file: {error}. nova-scheduler does not start with it{_unless()}."
        )


def _decision_log() -> Findings:
    path = CONF.hpc_sched.decision_log
    if not path:
        return
    if os.path.lexists(path):
        writable = not os.path.isdir(path) and os.access(path, os.W_OK)
    else:
        folder = os.path.dirname(path) or os.curdir
        writable = os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
    if not writable:
        yield warning(
            f"decision_log = {path} cannot be written by the user of this command: decisions "
            "are lost. Make its folder, writable for the user of nova-scheduler."
        )


def check_gang_claims(_cloud: InspectedCloud) -> Verdict:
    """Return whether groups are claimed at once."""
    if conf.recorded_mode(CONF) == SHADOW:
        return "mode is shadow: nothing is claimed ahead of Nova."
    if not CONF.hpc_sched.gang_claims:
        return "gang_claims is false: Nova claims the VMs of a group one by one."
    why = claim_conditions.obstacle()
    if not configured_plugins.enabled().has_filter(GROUP_FILTER):
        why = f"{GROUP_FILTER} is not enabled"
    if why is not None:
        yield warning(
            f"{why}, so the VMs of a group are not claimed at once: groups that are placed at the "
            "same moment split each other. Change that, or set gang_claims = false."
        )
    return (
        "The VMs of a group are claimed at once. Set allocation_conflict_retry_count = 1 "
        "in the section [placement] of Placement's own configuration."
    )


def check_scheduler_option(
    name: str, wanted: object, fine: str, otherwise: str, _cloud: InspectedCloud
) -> Verdict:
    """Return whether an option of [filter_scheduler] has the value that suits groups.

    :param otherwise: harm and remedy where it has another value, which stands for ``{}``
    """
    value = CONF.filter_scheduler[name]
    if value != wanted:
        setting = f"[filter_scheduler] {name} = {str(value).lower()}"
        yield warning(f"{setting}: {otherwise.format(value)}")
    return fine
