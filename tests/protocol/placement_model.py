"""Placement in memory: the rules by which it writes allocations, one step after the other.

A transaction is a generator that stops before each step at which Placement's database can be seen
by others: the look for a consumer, the making of its record, the write of all allocations, and the
removal of records after a failure. So one transaction can be interleaved with others at any step.

Providers and resource classes are in ``placement_providers.py``.

``test_placement_model.py`` compares it with Placement 16.0.0, answer for answer and row for row.
What is left out: resource classes with ``min_unit`` or ``step_size``, traits, and other
microversions than 1.36, but for the consumer types of 1.38. ``test_placement_retries.py`` compares
``is_retrying``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.protocol.placement_answers import CONCURRENT, UNDEFINED, Body, Response, error
from tests.protocol.placement_providers import Provider, ProviderRequests

__all__ = ["CONCURRENT", "PlacementModel", "Provider", "Response", "Steps", "error", "finished"]

# Stops before each step with its name; returns the answer.
Steps = Generator[str, None, Response]

# The first microversion with types of consumers.
TYPED = (1, 38)
_CHANGED = "Another thread concurrently updated the data. Please retry your update"
_PROVIDER_CHANGED = (
    "Another thread concurrently updated the resource provider data. Please retry your update"
)


@dataclass(slots=True)
class Record:
    """The record of a consumer."""

    number: int  # its primary key
    project: str
    user: str
    generation: int = 0
    type: str | None = None


class _RefusedError(Exception):
    """A transaction is not made."""

    def __init__(self, status: int, detail: str, code: str = UNDEFINED) -> None:
        super().__init__(detail)
        self.answer = error(status, detail, code)


def finished(steps: Steps, before: str | None = None) -> Response | None:
    """Return the answer to a request once its further steps are done.

    :param before: the step before which it stops; it has no answer then
    """
    while True:
        try:
            if next(steps) == before:
                return None
        except StopIteration as end:
            answer: Response = end.value
            return answer


@dataclass
class PlacementModel(ProviderRequests):
    """Providers, consumers and allocations, as the rows of its database."""

    consumers: dict[str, Record] = field(default_factory=dict)
    # Whether ``allocation_conflict_retry_count`` is above 1, on a server database: a transaction
    # that finds a provider changed is written by what was in use when it began to write.
    is_retrying: bool = False
    _numbers: int = 0

    def send(
        self, method: str, path: str, body: Body | None = None, version: str = "1.36"
    ) -> Response:
        """Answer a request as a whole."""
        answer = finished(self.begin(method, path, body, version))
        assert answer is not None
        return answer

    def begin(
        self, method: str, path: str, body: Body | None = None, version: str = "1.36"
    ) -> Steps:
        """Begin a request; the generator returns its answer."""
        is_typed = tuple(map(int, version.split("."))) >= TYPED
        match (method, *path.partition("?")[0].strip("/").split("/")):
            case ("GET", "allocations", consumer):
                return _at_once(self.held(consumer, is_typed=is_typed))
            case ("PUT", "allocations", consumer):
                return self._write({consumer: body or {}}, consumer, is_typed=is_typed)
            case ("POST", "allocations"):
                return self._write(body or {}, is_typed=is_typed)
            case ("DELETE", "allocations", consumer):
                return _at_once(self._delete(consumer))
            case ("GET", "resource_providers", provider, "allocations"):
                return _at_once(self._allocations_of(provider))
        return _at_once(self.answer_on_providers(method, path, body or {}))

    def held(self, consumer: str, *, is_typed: bool = False) -> Response:
        """Return the answer to GET /allocations/CONSUMER."""
        record = self.consumers.get(consumer)
        rows = self.allocations.get(consumer)
        if record is None or not rows:
            return Response(200, {"allocations": {}})
        found: dict[str, Any] = {}
        for (provider, resource_class), amount in rows.items():
            generation = self.providers[provider].generation
            entry = found.setdefault(provider, {"generation": generation, "resources": {}})
            entry["resources"][resource_class] = amount
        return Response(
            200,
            {
                "allocations": found,
                "project_id": record.project,
                "user_id": record.user,
                "consumer_generation": record.generation,
                **({"consumer_type": record.type or "unknown"} if is_typed else {}),
            },
        )

    @property
    def unlisted(self) -> list[str]:
        """The consumers whose usage is without a record."""
        return sorted(self.allocations.keys() - self.consumers.keys())

    def _allocations_of(self, uuid: str) -> Response:
        if uuid not in self.providers:
            return self.not_found(uuid)
        held: dict[str, Any] = {}
        for consumer, rows in self.allocations.items():
            record = self.consumers.get(consumer)
            here = {name: amount for (at, name), amount in rows.items() if at == uuid}
            if record is not None and here:
                held[consumer] = {"resources": here, "consumer_generation": record.generation}
        generation = self.providers[uuid].generation
        body = {"allocations": held, "resource_provider_generation": generation}
        return Response(200, body)

    def _delete(self, consumer: str) -> Response:
        if self.held(consumer).body["allocations"] == {}:
            return error(404, f"No allocations for consumer '{consumer}'")
        del self.allocations[consumer], self.consumers[consumer]
        return Response(204)

    def _write(self, body: Body, of: str | None = None, *, is_typed: bool = False) -> Steps:
        """Replace the allocations of consumers.

        :param of: the consumer of a PUT, whose errors differ
        :param is_typed: whether the type of a consumer is stated
        """
        if is_typed and any("consumer_type" not in wanted for wanted in body.values()):
            return error(400, "JSON does not validate: 'consumer_type' is a required property")
        made: list[Record] = []
        types: dict[str, str] = {}
        try:
            seen = yield from self._find_consumers(body, made, types)
        except _RefusedError as refused:
            yield from self._remove(made)
            return refused.answer
        looked_for = dict(seen)
        # What is removed is what is there now; the providers' generations are those of now.
        rows: list[tuple[str, str, str, int]] = []
        generations: dict[str, int] = {}
        for consumer, wanted in body.items():
            allocations = wanted["allocations"]
            for provider in allocations:
                if provider not in self.providers:
                    # The records that were made stay.
                    what = f"Allocation for resource provider '{provider}' that does not exist."
                    return error(400, what)
                generations[provider] = self.providers[provider].generation
            if allocations:
                rows += [
                    (consumer, provider, name, amount)
                    for provider, found in allocations.items()
                    for name, amount in found["resources"].items()
                ]
            elif (record := self.consumers.get(consumer)) is not None:
                rows += [(consumer, *key, 0) for key in self.allocations.get(consumer, {})]
                # Of what is emptied the generation is read again, and not compared with the
                # one that was sent.
                seen[consumer] = record.number, record.generation
        for _, provider, _, _ in rows:
            generations.setdefault(provider, self.providers[provider].generation)
        view = dict(self.allocations)
        yield "write"
        first = rows[0][1] if rows else None
        if not self.is_retrying:
            view = self.allocations
        elif first is not None and self.providers[first].generation != generations[first]:
            # It is written again by new generations. If a later provider has changed, it has raised
            # the first one's by then, which so fails whenever it is written again.
            generations = {one: self.providers[one].generation for one in generations}
        retyped = [
            (record, types[uuid])
            for uuid in types
            if (record := self.consumers.get(uuid)) is not None
            and (record.number, record.generation) == looked_for[uuid]
        ]
        try:
            self._replace(rows, seen, generations, view)
        except _RefusedError as refused:
            yield from self._remove(made)
            return refused.answer
        for record, name in retyped:
            record.type = name
        return Response(204)

    def _find_consumers(
        self, body: Body, made: list[Record], types: dict[str, str]
    ) -> Generator[str, None, dict[str, tuple[int, int]]]:
        """Return number and generation of each consumer's record; make those that are lacking.

        :param types: gets the types that consumers have after the write
        """
        seen = {}
        for consumer, wanted in body.items():
            got, type_ = wanted["consumer_generation"], wanted.get("consumer_type")
            yield f"look for {consumer}"
            record = self.consumers.get(consumer)
            if record is None:
                if got is not None:
                    raise _conflict("null", got)
                yield f"make {consumer}"
                # Another one may have made it meanwhile, whose generation is not compared.
                record = self.consumers.get(consumer)
                if record is None:
                    self._numbers += 1
                    owner = wanted["project_id"], wanted["user_id"]
                    record = Record(self._numbers, *owner, type=type_)
                    self.consumers[consumer] = record
                    made.append(record)
                # At once, and for good, whatever becomes of the write.
                record.type = type_
            elif record.generation != got:
                raise _conflict(record.generation, got)
            elif type_ is not None and type_ != record.type:
                types[consumer] = type_
            seen[consumer] = record.number, record.generation
        return seen

    def _replace(
        self,
        rows: list[tuple[str, str, str, int]],
        seen: Mapping[str, tuple[int, int]],
        generations: Mapping[str, int],
        view: Mapping[str, Mapping[tuple[str, str], int]],
    ) -> None:
        """Write rows in one transaction; an amount of 0 removes.

        :param view: the allocations by which it checks the room
        """
        consumers = list(dict.fromkeys(consumer for consumer, *_ in rows))
        keys = {(at, name) for _, at, name, _ in rows}
        before = {key: sum(held.get(key, 0) for held in view.values()) for key in keys}
        left = {uuid: held for uuid, held in view.items() if uuid not in consumers}
        self._check_room(rows, before, left)
        written = {uuid: held for uuid, held in self.allocations.items() if uuid not in consumers}
        for consumer, provider, name, amount in rows:
            if amount:
                written.setdefault(consumer, {})[provider, name] = amount
        touched = list(dict.fromkeys(provider for _, provider, _, _ in rows))
        for provider in touched:
            if self.providers[provider].generation != generations[provider]:
                raise _RefusedError(409, _inventory_changed(_PROVIDER_CHANGED), CONCURRENT)
        for consumer in consumers:
            number, generation = seen[consumer]
            record = self.consumers.get(consumer)
            if record is None or (record.number, record.generation) != (number, generation):
                raise _RefusedError(409, _inventory_changed(_CHANGED), CONCURRENT)
        self.allocations = written
        for provider in touched:
            self.providers[provider].generation += 1
        for consumer in consumers:
            self.consumers[consumer].generation += 1
            if consumer not in written:
                del self.consumers[consumer]

    def _check_room(
        self,
        rows: list[tuple[str, str, str, int]],
        before: Mapping[tuple[str, str], int],
        left: Mapping[str, Mapping[tuple[str, str], int]],
    ) -> None:
        """Check, row for row, that what is added has room, or lowers what was in use."""
        added: Counter[tuple[str, str]] = Counter()
        for _, provider, name, amount in rows:
            if not amount:
                continue
            key = provider, name
            added[key] += amount
            used = sum(held.get(key, 0) for held in left.values())
            total = self.providers[provider].capacity(name)
            if name.startswith("CUSTOM_") and name not in self.classes:
                raise _RefusedError(400, f"No such resource class {name}.")
            if name not in self.providers[provider].totals:
                what = f"Inventory for '{name}' on resource provider '{provider}' invalid."
                raise _RefusedError(409, _unable(what))
            if total < used + added[key] and not (before[key] and used + added[key] <= before[key]):
                raise _RefusedError(
                    409,
                    _unable(
                        f"Unable to create allocation for '{name}' on resource provider "
                        f"'{provider}'. The requested amount would exceed the capacity."
                    ),
                )

    def _remove(self, made: list[Record]) -> Generator[str, None, None]:
        """Remove the records that a failed transaction has made, whatever they hold by now."""
        for record in made:
            yield "remove a record"
            for consumer, found in list(self.consumers.items()):
                if found.number == record.number:
                    del self.consumers[consumer]


def _at_once(answer: Response) -> Steps:
    return answer
    yield


def _conflict(expected: object, got: object) -> _RefusedError:
    detail = f"consumer generation conflict - expected {expected} but got {got}"
    return _RefusedError(409, detail, CONCURRENT)


def _unable(why: str) -> str:
    return f"Unable to allocate inventory: {why}"


def _inventory_changed(why: str) -> str:
    return f"Inventory and/or allocations changed while attempting to allocate: {why}"
