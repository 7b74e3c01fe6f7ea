"""Classes that sites can add by entry point."""

from typing import Any

import stevedore


def classes(namespace: str) -> list[type]:
    """Return the classes of a stevedore group, sorted by entry point name.

    :raises Exception: that of loading a broken entry point: no class goes missing silently
    """

    def broken(_manager: Any, _entry_point: Any, error: BaseException) -> None:
        raise error

    found = stevedore.ExtensionManager(namespace, on_load_failure_callback=broken)
    return [extension.plugin for extension in sorted(found, key=lambda e: str(e.name))]
