"""A topology as a file of the ``yaml`` driver."""

from collections.abc import Mapping
from typing import Any

import yaml

from hpc_sched.topology.model import Topology
from hpc_sched.topology.nested import details_of, nested


def text_of(topology: Topology) -> str:
    """Return the text from which the driver ``yaml`` reads the same fabric again."""
    processors = details_of(topology).processors

    def items(tree: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [item(name, below) for name, below in tree.items()]

    def item(name: str, below: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"name": name}
        if isinstance(below, Mapping):
            found["switches"] = items(below)
        else:
            found["hosts"] = [host(each) for each in below]
        if name in processors:
            found["processor"] = processors[name]
        return found

    def host(name: str) -> Any:
        own = topology.host_processors.get(name)
        return name if own is None else {"name": name, "processor": own}

    document = {"levels": list(topology.levels), "switches": items(nested(topology))}
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
