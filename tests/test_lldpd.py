"""The ``lldp`` driver on what real daemons print: lldpd of Debian in network namespaces.

Skipped without root's rights, iproute2 and lldpd.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_sched.topology.readers.lldp.lldp_driver import LldpDriver
from tests.lldp_outputs import Network, racks

_SECONDS = 120.0
_POLL = 0.2


def _run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


class Lab:
    """A network whose devices are namespaces, each with a daemon and a host name."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network = network
        self.devices = sorted({end for link in network.links for end in (link[0], link[2])})
        self._folder = folder
        self._daemons: list[subprocess.Popen[bytes]] = []

    def _namespace(self, device: str) -> str:
        return f"hs{os.getpid()}-{device}"

    def start(self) -> None:
        for device in self.devices:
            _run("ip", "netns", "add", self._namespace(device))
        for number, (a, port_a, b, port_b) in enumerate(self.network.links):
            ends = ((a, port_a, f"hsx{number}"), (b, port_b, f"hsy{number}"))
            first, second = (
                ["name", name, "netns", self._namespace(device)] for device, _, name in ends
            )
            _run("ip", "link", "add", *first, "type", "veth", "peer", *second)
            for device, port, name in ends:
                _run("ip", "-n", self._namespace(device), "link", "set", name, "name", port, "up")
        for device in self.devices:
            self._start_daemon(device)

    def _start_daemon(self, device: str) -> None:
        host = f"hostname {device}.example.org"
        daemon = f"exec lldpd -d -u {self._socket(device)}"
        shell = ["unshare", "-u", "sh", "-c", f"{host}; {daemon}"]
        with (self._folder / f"{device}.log").open("wb") as log:
            started = subprocess.Popen(
                ["ip", "netns", "exec", self._namespace(device), *shell],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._daemons.append(started)
        self._until(lambda: self._ask(device, "show", "chassis") != "", device)
        if device in self.network.switches:
            self._ask(device, "configure", "system", "capabilities", "enabled", "bridge,router")

    def _socket(self, device: str) -> Path:
        return self._folder / f"{device}.socket"

    def _ask(self, device: str, *words: str) -> str:
        return _run("lldpcli", "-u", str(self._socket(device)), *words, check=False)

    def _until(self, is_done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _SECONDS
        while not is_done():
            assert time.monotonic() < end, what
            time.sleep(_POLL)

    def save(self, folder: Path, form: str) -> None:
        """Write the neighbours of each device, once all of them are known."""
        for device in self.devices:
            expected = len(self.network.neighbours(device))

            def is_complete(device: str = device, expected: int = expected) -> bool:
                for each in self.devices:
                    self._ask(each, "update")
                found = self._ask(device, "show", "neighbors", "summary")
                return found.count("Interface:") == expected

            self._until(is_complete, device)
        (folder / "switches").mkdir(parents=True)
        for device in self.devices:
            below = "switches" if device in self.network.switches else "."
            text = self._ask(device, "show", "neighbors", "-f", form)
            (folder / below / f"{device}.json").write_text(text)

    def stop(self) -> None:
        for daemon in self._daemons:
            daemon.terminate()
        for daemon in self._daemons:
            daemon.wait(timeout=_SECONDS)
        for device in self.devices:
            _run("ip", "netns", "del", self._namespace(device), check=False)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Return two racks of an MLAG pair with three hosts each; one host has lost a link.

    ::

              spine1
           /   |   |   \\
        leaf01a = leaf01b   leaf02a = leaf02b
        node0001-3          node0004-6
    """
    programs = ("lldpd", "lldpcli", "ip", "unshare")
    if os.geteuid() or any(shutil.which(name) is None for name in programs):
        pytest.skip("no root's rights, or no lldpd and iproute2")
    network = racks(2, 3, 1)
    network.cut("node0002", "eth1")
    probe = subprocess.run(["ip", "netns", "add", f"hs{os.getpid()}"], capture_output=True)
    if probe.returncode:
        pytest.skip("no network namespaces")
    _run("ip", "netns", "del", f"hs{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="hs-lldpd-") as folder:
        # The daemon gives up root's rights.
        os.chmod(folder, 0o755)
        found = Lab(network, Path(folder))
        try:
            found.start()
            yield found
        finally:
            found.stop()


@pytest.mark.parametrize("form", ["json", "json0"])
def test_what_lldpd_prints_is_the_network(lab: Lab, tmp_path: Path, form: str):
    folder = tmp_path / "lldp"
    lab.save(folder, form)
    fabric = LldpDriver(path=folder).load()
    assert fabric.to_tree() == {
        "spine1.example.org": {
            "leaf01a.example.org,leaf01b.example.org": ["node0001", "node0002", "node0003"],
            "leaf02a.example.org,leaf02b.example.org": ["node0004", "node0005", "node0006"],
        }
    }
    assert fabric.remarks == ("1 host is not connected to all switches of the leaf: node0002",)
    assert not fabric.incomplete
