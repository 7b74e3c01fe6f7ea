"""Placement in memory: providers in trees, their inventories, resource classes and candidates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib import parse

from tests.protocol.placement_answers import CONCURRENT, Body, Response, error

DUPLICATE, IN_USE = "placement.duplicate_name", "placement.inventory.inuse"
PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
STANDARD = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
_USUAL = {"reserved": 0, "min_unit": 1, "step_size": 1}
_MOST = 2**31 - 1


@dataclass(slots=True)
class Provider:
    """A resource provider."""

    name: str
    totals: dict[str, int]  # by resource class
    generation: int = 0
    parent: str | None = None  # its uuid
    ratios: dict[str, float] = field(default_factory=dict)  # by class; others are 1

    def capacity(self, name: str) -> int:
        """Return what there is of a resource class."""
        return int(self.totals.get(name, 0) * self.ratios.get(name, 1.0))

    def inventory(self, name: str) -> dict[str, Any]:
        """Return an inventory with what the API adds."""
        ratio = self.ratios.get(name, 1.0)
        stated = {"total": self.totals[name], "max_unit": _MOST, "allocation_ratio": ratio}
        return {**_USUAL, **stated}


@dataclass
class ProviderRequests:
    """Answers requests on providers, inventories, resource classes and candidates."""

    providers: dict[str, Provider] = field(default_factory=dict)
    # Consumer to (provider, resource class) to amount; may hold those without a record.
    allocations: dict[str, dict[tuple[str, str], int]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)  # the custom ones that were made

    def answer_on_providers(self, method: str, path: str, body: Body) -> Response:
        """Answer a request that is none of consumers."""
        parsed = parse.urlparse(path)
        query = dict(parse.parse_qsl(parsed.query))
        match (method, *parsed.path.strip("/").split("/")):
            case ("GET", "allocation_candidates"):
                return self._candidates(query["resources"], query.get("in_tree"))
            case ("GET", "resource_providers"):
                return self._list(query)
            case ("POST", "resource_providers"):
                return self._create(body)
            case ("GET", "resource_providers", uuid):
                return self._at(uuid, lambda: Response(200, self._entry(uuid)))
            case ("DELETE", "resource_providers", uuid):
                return self._destroy(uuid)
            case ("PUT", "resource_providers", uuid, "inventories"):
                return self._at(uuid, lambda: self._set_totals(uuid, body))
            case ("GET", "resource_providers", uuid, what):
                return self._at(uuid, lambda: self._amounts(uuid, what))
            case ("PUT", "resource_classes", name):
                status = 204 if name in self.classes else 201
                self.classes.add(name)
                return Response(status)
        raise AssertionError(f"{method} {path} is not in this model")

    def used(self, provider: str, resource_class: str) -> int:
        """Return what is in use, listed or not."""
        return sum(held.get((provider, resource_class), 0) for held in self.allocations.values())

    def root(self, uuid: str) -> str:
        """Return the root of a provider's tree."""
        while (parent := self.providers[uuid].parent) is not None:
            uuid = parent
        return uuid

    def not_found(self, uuid: str) -> Response:
        """Return the answer on a provider that does not exist."""
        return error(404, f"No resource provider with uuid {uuid} found")

    def _at(self, uuid: str, answer: Callable[[], Response]) -> Response:
        """Return an answer on a provider, or the one that it does not exist."""
        return answer() if uuid in self.providers else self.not_found(uuid)

    def _entry(self, uuid: str) -> dict[str, Any]:
        found = self.providers[uuid]
        return {
            "uuid": uuid,
            "name": found.name,
            "generation": found.generation,
            "parent_provider_uuid": found.parent,
            "root_provider_uuid": self.root(uuid),
        }

    def _list(self, query: Mapping[str, str]) -> Response:
        assert query.keys() <= {"in_tree", "name", "uuid", "resources"}, f"not modelled: {query}"
        found = list(self.providers)
        if (tree := query.get("in_tree")) is not None:
            found = self._tree(tree)
        if "resources" in query:
            demand = _demand(query["resources"])
            found = [uuid for uuid in found if self._fits(uuid, demand)]
        for what in ("name", "uuid"):
            if what in query:
                found = [uuid for uuid in found if self._entry(uuid)[what] == query[what]]
        return Response(200, {"resource_providers": [self._entry(uuid) for uuid in found]})

    def _tree(self, uuid: str) -> list[str]:
        if uuid not in self.providers:
            return []
        root = self.root(uuid)
        return [other for other in self.providers if self.root(other) == root]

    def _create(self, body: Body) -> Response:
        uuid, name, parent = body["uuid"], body["name"], body.get("parent_provider_uuid")
        if parent == uuid or (parent is not None and parent not in self.providers):
            return error(
                400,
                f'Unable to create resource provider "{name}", {uuid}: Object action create '
                "failed because: parent provider UUID does not exist.",
            )
        names = {found.name for found in self.providers.values()}
        for what, is_there in (("name", name in names), ("uuid", uuid in self.providers)):
            if is_there:
                text = f"Conflicting resource provider {what}: {body[what]} already exists."
                return error(409, text, DUPLICATE)
        self.providers[uuid] = Provider(name, {}, parent=parent)
        return Response(200, self._entry(uuid))

    def _destroy(self, uuid: str) -> Response:
        if uuid not in self.providers:
            return error(404, f"No resource provider with uuid {uuid} found for delete")
        if any(found.parent == uuid for found in self.providers.values()):
            text = f"Unable to delete parent resource provider {uuid}: It has child resource"
            return error(409, f"{text} providers.", PARENT)
        if any(at == uuid for held in self.allocations.values() for at, _ in held):
            text = f"Unable to delete resource provider {uuid}: Resource provider has allocations."
            return error(409, text, PROVIDER_IN_USE)
        del self.providers[uuid]
        return Response(204)

    def _amounts(self, uuid: str, what: str) -> Response:
        provider = self.providers[uuid]
        generation = {"resource_provider_generation": provider.generation}
        if what == "inventories":
            found = {name: provider.inventory(name) for name in provider.totals}
            return Response(200, {"inventories": found, **generation})
        assert what == "usages", f"{what} of providers are not in this model"
        used = {name: self.used(uuid, name) for name in provider.totals}
        return Response(200, {"usages": used, **generation})

    def _set_totals(self, uuid: str, body: Body) -> Response:
        provider = self.providers[uuid]
        if body["resource_provider_generation"] != provider.generation:
            return error(409, "resource provider generation conflict", CONCURRENT)
        stocks = body["inventories"]
        assert all(
            stock.get(name, usual) == usual
            for stock in stocks.values()
            for name, usual in {**_USUAL, "max_unit": _MOST}.items()
        ), f"only totals and ratios are in this model: {stocks}"
        found = {name: stock["total"] for name, stock in stocks.items()}
        if unknown := sorted(found.keys() - self.classes - set(STANDARD)):
            why = f"No such resource class {unknown[0]}."
            text = f"Unknown resource class in inventory for resource provider {uuid}: {why}"
            return error(400, text)
        if gone := sorted(name for name in provider.totals if name not in found):
            held = [name for name in gone if self.used(uuid, name)]
            if held:
                why = f"Inventory for '{', '.join(held)}' on resource provider '{uuid}' in use."
                return error(409, f"update conflict: {why}", IN_USE)
        provider.totals = found
        provider.ratios = {name: one.get("allocation_ratio", 1.0) for name, one in stocks.items()}
        provider.generation += 1
        return Response(
            200,
            {
                "resource_provider_generation": provider.generation,
                "inventories": {name: provider.inventory(name) for name in found},
            },
        )

    def _candidates(self, resources: str, tree: str | None) -> Response:
        """Return the candidates: each class from any provider of a tree."""
        demand = _demand(resources)
        trees: dict[str, list[str]] = {}
        for uuid in self.providers if tree is None else self._tree(tree):
            trees.setdefault(self.root(uuid), []).append(uuid)
        found = {root: list(self._choices(some, demand)) for root, some in trees.items()}
        return Response(
            200,
            {
                "allocation_requests": [one for some in found.values() for one in some],
                "provider_summaries": {
                    uuid: self._summary(uuid)
                    for root, some in found.items()
                    if some
                    for uuid in trees[root]
                },
            },
        )

    def _choices(
        self, providers: Sequence[str], demand: Mapping[str, int]
    ) -> Iterator[dict[str, Any]]:
        having = [
            [uuid for uuid in providers if self._fits(uuid, {name: amount})]
            for name, amount in demand.items()
        ]
        for chosen in itertools.product(*having):
            allocations: dict[str, dict[str, dict[str, int]]] = {}
            for uuid, (name, amount) in zip(chosen, demand.items(), strict=True):
                allocations.setdefault(uuid, {"resources": {}})["resources"][name] = amount
            yield {"allocations": allocations, "mappings": {"": sorted(allocations)}}

    def _summary(self, uuid: str) -> dict[str, Any]:
        provider = self.providers[uuid]
        return {
            "resources": {
                name: {"capacity": provider.capacity(name), "used": self.used(uuid, name)}
                for name in provider.totals
            },
            "traits": [],
            "parent_provider_uuid": provider.parent,
            "root_provider_uuid": self.root(uuid),
        }

    def _fits(self, uuid: str, demand: Mapping[str, int]) -> bool:
        provider = self.providers[uuid]
        return all(
            provider.capacity(name) - self.used(uuid, name) >= amount
            for name, amount in demand.items()
        )


def _demand(resources: str) -> dict[str, int]:
    stated = (one.partition(":") for one in resources.split(","))
    return {name: int(amount) for name, _, amount in stated}
