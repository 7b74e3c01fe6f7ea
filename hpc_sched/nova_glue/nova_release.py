"""Differences between the supported releases of Nova, which the extra ``nova`` lists."""

import inspect
import logging


def choose_threads() -> None:
    """Choose native threads or eventlet, as nova-scheduler of the installed release does.

    For commands of hpc_sched, before anything else of Nova is imported; Nova's services choose
    themselves. OS_NOVA_DISABLE_EVENTLET_PATCHING has the same effect as on them.
    """
    from nova import monkey_patch

    if is_threaded():
        # Nova 33 warns at each start that this is experimental; on stderr without a log.
        log = logging.getLogger(monkey_patch.__name__)
        level = log.level
        log.setLevel(logging.ERROR)
        monkey_patch.patch(backend="threading")
        log.setLevel(level)
    # Nova 31 has no such function: it patches for eventlet when the module is imported.
    elif hasattr(monkey_patch, "patch"):
        monkey_patch.patch()


def is_threaded() -> bool:
    """True if nova-scheduler of the installed release runs on native threads by default."""
    from nova import monkey_patch

    # From Nova 33 on each service names its default; 31 and 32 run everything on eventlet.
    patch = getattr(monkey_patch, "patch", None)
    return patch is not None and "backend" in inspect.signature(patch).parameters
