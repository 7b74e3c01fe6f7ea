"""Where a running cloud places VMs, one request after the other, and what each request costs."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from nova.scheduler import manager
from nova.scheduler.client import report

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.statements import collected

Boot = Callable[..., list[str]]

# Of InstanceList.get_uuids_by_host: Nova sends it for each host that it has not heard of in this
# scheduler yet. The plugin's own reads of VMs have more columns.
NOVAS_OWN = "SELECT instances.host, instances.uuid \nFROM instances"


def placed(cloud: NovaCloud, boot: Boot, flavor: str, times: int, **asked: object) -> list[int]:
    """Return the numbers of VMs of a host, most first, after requests one after the other."""
    servers: list[str] = []
    for _ in range(times):
        more = boot(flavor, **asked)
        cloud.wait(more)
        servers += more
    return sorted(Counter(cloud.hosts_of(servers).values()).values(), reverse=True)


@contextmanager
def scheduling(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """Collect queries of the databases, and look-ups in Placement, of each request."""
    costs: list[tuple[int, int]] = []
    real = manager.SchedulerManager._schedule
    real_get = report.SchedulerReportClient.get_allocs_for_consumer
    calls: list[str] = []

    def schedule(self, *args, **kwargs):
        calls.clear()
        with collected() as sent:
            found = real(self, *args, **kwargs)
        ours = [one for one in sent if not one.text.startswith(NOVAS_OWN)]
        costs.append((len(ours), len(calls)))
        return found

    def get(self, context, consumer):
        calls.append(consumer)
        return real_get(self, context, consumer)

    with monkeypatch.context() as patch:
        patch.setattr(manager.SchedulerManager, "_schedule", schedule)
        patch.setattr(report.SchedulerReportClient, "get_allocs_for_consumer", get)
        yield costs
