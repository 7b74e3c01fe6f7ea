"""The check of the metrics: what would keep nova-scheduler from having any."""

import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest
from oslo_upgradecheck.upgradecheck import Code
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hpc_sched import conf
from hpc_sched.metrics import catalogue
from hpc_sched.metrics.address import Address
from hpc_sched.metrics.endpoint import Endpoint
from hpc_sched.status.checks import metrics_endpoint
from hpc_sched.status.finding import merged
from hpc_sched.status.inspected_cloud import InspectedCloud

CONF = nova.conf.CONF
BROKEN = "broken"


class Shown(Collector):
    """One metric."""

    def __init__(self, name: str) -> None:
        self.name = name

    def collect(self) -> list[GaugeMetricFamily]:
        if self.name == BROKEN:
            raise OSError
        return [GaugeMetricFamily(self.name, "One", 1)]


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Callable[..., tuple[int, str]]]:
    """Return the code and the text of the check with some options."""
    conf.register_opts(CONF)
    CONF.set_override("metrics_directory", str(tmp_path / "metrics"), "hpc_sched")

    def check(**options: str) -> tuple[int, str]:
        for name, value in options.items():
            CONF.set_override(f"metrics_{name}", value, "hpc_sched")
        found = merged(metrics_endpoint.check(InspectedCloud()))
        assert "\n" not in found.details  # one finding
        return found.code, found.details

    yield check
    CONF.clear_override("metrics_directory", "hpc_sched")
    CONF.clear_override("metrics_address", "hpc_sched")


@pytest.fixture
def served() -> Iterator[Callable[[str], str]]:
    """Serve one metric; return the address."""
    found: list[Endpoint] = []

    def serve(name: str) -> str:
        found.append(Endpoint(Address("127.0.0.1", 0), lambda: Shown(name), print))
        return f"127.0.0.1:{found[-1].port}"

    yield serve
    for one in found:
        one.close()


def test_without_an_address_there_are_none(checked):
    assert checked() == (
        Code.SUCCESS,
        "[hpc_sched] metrics_address is not set: there are no metrics.",
    )


def test_what_nothing_keeps_from_working_is_success_before_and_after_the_start(checked, served):
    assert checked(address="127.0.0.1:1")[0] == Code.SUCCESS
    address = served(catalogue.WORKERS.name)
    assert checked(address=address) == (
        Code.SUCCESS,
        f"nova-scheduler has metrics at http://{address}/metrics.",
    )


@pytest.mark.parametrize("address", ["9180", ":9", "a:b", "::1:9"])
def test_a_text_that_is_no_address_is_a_warning(checked, address):
    code, text = checked(address=address)
    assert code == Code.WARNING
    assert f"expected HOST:PORT or [IPv6]:PORT, found {address!r}" in text


def test_another_program_at_the_address_is_a_warning(checked, served):
    code, text = checked(address=served("other"))
    assert code == Code.WARNING
    assert "another program answers at 127.0.0.1:" in text


def test_an_endpoint_of_nova_scheduler_that_fails_is_not_another_program(checked, served):
    code, text = checked(address=served(BROKEN))
    assert code == Code.WARNING
    assert text.endswith("/metrics answers 500, see nova-scheduler's log.")


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1"])
def test_an_address_on_every_network_is_a_warning(checked, address):
    code, text = checked(address=address)
    assert code == Code.WARNING
    assert "every network" in text


def test_a_missing_prometheus_client_is_a_warning(checked, monkeypatch):
    monkeypatch.delitem(sys.modules, "hpc_sched.metrics.endpoint")
    monkeypatch.delattr("hpc_sched.metrics.endpoint")
    monkeypatch.setitem(sys.modules, "prometheus_client.exposition", None)
    code, text = checked(address="127.0.0.1:1")
    assert code == Code.WARNING
    assert "pip install 'hpc-sched[metrics]'" in text


def test_a_directory_that_cannot_be_used_is_a_warning(checked, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    code, text = checked(address="127.0.0.1:1", directory=str(file / "metrics"))
    assert code == Code.WARNING
    assert f"{file} cannot be written" in text
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chmod(shared, 0o777)
    code, text = checked(directory=str(shared))
    assert code == Code.WARNING
    assert f"every user can write {shared}" in text


def test_a_directory_that_cannot_be_looked_at_is_a_warning(checked, tmp_path):
    # As below a folder of Nova's for another user, but root may look everywhere.
    code, text = checked(address="127.0.0.1:1", directory=str(tmp_path / ("x" * 300)))
    assert code == Code.WARNING
    assert "File name too long" in text


def test_a_program_that_does_not_speak_http_is_a_warning(checked):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 12)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        code, text = checked(address=f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert code == Code.WARNING
    assert "another program answers at 127.0.0.1:" in text


def test_the_endpoint_is_read_without_the_proxy_of_the_environment(checked, served, monkeypatch):
    proxy = served("other")
    monkeypatch.setattr(urllib.request, "_opener", None)  # made from an earlier environment
    monkeypatch.setenv("http_proxy", f"http://{proxy}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    address = served(catalogue.WORKERS.name)
    assert checked(address=address)[0] == Code.SUCCESS
