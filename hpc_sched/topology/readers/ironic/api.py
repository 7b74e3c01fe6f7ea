"""The lists of nodes and ports of a cloud's bare-metal service, by openstacksdk."""

import json
from typing import Any

from hpc_sched import clock, exceptions

# The first microversion in which ports say that they are a SmartNIC's; Stein.
VERSION = "1.53"
_FIELDS = {
    "nodes": "uuid,name,traits,properties,extra",
    "ports": "uuid,node_uuid,local_link_connection,physical_network",
}
# Seconds for one call, and for all.
CALL_TIMEOUT = 60.0
TIMEOUT = 300.0
# The service returns 1,000 items in a page, unless it is set to return fewer.
MAX_PAGES = 2_000


def read(cloud: str, max_bytes: int) -> bytes:
    """Return the pages of nodes, then those of ports, as JSON documents.

    Calls: a token, one for the versions of the API, and one for each page of 1,000 nodes and of
    1,000 ports, with an empty page after a full one. 1,000 nodes of 2 ports: 6 and the token.

    :param cloud: name in clouds.yaml
    :raises exceptions.TopologyError: without openstacksdk, such a cloud or an answer in time
    """
    name = name_of(cloud)
    try:
        import openstack
    except ImportError as failure:
        raise exceptions.TopologyError(
            f"{name}: needs openstacksdk: pip install 'hpc-sched[cloud]', or save the lists in a "
            "file ([hpc_sched] topology_file)"
        ) from failure
    deadline = clock.current.monotonic() + TIMEOUT
    try:
        connection = openstack.connect(cloud=cloud, api_timeout=CALL_TIMEOUT)
        pages = [
            page
            for kind in _FIELDS
            for page in _pages(connection.baremetal, kind, name, deadline, max_bytes)
        ]
    except exceptions.TopologyError:
        raise
    except Exception as failure:
        # Of openstacksdk, keystoneauth, and what they read clouds.yaml with.
        raise exceptions.TopologyError(f"{name}: {_first_line(failure)}") from failure
    return b"\n".join(pages)


def name_of(cloud: str) -> str:
    """Return what errors call the source."""
    return f"bare-metal service of cloud {cloud!r}"


def _pages(api: Any, kind: str, name: str, deadline: float, max_bytes: int) -> list[bytes]:
    call = f"{name}: GET /v1/{kind}"
    pages: list[bytes] = []
    query = {"fields": _FIELDS[kind]}
    size = 0
    for _ in range(MAX_PAGES):
        left = deadline - clock.current.monotonic()
        if left <= 0:
            raise exceptions.TopologyError(f"{call}: no end within {TIMEOUT:g} s")
        answer = api.get(
            f"/{kind}",
            params=query,
            microversion=VERSION,
            headers={"Accept": "application/json"},
            raise_exc=False,
            timeout=min(CALL_TIMEOUT, left),
        )
        if answer.status_code != 200:
            right = ": needs a user who may list nodes and ports, such as reader with scope system"
            said = answer.text.strip() or answer.reason or "no text"
            more = right if answer.status_code in (401, 403) else f": {_first_line(said)}"
            raise exceptions.TopologyError(f"{call}: HTTP {answer.status_code}{more}")
        size += len(answer.content)
        if size > max_bytes:
            raise exceptions.TopologyError(
                f"{call}: expected at most {max_bytes} bytes, found more"
            )
        try:
            page = json.loads(answer.content)
            items, has_next = page[kind], bool(page.get("next"))
            last = str(items[-1]["uuid"]) if has_next else ""
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as failure:
            raise exceptions.TopologyError(
                f"{call}: expected a list of {kind}: {failure!r}"
            ) from failure
        pages.append(answer.content)
        if not has_next:
            return pages
        query["marker"] = last
    raise exceptions.TopologyError(f"{call}: expected at most {MAX_PAGES} pages, found more")


def _first_line(failure: object) -> str:
    lines = (line.strip()[:300] for line in str(failure).splitlines())
    return next((line for line in lines if line), type(failure).__name__)
