"""Nova's API over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from tests.cloud.edge_apis import IMAGE

MICROVERSION = "2.90"
MEMORY_MB = 1024  # of each VM
# What Keystone's middleware sets for an administrator.
HEADERS = {
    "X-User-Id": "user",
    "X-Project-Id": "project",
    "X-Roles": "admin,member,reader",
    "OpenStack-API-Version": f"compute {MICROVERSION}",
}
_DICTS = ("evacuate",)  # actions with parameters, none of which is needed


class NovaApi:
    """A client; may be used by several threads."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of a call, which has succeeded.

        :raises requests.HTTPError: with the answer's text
        """
        answer = requests.request(
            method, f"{self.url}{path}", json=body, headers=HEADERS, timeout=600
        )
        if not answer.ok:
            raise requests.HTTPError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def add_flavor(self, name: str, vcpus: int, extra_specs: Mapping[str, str | int]) -> None:
        """Create a flavor whose id is its name."""
        sizes = {"vcpus": vcpus, "ram": MEMORY_MB, "disk": 1}
        self.call("POST", "/flavors", {"flavor": {"id": name, "name": name, **sizes}})
        if specs := {f"hpc:{key}": str(value) for key, value in extra_specs.items()}:
            self.call("POST", f"/flavors/{name}/os-extra_specs", {"extra_specs": specs})

    def add_group(self, name: str, policy: str) -> str:
        """Create a server group and return its id."""
        body = {"server_group": {"name": name, "policy": policy}}
        return str(self.call("POST", "/os-server-groups", body)["server_group"]["id"])

    def boot(
        self,
        name: str,
        flavor: str,
        count: int = 1,
        group: str | None = None,
        host: str | None = None,
    ) -> None:
        """Create servers in one request.

        :param host: where it goes past the filters and weighers
        """
        server = {
            "name": name,
            "imageRef": IMAGE,
            "flavorRef": flavor,
            "networks": "none",
            "min_count": count,
            "max_count": count,
            **({"availability_zone": f"nova:{host}"} if host else {}),
        }
        hints = {"os:scheduler_hints": {"group": group}} if group else {}
        self.call("POST", "/servers", {"server": server, **hints})

    def act(self, server: str, action: str) -> None:
        """Begin an action without parameters on a server."""
        self.call("POST", f"/servers/{server}/action", {action: {} if action in _DICTS else None})

    def force_down(self, host: str, is_down: bool) -> None:
        """Say that a compute does not run, or that it does again."""
        path = f"/os-services?binary=nova-compute&host={host}"
        [service] = self.call("GET", path)["services"]
        self.call("PUT", f"/os-services/{service['id']}", {"forced_down": is_down})

    def server(self, server: str) -> dict[str, Any]:
        """Return a server with its details."""
        found: dict[str, Any] = self.call("GET", f"/servers/{server}")["server"]
        return found

    def servers(self) -> list[dict[str, Any]]:
        """Return all servers with their details."""
        found: list[dict[str, Any]] = self.call("GET", "/servers/detail?all_tenants=1")["servers"]
        return found
