"""The demo's Nova in this process, as the functional tests use it: with waits long enough."""

import contextlib
import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fixtures
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from nova.tests.functional.api.client import OpenStackApiNotFoundException

from hpc_sched.demo.nova_cloud import NovaCloud

# At two polls a second. Nova's own tests give up after 5 seconds; many services on few cores need
# longer.
MAX_POLLS = 240
# Seconds that a read of the plugin may take where nothing hangs: on a busy machine it stalls, and
# groups would be placed without what it finds.
BUSY_MACHINE = 60


# Schema by its id, with the validator for it. Those of Placement are constants of its modules.
_validators: dict[int, tuple[Any, Any]] = {}


def _validate(instance: Any, schema: Any, *_args: Any, format_checker: Any = None) -> None:
    """Validate as jsonschema does; the schema itself is checked once, not in each request."""
    if id(schema) not in _validators:
        found = validator_for(schema)
        found.check_schema(schema)
        _validators[id(schema)] = schema, found(schema, format_checker=format_checker)
    error = best_match(_validators[id(schema)][1].iter_errors(instance))
    if error is not None:
        raise error


class TestedCloud(NovaCloud):
    """A Nova in this process whose servers move, fail and are deleted."""

    #: folder of its topology and of what its options name
    folder: Path

    def setUp(self) -> None:
        """Start everything but computes."""
        self._flavors: dict[str, Any] = {}
        self.useFixture(fixtures.MonkeyPatch("jsonschema.validate", _validate))
        super().setUp()

    def start_api(self) -> None:
        """Start Nova's API, without DEBUG lines but those of the plugin."""
        # Nova's fixtures log all, and format each line several times.
        for name, level in (("", logging.INFO), ("hpc_sched", logging.DEBUG)):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(level)
        super().start_api()

    def flavor(self, name: str, **said: Any) -> str:
        """Create a flavor, unless there is an equal one, in place of one that differs."""
        if self._flavors.get(name, said) != said:
            self.delete_flavor(name)
        if self._flavors.get(name) != said:
            super().flavor(name, **said)
            self._flavors[name] = said
        return name

    def delete_flavor(self, name: str) -> None:
        """Delete a flavor, which may be created again."""
        self._flavors.pop(name, None)
        self.api.delete_flavor(name)

    @property
    def weighers(self) -> list[Any]:
        """The weighers of the running scheduler."""
        return list(self.scheduler.manager.host_manager.weighers)

    def remove(self, servers: Iterable[str]) -> None:
        """Delete servers and wait until the API shows none of them."""
        gone = list(servers)
        for server in gone:
            # A test may have deleted some of its own.
            with contextlib.suppress(OpenStackApiNotFoundException):
                self.api.delete_server(server)
        for server in gone:
            self._wait_until_deleted({"id": server})

    def _wait_for_server_parameter(
        self, server: Any, expected_params: Any, max_retries: int = 10, **others: Any
    ) -> Any:
        return super()._wait_for_server_parameter(
            server, expected_params, max(max_retries, MAX_POLLS), **others
        )

    def _wait_for_assert(self, assert_func: Any, max_retries: int = 10, sleep: float = 0.5) -> Any:
        return super()._wait_for_assert(assert_func, max(max_retries, MAX_POLLS), sleep)

    def _wait_for_server_allocations(self, consumer_id: str, max_retries: int = 20) -> Any:
        return super()._wait_for_server_allocations(consumer_id, max(max_retries, MAX_POLLS))

    def _wait_until_deleted(self, server: Mapping[str, Any]) -> None:
        # A server in ERROR keeps that status until its compute has deleted it.
        for _ in range(MAX_POLLS):
            try:
                self.api.get_server(server["id"])
            except OpenStackApiNotFoundException:
                return
            time.sleep(0.5)
        self.fail(f"server {server['id']} is still there")
