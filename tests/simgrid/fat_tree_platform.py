"""The fat tree of a case as a SimGrid platform: links, and the routes between hosts that talk.

::

              core
             /    \\            pod uplinks    RATE * HOSTS * LEAVES / RATIO / PODRATIO, UPLAT
          pod      pod
         /   \\    /   \\        leaf uplinks   RATE * HOSTS / RATIO, UPLAT
      leaf leaf leaf leaf
      |  |                     host links     RATE, LAT
    host host ...

Each of these is two links, one for each direction.

How SimGrid 3.32 shares a link (``NetworkCm02Model``): each flow has a *penalty*, and the rates of
flows that one link limits are inverse to their penalties. It is the latency of the path, without
the latency factor, plus weight-S times the sum of 1/rate of the path's links; and always 1 where
the latency is 0. So ``network/weight-S:0`` gives equal shares only where all paths have the same
latency: with LAT 1 us and UPLAT 2 us, a flow within a leaf gets three quarters of the receiver's
link and one from another leaf a quarter (2 us and 6 us). With LAT 0 and UPLAT 1 us the flow within
the leaf stops until the other one has ended (1 and 2e-6).

Here every penalty is 1 where flows are to be alike: weight-S is what gives 1 for the longest
path, and shorter ones have links of their own that only add to the penalty. They have no latency,
twice the rate of a host or more, and are FATPIPE: each flow may have that rate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from simgrid import Host, Link, LinkInRoute, NetZone

from tests.simgrid.case_text import FatTree

# What is missing of a penalty by rounding alone.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Path:
    """What the paths between two hosts of one leaf, one pod or two pods have in common."""

    latency: float
    slowness: float  # the sum of 1/rate of the links
    padding: int = 0  # links that only add to the penalty
    padding_rate: float = 0.0


class Paths:
    """The paths of a fabric by the number of levels that they climb: 1, 2 or 3."""

    def __init__(self, fabric: FatTree, *, alike: bool) -> None:
        """Pad the paths where all flows are to be ``alike``; ValueError from 1 s of latency on."""
        rates = (fabric.rate, fabric.leaf_rate, fabric.pod_rate)
        latencies = (fabric.latency, fabric.uplink_latency, fabric.uplink_latency)
        paths = [
            Path(2 * sum(latencies[:level]), sum(2 / rate for rate in rates[:level]))
            for level in (1, 2, 3)
        ]
        self.longest_latency = paths[-1].latency
        self.weight = (1 - self.longest_latency) / paths[-1].slowness
        if alike and self.weight <= 0:
            raise ValueError(f"latency {self.longest_latency} s, expected less than 1 s")
        self._paths = [self._padded(path, fabric.rate) if alike else path for path in paths]

    def of(self, level: int) -> Path:
        """Return what the paths of a level have in common."""
        return self._paths[level - 1]

    def _padded(self, path: Path, rate: float) -> Path:
        missing = 1 - path.latency - self.weight * path.slowness
        if path.latency == 0 or missing < _ROUNDING:
            return path
        count = ceil(2 * rate * missing / self.weight)
        return Path(path.latency, path.slowness, count, count * self.weight / missing)


class Platform:
    """Hosts by number, with routes between those that talk.

    Not between all: with 256 hosts that takes SimGrid longer than most replays.
    """

    def __init__(self, fabric: FatTree, paths: Paths) -> None:
        self.hosts: dict[int, Host] = {}
        self._fabric = fabric
        self._paths = paths
        self._zone = NetZone.create_full_zone("fabric")
        self._links: dict[str, Link] = {}

    def connect(self, hosts: Iterable[int], pairs: Iterable[tuple[int, int]]) -> None:
        """Make the hosts, and routes both ways between those of each pair."""
        for host in sorted(set(hosts)):
            self.hosts[host] = self._zone.create_host(f"host{host}", 1e9)
        for source, target in sorted({*pairs, *((b, a) for a, b in pairs)}):
            if source != target:
                route = [LinkInRoute(link) for link in self._route(source, target)]
                ends = self.hosts[source].netpoint, self.hosts[target].netpoint
                self._zone.add_route(*ends, None, None, route, False)
        self._zone.seal()

    def _route(self, source: int, target: int) -> list[Link]:
        """Return the links from one host to another: up, and down in the reverse order."""
        fabric = self._fabric
        up, down = list[Link](), list[Link]()
        for name, rate, latency, size in (
            ("host", fabric.rate, fabric.latency, 1),
            ("leaf", fabric.leaf_rate, fabric.uplink_latency, fabric.hosts),
            ("pod", fabric.pod_rate, fabric.uplink_latency, fabric.hosts * fabric.leaves),
        ):
            if source // size == target // size:
                break
            up.append(self._link(f"{name}{source // size} up", rate, latency))
            down.append(self._link(f"{name}{target // size} down", rate, latency))
        path = self._paths.of(len(up))
        padding = [self._padding(source, len(up), number) for number in range(path.padding)]
        return [*up, *padding, *reversed(down)]

    def _link(self, name: str, rate: float, latency: float) -> Link:
        if name not in self._links:
            self._links[name] = self._zone.create_link(name, rate).set_latency(latency).seal()
        return self._links[name]

    def _padding(self, source: int, level: int, number: int) -> Link:
        name = f"padding {source} {level} {number}"
        if name not in self._links:
            link = self._zone.create_link(name, self._paths.of(level).padding_rate)
            link.set_sharing_policy(Link.SharingPolicy.FATPIPE, None)
            self._links[name] = link.seal()
        return self._links[name]
