"""Links and ratios of two descriptions as texts to compare, by name: those before, and those now.

Without ``one_sided`` there is nothing in them that only one of the two descriptions states.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from hpc_sched.topology.links import Cables, Links, ratio_text

Texts = tuple[dict[str, str | None], dict[str, str | None]]
Stated = TypeVar("Stated", Links, Cables)


def of_switches(pairs: Mapping[str, tuple[Links | None, Links | None]], one_sided: bool) -> Texts:
    """Return the links of switches that differ."""
    return _differing(pairs, _of_links, one_sided)


def of_hosts(pairs: Mapping[str, tuple[Cables | None, Cables | None]], one_sided: bool) -> Texts:
    """Return the links of hosts that differ."""
    return _differing(pairs, _of_cables, one_sided)


def of_levels(old: Mapping[str, float], new: Mapping[str, float], one_sided: bool) -> Texts:
    """Return the oversubscription of levels."""
    names = old.keys() | new.keys() if one_sided else old.keys() & new.keys()

    def texts(ratios: Mapping[str, float]) -> dict[str, str | None]:
        return {name: ratio_text(ratios[name]) for name in sorted(names & ratios.keys())}

    return texts(old), texts(new)


def _differing(
    pairs: Mapping[str, tuple[Stated | None, Stated | None]],
    texts: Callable[[Stated, Stated, bool], tuple[str, str]],
    one_sided: bool,
) -> Texts:
    before: dict[str, str | None] = {}
    now: dict[str, str | None] = {}
    for name, (old, new) in pairs.items():
        if old is not None and new is not None:
            # Nearly always: they need no texts.
            if old != new:
                before[name], now[name] = texts(old, new, one_sided)
        elif one_sided and (old is not None or new is not None):
            before[name] = texts(old, old, True)[0] if old is not None else None
            now[name] = texts(new, new, True)[1] if new is not None else None
    return before, now


def _of_links(old: Links, new: Links, one_sided: bool) -> tuple[str, str]:
    has_down = one_sided or (old.down is not None and new.down is not None)
    ups = _of_cables(old.uplinks, new.uplinks, one_sided)
    before, now = (
        (f"{links.down:g} Gb/s down, " if has_down and links.down is not None else "") + f"{up} up"
        for links, up in zip((old, new), ups, strict=True)
    )
    return before, now


def _of_cables(old: Cables, new: Cables, one_sided: bool) -> tuple[str, str]:
    """Return cables before and now; only their numbers, if one of the two states no rates."""
    if one_sided or (old.rate is not None and new.rate is not None):
        return str(old), str(new)
    return str(old.number), str(new.number)
