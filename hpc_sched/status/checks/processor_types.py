"""Check: the options that order processor types name types that the cloud has."""

from collections.abc import Collection

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.main import models as main_models

from hpc_sched import exceptions
from hpc_sched.core.processors.processor import METADATA, types_of
from hpc_sched.core.processors.processor_ranking import entries_of
from hpc_sched.enabled_plugins import HOMOGENEITY_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.room import host_processors
from hpc_sched.status.checks.sharing import read_metadata
from hpc_sched.status.finding import Findings, first_listed, good, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud
from hpc_sched.topology import plurals
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology

ORDER, SPEEDS = "processor_order", "processor_speeds"


def check(cloud: InspectedCloud) -> Findings:
    """Return the entries of ``processor_order`` and ``processor_speeds`` that no host's type has.

    Also the types without an entry if others have a speed. Reads nothing if neither is set.
    """
    stated: dict[str, Collection[str]] = {name: CONF.hpc_sched[name] for name in (ORDER, SPEEDS)}
    used = [name for name, entries in stated.items() if entries]
    if not used:
        yield good(f"Neither {ORDER} nor {SPEEDS} is set: types come by cores per host.")
        return
    if not configured_plugins.enabled().has_filter(HOMOGENEITY_FILTER):
        yield warning(
            f"{' and '.join(used)} {'has' if len(used) == 1 else 'have'} no effect: "
            f"{HOMOGENEITY_FILTER} is not enabled. Add it to enabled_filters, or remove the option."
        )
        return
    try:
        topology = cloud.topology()
    except exceptions.TopologyError:
        yield warning("The topology cannot be read, which may state types: see the check Topology.")
        return
    features, problems = _types(cloud, topology)
    yield from (warning(f"{cell}. The types of its hosts are not known here.") for cell in problems)
    held = {name: entries_of(features, stated[name], features) for name in used}
    for name in used:
        holding = {entry for entries in held[name].values() for entry in entries}
        # A cell that did not answer may have them.
        unknown = [] if problems else [entry for entry in stated[name] if entry not in holding]
        if unknown:
            yield warning(f"{name}: no host is of {_listed(unknown)}. Correct or remove that.")
    bare = [name for name in sorted(features) if not any(held[option][name] for option in used)]
    if bare and SPEEDS in used:
        yield warning(
            f"{SPEEDS}: there is no speed of {_listed(bare)}. Groups take other types first: state "
            "one."
        )
    number = plurals.text(len(features), "processor type")
    names = f": {_listed(sorted(features))}" if features else ""
    yield good(f"{number}, {len(features) - len(bare)} with an entry{names}.")


def _listed(names: Collection[str]) -> str:
    return "; ".join(first_listed(list(names)))


def _types(
    cloud: InspectedCloud, topology: Topology
) -> tuple[dict[str, frozenset[str]], tuple[str, ...]]:
    """Return the features of each host's type by its name, and the cells that did not answer.

    Nova's list of aggregates, one query for cells and one in each.
    """
    answers = cloud.from_cells("processors of hosts", _processors_of_cell)
    metadata = cloud.from_database("host aggregates", read_metadata)
    names, _ = HostNames(topology).find_all([(host, node) for host, node, _ in answers.rows])
    reported = [host_processors.parse_cpu_info(cpu_info) for *_, cpu_info in answers.rows]
    types = types_of(
        [[row.get(METADATA, "") for row in metadata.get(host, ())] for host, *_ in answers.rows],
        [topology.processor_of(name) if name in topology else None for name in names],
        reported,
    )
    found: dict[str, frozenset[str]] = {}
    for type_, processor in zip(types, reported, strict=True):
        if type_ is not None and (processor or type_ not in found):
            found[type_] = processor.features if processor else frozenset()
    return found, tuple(answers.problems)


def _processors_of_cell(
    context: nova_context.RequestContext, _: list[str]
) -> list[tuple[str, str, str]]:
    node = main_models.ComputeNode
    query = sa.select(node.host, node.hypervisor_hostname, node.cpu_info).where(node.deleted == 0)
    return [tuple(row) for row in databases.cell_rows(context, query)]
