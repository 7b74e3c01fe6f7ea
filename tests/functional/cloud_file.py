"""A clouds.yaml that leads openstacksdk to the Nova and the Placement in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fixtures
import pytest
import yaml
from nova import context

from hpc_sched.demo.nova_cloud import NovaCloud

# Placement without Keystone knows the admin by this token, and of nobody else.
ADMIN = "admin"
NOVA_ADMIN = "nova-admin"
READER = "reader"


def _identified(environment: dict[str, Any], **kwargs: Any) -> context.RequestContext:
    """Return who calls: there is no Keystone, so the token is the user's name."""
    token = environment.get("HTTP_X_AUTH_TOKEN", "")
    # Nova's own client of the fixtures says who it is in headers.
    user = environment.get("HTTP_X_AUTH_USER") or token
    project = environment.get("HTTP_X_AUTH_PROJECT_ID") or "project"
    roles = (environment.get("HTTP_X_ROLES") or _ROLES.get(token, "")).split(",")
    return context.RequestContext(
        user,
        project,
        is_admin=user in (ADMIN, NOVA_ADMIN),
        roles=roles,
        # The one that the caller reads in the answer's headers.
        request_id=environment.get("openstack.request_id"),
        **kwargs,
    )


_ROLES = {
    ADMIN: "reader,member,admin",
    NOVA_ADMIN: "reader,member,admin",
    READER: "reader",
}


@contextmanager
def written(cloud: NovaCloud, path: Path) -> Iterator[Path]:
    """Write a clouds.yaml with a cloud for the admin, and clouds that cannot be read.

    openstacksdk finds it by OS_CLIENT_CONFIG_FILE as long as the context lasts.
    """
    placement = cloud.placement_fixture.endpoint
    nova = cloud.api.base_url

    def entry(token: str, **endpoints: str) -> dict[str, Any]:
        return {
            "auth_type": "admin_token",
            "auth": {"token": token, "endpoint": nova},
            "compute_endpoint_override": nova,
            "placement_endpoint_override": placement,
            **endpoints,
        }

    clouds = {
        "test": entry(ADMIN),
        "reader": entry(READER),
        "no-placement": entry(ADMIN, placement_endpoint_override="http://127.0.0.1:9/placement"),
        "no-placement-rights": entry(NOVA_ADMIN),
        "gone": entry(ADMIN, compute_endpoint_override="http://127.0.0.1:9/v2.1"),
    }
    path.write_text(yaml.safe_dump({"clouds": clouds}))
    patch = fixtures.MonkeyPatch("nova.api.auth.NovaKeystoneContext._create_context", _identified)
    with patch, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        yield path
