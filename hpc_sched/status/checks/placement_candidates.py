"""Checks: what Placement answers to the scheduler has all hosts, and is not too long."""

from nova import objects
from nova.pci import request as pci_request
from oslo_utils import uuidutils

from hpc_sched.core.room import candidate_numbers
from hpc_sched.nova_glue.io import placement
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from hpc_sched.status.finding import Findings, Verdict, first_listed, good, listed, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud, unread_cells
from hpc_sched.topology import plurals

# Suggested values of max_placement_results are multiples of it, to last for further computes.
STEP = 1000
# Candidates of one request above which nova-scheduler takes seconds and some 100 MB to read them.
MANY = 20_000


def check_results(cloud: InspectedCloud) -> Findings:
    """Return whether a request without a server group sees every compute."""
    most = CONF.scheduler.max_placement_results
    computes = cloud.computes()
    number = sum(node.enabled for node in computes.rows)
    yield from unread_cells(computes, "counted here")
    if number <= most:
        yield good(f"{plurals.text(number, 'enabled compute')}, at most {most} results.")
    else:
        yield warning(
            f"Placement returns at most {most} of {number} enabled computes, in no useful "
            "order, to requests without a server group: their VMs are placed on a part of the "
            f"fabric only. Set [scheduler] max_placement_results = {_rounded(number)}, or have "
            "users make server groups, which lift this limit: then see Placement candidates."
        )


def check_candidates(cloud: InspectedCloud) -> Verdict:
    """Return whether flavors with devices have more candidates than a scheduler should read."""
    flavors = cloud.from_database("flavors", objects.FlavorList.get_all)
    queries = {flavor.name: query for flavor in flavors if (query := _query(flavor)).devices}
    classes = {name: amount for one in queries.values() for name, amount in one.devices.items()}
    if not classes:
        return "No flavor requests devices of Placement."
    found, problem = placement.read_hosts_with_room(
        [f"resources={name}:{amount}" for name, amount in sorted(classes.items())]
    )
    if problem is not None:
        yield warning(f"Candidates are not estimated: {problem}. See [placement] in nova.conf.")
        return ""
    devices = dict(zip(sorted(classes), found, strict=True))
    numbers = {
        name: candidate_numbers.estimated(query.requests[0], devices)
        for name, query in queries.items()
    }
    many = [name for name in sorted(numbers) if numbers[name] > MANY]
    hosts = len(set().union(*found))
    yield from listed(
        warning,
        f"{plurals.text(len(many), 'flavor')} with more than {MANY} allocation candidates on the "
        f"hosts that are free now: nova-scheduler takes seconds and some 100 MB to read them, for "
        "each request with a server group, which lifts [scheduler] max_placement_results. Set "
        f"[placement] max_allocation_candidates = {_rounded(4 * hosts)} and "
        "allocation_candidates_generation_strategy = breadth-first in Placement's own "
        "configuration, both together: with depth-first, its default, such a limit leaves out "
        f"hosts. hpc_sched needs one candidate a host. Set [scheduler] max_placement_results = "
        f"{_rounded(4 * hosts)} too.",
        first_listed([f"{name}: about {numbers[name]} candidates" for name in many]),
    )
    return f"{plurals.text(len(numbers), 'flavor')} with devices, at most {MANY} candidates each."


def _rounded(number: int) -> int:
    return -(-number // STEP) * STEP


def _query(flavor: objects.Flavor) -> NovaQuery:
    """Return what Nova requests for a VM of a flavor, without ports and images."""
    spec = objects.RequestSpec(
        flavor=flavor,
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        instance_uuid=uuidutils.generate_uuid(),
        is_bfv=False,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
    )
    try:
        if CONF.filter_scheduler.pci_in_placement:
            spec.pci_requests = pci_request.get_pci_requests_from_flavor(flavor)
            spec.generate_request_groups_from_pci_requests()
        return NovaQuery.of(spec)
    except Exception:
        # The API refuses such flavors for new servers; Nova's exceptions have little in common.
        return NovaQuery(())
