"""The real Placement, whose transactions another request can interrupt at any step.

A process of its own, for Placement's database is one of the process: it reads sequences of
requests from stdin, one a line, and prints the answers and the rows that are left. On SQLite steps
are those between its transactions of the database. With a server's URL as argument it repeats what
others got in the way of, and the steps are those before it raises the generation of a provider.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jsonschema
import sqlalchemy as sa
from oslo_config import cfg
from placement import conf as placement_conf
from placement import context as placement_context
from placement import db_api, deploy
from placement.db.sqlalchemy import models
from placement.handlers import allocation as handler
from placement.handlers import util as handler_util
from placement.objects import consumer as consumers
from placement.objects import resource_provider

from tests.functional import provider_rows
from tests.functional.provider_rows import Provider


class RealPlacement:
    """Its application, with a hook before each step of a transaction."""

    def __init__(self, url: str | None = None) -> None:
        """Make the tables, and install the hooks.

        :param url: of a database on a server, which is empty
        """
        self.config = cfg.ConfigOpts()
        placement_conf.register_opts(self.config)
        self.config.set_override("connection", url or "sqlite://", "placement_database")
        self.config([], project="placement", default_config_files=[])
        self.config.set_override("auth_strategy", "noauth2", "api")
        if url is None:
            self.config.set_override("allocation_conflict_retry_count", 1, "placement")
        db_api.configure(self.config)
        self.context = placement_context.RequestContext(config=self.config)
        models.BASE.metadata.create_all(db_api.get_placement_engine())
        self.application = deploy.loadapp(self.config)
        self.at_step: Callable[[], None] | None = None
        self._is_put = False
        # To build the validators of the schemas for each request takes longer than all the rest.
        jsonschema.validate = _validate
        if url is None:
            self._install()
        else:
            provider = resource_provider.ResourceProvider
            provider.increment_generation = self._before(provider.increment_generation)

    def begin(self, providers: Mapping[str, Mapping[str, int]]) -> None:
        """Remove what a sequence has left, and make providers: uuid to total by resource class."""
        with db_api.get_placement_engine().begin() as connection:
            written = (models.Allocation, models.Consumer, models.Inventory)
            for model in written:
                connection.execute(sa.delete(model))
            provider = models.ResourceProvider
            # Each is the root of its tree.
            connection.execute(sa.update(provider).values(root_provider_id=None))
            connection.execute(sa.delete(provider))
        provider_rows.write(
            [
                Provider(uuid, inventories={name: {"total": n} for name, n in totals.items()})
                for uuid, totals in providers.items()
            ]
        )

    def send(
        self, method: str, path: str, body: Any = None, version: str = "1.36"
    ) -> tuple[int, Any]:
        """Return status and body of the answer to a request by a microversion."""
        sent = b"" if body is None else json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path.partition("?")[0],
            "QUERY_STRING": path.partition("?")[2],
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(sent),
            "wsgi.errors": sys.stderr,
            "CONTENT_LENGTH": str(len(sent)),
            "CONTENT_TYPE": "application/json",
            "HTTP_X_AUTH_TOKEN": "admin",
            "HTTP_OPENSTACK_API_VERSION": f"placement {version}",
        }
        statuses: list[int] = []
        outer, self._is_put = self._is_put, method == "PUT"
        found = b"".join(
            self.application(environ, lambda status, *_: statuses.append(int(status.split()[0])))
        )
        self._is_put = outer
        return statuses[0], json.loads(found) if found else None

    def interrupted(self, request: Sequence[Any], step: int, by: Sequence[Any]) -> list[Any]:
        """Answer a request that is interrupted before one of its steps by others."""
        number, others = 0, list[Any]()

        def count() -> None:
            nonlocal number
            if number == step:
                self.at_step = None
                others.extend(self.send(*other) for other in by)
                self.at_step = count
            number += 1

        self.at_step = count
        answer = self.send(*request)
        self.at_step = None
        return [answer, *others]

    def rows(self) -> dict[str, Any]:
        """Return all rows that requests write."""
        allocation, provider, consumer = models.Allocation, models.ResourceProvider, models.Consumer
        name, project, user = models.ResourceClass.name, models.Project, models.User
        with db_api.get_placement_engine().connect() as connection:
            held = connection.execute(
                sa.select(allocation.consumer_id, provider.uuid, name, allocation.used)
                .join(provider, provider.id == allocation.resource_provider_id)
                .join(models.ResourceClass, models.ResourceClass.id == allocation.resource_class_id)
            ).all()
            of_consumers = connection.execute(
                sa.select(
                    *(consumer.uuid, project.external_id, user.external_id, consumer.generation),
                    sa.func.coalesce(models.ConsumerType.name, ""),
                )
                .join(project, project.id == consumer.project_id)
                .join(user, user.id == consumer.user_id)
                .outerjoin(models.ConsumerType, models.ConsumerType.id == consumer.consumer_type_id)
            ).all()
            generations = connection.execute(sa.select(provider.uuid, provider.generation)).all()
        return {
            "allocations": sorted(map(list, held)),
            "consumers": sorted(map(list, of_consumers)),
            "providers": sorted(map(list, generations)),
        }

    def _install(self) -> None:
        """Call the hook before each step, where no transaction of the database is open."""

        def after(function: Callable[..., Any], *, of_put: bool) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                found = function(*args, **kwargs)
                if self._is_put is of_put:
                    self._step()
                return found

            return call

        handler_util.ensure_consumer = self._before(handler_util.ensure_consumer)
        for name in ("create", "delete"):
            setattr(consumers.Consumer, name, self._before(getattr(consumers.Consumer, name)))
        handler.create_allocation_list = after(handler.create_allocation_list, of_put=False)
        handler._resource_providers_by_uuid = after(
            handler._resource_providers_by_uuid, of_put=True
        )
        objects = handler.alloc_obj
        handler.alloc_obj = type("Hooked", (), dict(vars(objects)))
        handler.alloc_obj.get_all_by_consumer_id = after(
            objects.get_all_by_consumer_id, of_put=True
        )

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._step()
            return function(*args, **kwargs)

        return call

    def _step(self) -> None:
        if self.at_step is not None:
            self.at_step()


_validators: dict[int, Any] = {}  # by the schema's identity


def _validate(data: Any, schema: Any, format_checker: Any = None) -> None:
    validator = _validators.get(id(schema))
    if validator is None:
        made = jsonschema.validators.validator_for(schema)
        validator = _validators[id(schema)] = made(schema, format_checker=format_checker)
    validator.validate(data)


def main() -> None:
    """Answer sequences: ``{"providers": {...}, "requests": [[request, step, others], ...]}``."""
    placement = RealPlacement(*sys.argv[1:])
    for line in sys.stdin:
        sequence = json.loads(line)
        placement.begin(sequence["providers"])
        answers: list[Any] = []
        for request, step, by in sequence["requests"]:
            answers.append(placement.interrupted(request, step, by))
        print(json.dumps({"answers": answers, "rows": placement.rows()}), flush=True)


if __name__ == "__main__":
    main()
