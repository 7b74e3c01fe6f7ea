"""Texts for a terminal."""

import math


def text_of(found: str) -> str:
    """Return a text on one line, control characters escaped, which names in a snapshot may have."""
    if found.isprintable():
        return found
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in found
    )


def hop_bytes(cost: float | None) -> str:
    """Return a Hop-Byte cost; None or infinite is that of VMs on several islands of the fabric."""
    return "infinite (islands)" if cost is None or math.isinf(cost) else f"{cost:.0f}"
