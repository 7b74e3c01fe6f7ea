"""Of which kinds a request is: so that a test can tell that the set is not empty words."""

from collections.abc import Sequence

from tests.golden.scene import Scene


def of_request(drawn: Scene, placed: Sequence[str], refused: str | None, lost: int) -> list[str]:
    """Return the kinds of a request and of what became of it, by name."""
    wanted, setup = drawn.wanted, drawn.setup
    leaves = {drawn.fabric.leaf_of.get(node.partition(".")[0], node) for node in placed}
    on_others = [place for place in drawn.members if not _is_candidate(drawn, place)]
    said = {**wanted.extra_specs, **wanted.hints}
    tests = {
        "placed": refused is None,
        "refused": refused is not None,
        "refused in words": bool(refused) and refused not in ("no claim", "no host left"),
        "partly placed": bool(placed) and refused is not None,
        "several leaves": len(leaves) > 1,
        "several hosts": len(set(placed)) > 1,
        "several a host": len(placed) > len(set(placed)),
        "growth": bool(drawn.members),
        "growth, several a host": any(count > 1 for count in drawn.members.values()),
        "growth, members elsewhere": bool(on_others),
        "growth, placed": bool(drawn.members) and refused is None,
        "move": drawn.is_move,
        "implicit group": drawn.group is None and wanted.count > 1,
        "single VM": drawn.group is None and wanted.count == 1,
        "others await": len(drawn.queue) - drawn.orphans > drawn.count,
        "orphans": drawn.orphans > 0,
        "partial members": drawn.is_partial,
        "silent cell": bool(drawn.silent_cells),
        "in flight unknown": drawn.in_flight_unknown is not None,
        "lost claim": lost > 0,
        "full hosts offered": drawn.with_full,
        "wrong words": wanted.is_wrong,
        "user hints": bool(wanted.hints),
        "bare metal": any(not host.vcpus for host in drawn.hosts.values()),
        "outside the fabric": any(node.startswith("x") for node in drawn.hosts),
        "names with a domain": any("." in node for node in drawn.hosts),
        "aggregates": any(host.metadata for host in drawn.hosts.values()),
        "interference index": bool(setup.index),
        "more than 64 VMs": wanted.count > 64,
        "fabric " + drawn.fabric.shape: True,
        f"policy {wanted.policy}": drawn.group is not None,
        f"class {wanted.app_class}": True,
        **{f"wish {key[4:]}": True for key in said if key.startswith("hpc:")},
        **{f"weigher {name}": True for name in setup.weighers},
        **{f"filter {name}": True for name in setup.filters},
        "Nova's own weighers": setup.with_stock,
        "VMs on their way": any(vm.in_flight for host in drawn.hosts.values() for vm in host.vms),
    }
    return sorted(kind for kind, is_so in tests.items() if is_so)


def _is_candidate(drawn: Scene, place: tuple[str, str | None]) -> bool:
    host, node = place
    return any(
        there.offered and there.host == host and node in (None, there.node)
        for there in drawn.hosts.values()
    )
