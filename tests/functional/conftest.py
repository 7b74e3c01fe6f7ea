"""A real Nova for the functional tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.demo import cloud as cloud_  # first of all Nova: it chooses native threads
from tests.functional.clouds import SAMPLE_CONF, write_topology


@pytest.fixture(scope="module")
def start_cloud(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., cloud_.NovaCloud]]:
    """Start a Nova with the plugin enabled as etc/nova.conf.sample does; ended with the module.

    Nova's fixtures allow one cloud at a time in a process: starting another ends the first.
    """
    tmp_path_factory.getbasetemp()  # Nova's fixtures move the place of temporary files
    running: list[cloud_.NovaCloud] = []

    def stop() -> None:
        while running:
            running.pop().doCleanups()

    def start(
        leaves: dict[str, list[str]] | Path | None = None,
        options: dict[tuple[str, str], Any] | None = None,
        **attributes: Any,
    ) -> cloud_.NovaCloud:
        stop()
        cloud = cloud_.NovaCloud("runTest")
        for name, value in attributes.items():
            setattr(cloud, name, value)
        if leaves is not None:
            path = (
                leaves
                if isinstance(leaves, Path)
                else write_topology(tmp_path_factory.mktemp("topology"), leaves)
            )
            cloud.options = cloud_.read_options(SAMPLE_CONF) | {
                ("hpc_sched", "topology_file"): str(path),
                **(options or {}),
            }
        running.append(cloud)
        cloud.setUp()
        return cloud

    yield start
    stop()
