"""RabbitMQ, and a virtual host of the cloud's own on it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from tests.functional.servers import CONNECT_TIMEOUT, PREFIX, SERVERS

VARIABLE = "HPC_SCHED_TEST_RABBITMQ"
DEFAULT = "rabbit://guest:guest@127.0.0.1:5672"


@contextmanager
def virtual_host(database: str) -> Iterator[str]:
    """Yield the transport URL of an empty virtual host, which is deleted afterwards.

    With ``HPC_SCHED_TEST_RABBITMQ`` it is the one that this names, which nothing else may use and
    which stays. Skips the test where no broker answers.

    :param database: one of this process, whose number the virtual host gets
    """
    url = urlsplit(os.environ.get(VARIABLE, DEFAULT))
    try:
        socket.create_connection((url.hostname, url.port or 5672), CONNECT_TIMEOUT).close()
    except OSError as error:
        pytest.skip(f"no broker at {url.hostname}:{url.port or 5672} ({VARIABLE}): {error}")
    if VARIABLE in os.environ:
        yield url.geturl()
        return
    _delete_stale()
    name = re.match(rf"{PREFIX}\d+", database)[0]  # type: ignore[index]
    try:
        _rabbitmqctl("add_vhost", name)
        _rabbitmqctl("set_permissions", "-p", name, str(url.username), ".*", ".*", ".*")
    except (OSError, subprocess.CalledProcessError) as error:
        text = getattr(error, "stderr", None) or error
        pytest.skip(f"{VARIABLE} names no virtual host, and rabbitmqctl adds none: {text}")
    try:
        yield f"{url.geturl()}/{name}"
    finally:
        _rabbitmqctl("delete_vhost", name)


def _delete_stale() -> None:
    """Delete the virtual hosts of killed processes, whose databases are dropped already."""
    with SERVERS["mariadb"].connect() as connection:
        databases = connection.scalars(sa.text(SERVERS["mariadb"].list_databases)).all()
    used = {found[0] for name in databases if (found := re.match(rf"{PREFIX}\d+", name))}
    for name in _rabbitmqctl("list_vhosts", "--silent").split():
        if name.startswith(PREFIX) and name not in used:
            _rabbitmqctl("delete_vhost", name)


def _rabbitmqctl(*arguments: str) -> str:
    command = ("rabbitmqctl", "--quiet", *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
