"""Connection to the APIs of Nova and Placement, by openstacksdk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hpc_sched import exceptions

# The last microversion whose list of hypervisors has cpu_info and queries no compute for uptime.
NOVA_VERSION = "2.87"
# Since 1.29 the summaries hold whole trees of providers.
PLACEMENT_VERSION = "1.36"
# A large Placement is slow to list all candidates.
TIMEOUT = 300.0  # seconds

MISSING = (
    "the live state of a cloud needs openstacksdk: pip install 'hpc-sched[cloud]', or ask a "
    "snapshot with --snapshot FILE"
)

_RIGHTS = {
    "compute": "needs the role admin, or reader with scope system, and all projects' servers",
    "placement": "needs the role admin, or reader with scope system",
}
_NAMES = {"compute": "Nova", "placement": "Placement"}

_error = exceptions.SnapshotError

Connect = Callable[[], Any]  # returns a Connection of openstacksdk


@dataclass(frozen=True, slots=True)
class Api:
    """One service's API at one microversion."""

    service: str  # as the catalog calls it
    adapter: Any  # a keystoneauth adapter
    version: str

    def get(self, path: str, **query: str) -> Mapping[str, Any]:
        """Return a path's JSON; raises a SnapshotError with the call, the failure or the right.

        A ReadingError where the same call may succeed later: not without a right.
        """
        from keystoneauth1 import exceptions as keystone
        from openstack import exceptions as sdk

        call = f"{_NAMES[self.service]}: GET {path}"
        try:
            answer = self.adapter.get(
                path,
                params=query,
                microversion=self.version,
                # By default openstacksdk puts the catalog's type of the service here.
                headers={"Accept": "application/json"},
                raise_exc=False,
                timeout=TIMEOUT,
            )
        except (keystone.ClientException, sdk.SDKException) as failure:
            raised = exceptions.ReadingError if _may_pass(failure) else _error
            raise raised(f"{call}: {_why(failure)}") from failure
        if (code := answer.status_code) != 200:
            why = _RIGHTS[self.service] if code in (401, 403) else _first_line(answer.text)
            raised = exceptions.ReadingError if _is_passing(code) else _error
            raise raised(f"{call}: HTTP {code}: {why}")
        try:
            document = answer.json()
        except ValueError as failure:
            raise exceptions.ReadingError(f"{call}: the answer is not JSON: {failure}") from failure
        if not isinstance(document, dict):
            raise exceptions.ReadingError(f"{call}: expected a mapping, found another answer")
        return document


def connect(cloud: str | Connect | None) -> tuple[Api, Api]:
    """Return the APIs of a cloud's Nova and Placement. At most a token is requested.

    :param cloud: name in clouds.yaml, or a function that connects; by default OS_CLOUD, or the
        OS_* variables
    :raises exceptions.SnapshotError: without openstacksdk, such a cloud or an endpoint
    """
    try:
        import openstack
        from keystoneauth1 import exceptions as keystone
        from openstack import exceptions as sdk
    except ImportError as failure:
        raise _error(MISSING) from failure
    try:
        found = cloud() if callable(cloud) else openstack.connect(cloud=cloud)
        return (
            Api("compute", found.compute, NOVA_VERSION),
            Api("placement", found.placement, PLACEMENT_VERSION),
        )
    except (keystone.ClientException, sdk.SDKException) as failure:
        named = f"cloud {cloud}" if cloud else "cloud of the OS_* variables"
        name = "the cloud" if callable(cloud) else named
        raise _error(f"{name}: {_why(failure)}") from failure


def _is_passing(code: int) -> bool:
    """True for a status code that the same call may not have later: of load, or of a race."""
    return code >= 500 or code in (404, 408, 409, 429)


def _may_pass(failure: Exception) -> bool:
    """True for a failure that a later call may not meet: of the network, or of a service."""
    from keystoneauth1 import exceptions as keystone

    if isinstance(failure, keystone.HttpError):
        return _is_passing(failure.http_status)
    # Of the token's renewal too, where the service that grants it does not answer.
    passing = (keystone.ConnectionError, keystone.DiscoveryFailure)
    return isinstance(failure, passing) and not isinstance(failure, keystone.SSLError)


def _why(failure: Exception) -> str:
    return _first_line(str(failure)) or type(failure).__name__


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "")
