"""Nova's host manager, which reads the VMs of all hosts when its scheduler starts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from nova.scheduler import host_manager

#: the module that starts the thread which reads them; Nova 34 has one for that
_SPAWNER = "thread_pool_factory" if hasattr(host_manager, "thread_pool_factory") else "utils"


@contextmanager
def read_before_the_first_request() -> Iterator[None]:
    """Have host managers read at once what Nova has a thread read while it serves requests.

    That thread first forgets what the manager knows of VMs: what a test has said of them before,
    and on a busy machine it runs in the middle of a request.
    """

    def at_once(read: Callable[..., None], *arguments: Any) -> None:
        read(*arguments)

    # Nova 31 calls spawn_n().
    names = vars(getattr(host_manager, _SPAWNER)) | {"spawn": at_once, "spawn_n": at_once}
    with mock.patch.object(host_manager, _SPAWNER, SimpleNamespace(**names)):
        yield
