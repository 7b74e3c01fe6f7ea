"""What differs between the releases of Nova that are supported.

Which ones these are stands in pyproject.toml alone, in the extra ``nova``.
"""

import inspect
import logging


def choose_threads() -> None:
    """Have this process run on what nova-scheduler of the installed release runs on.

    For commands of our own, before anything else of Nova is imported; in Nova's services Nova
    has chosen. An operator's OS_NOVA_DISABLE_EVENTLET_PATCHING counts here as it does there.
    """
    from nova import monkey_patch

    if is_threaded():
        # 33 warns at each start that this is experimental, on stderr where no log is set up yet.
        log = logging.getLogger(monkey_patch.__name__)
        level = log.level
        log.setLevel(logging.ERROR)
        monkey_patch.patch(backend="threading")
        log.setLevel(level)
    # 31 patches for eventlet when its module is imported, and has no function that does so.
    elif hasattr(monkey_patch, "patch"):
        monkey_patch.patch()


def is_threaded() -> bool:
    """Tell whether nova-scheduler of the installed release runs on native threads by default."""
    from nova import monkey_patch

    # From 33 on each service says what it runs on; 31 and 32 run everything on eventlet.
    patch = getattr(monkey_patch, "patch", None)
    return patch is not None and "backend" in inspect.signature(patch).parameters
