"""hpc-sched explain."""

import argparse
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.cli.common import nova_conf, output, sources
from hpc_sched.cli.common.argument_types import argument, at_least_zero, flag, number, repeated
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.configuration.option_value import value_of
from hpc_sched.core.counterfactual.by_bottleneck import KnownLinks
from hpc_sched.core.objectives.stated_objective import ObjectiveOptions, objective_options
from hpc_sched.core.plan.objective import TRADEOFF
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import find_one
from hpc_sched.snapshot.log import decision_costs, logged_decisions, record_text
from hpc_sched.snapshot.log.logged_decisions import Record
from hpc_sched.snapshot.snapshot_model import Group, Server, Snapshot
from hpc_sched.topology import plurals
from hpc_sched.topology.model import Topology


class Explain(HPCSchedCommand):
    """Explain why VMs were placed where they are, or were refused.

    Shows the request, the candidate hosts, the hosts that each filter of hpc_sched removed, the
    plan with its cost and the least possible, or what would have fitted, and where the VMs landed.
    The group is planned again without each constraint, shunned host and filter: what they cost; and
    by the other objective, bottleneck for hops, if --topology or the snapshot states the uplinks.
    """

    EPILOG = """\
examples:

  hpc-sched explain 2b4ab4ae-3b44-4a3c-9d3f-36c1c4a1b0e1
  hpc-sched explain --decision-log /var/log/nova/decisions.json req-8b0c6f1e-... --last
  hpc-sched explain --cloud mycloud job17
  hpc-sched explain --snapshot state.json.gz job17 --json
  hpc-sched explain job17 --last --why-not leaf07

Records come from --decision-log, else from the snapshot, else from the decision_log of
nova.conf; its rotated files (FILE.1, FILE.2.gz, FILE-20260131) are read too. The state of the
cloud is read only if the records do not have the ID: for a name, and for a VM that was created
together with others, whose request or server group is then looked up.

exit codes: 0 found, 1 failed or nothing found, 2 wrong usage
"""

    ARGUMENTS = (
        argument(
            "id",
            "server or server group, by ID or name, or the id of an API request, req-...",
            metavar="ID",
        ),
        argument("--decision-log", "file of records, one JSON object a line", metavar="FILE"),
        flag("--last", "only the newest of several decisions"),
        flag("--json", "print the records, one JSON object a line"),
        repeated(
            "--why-not",
            "say why the plan does not use this switch or host; may be given several times",
            metavar="NAME",
        ),
        number(
            "--timeout",
            "most time for plans without a constraint; 0 leaves them out",
            at_least_zero,
            "SECONDS",
            10,
        ),
        *sources.ARGUMENTS,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the decisions, newest last; return the exit code."""
        search = _Search(parsed_args)
        found = search.run()
        if not found:
            raise exceptions.SnapshotError(
                f"no decision on {parsed_args.id!r} in {search.source}{search.hint}"
            )
        if parsed_args.why_not and parsed_args.topology is not None:
            search.fabric()
        pairs = logged_decisions.with_landings(found, last=parsed_args.last)
        costs = _costs(parsed_args, search, pairs)
        shown = [(*pair, one) for pair, one in zip(pairs, costs, strict=True)]
        if parsed_args.json:
            text = "\n".join(
                json.dumps(record, separators=(",", ":"))
                for one in shown
                for record in _as_json(*one)
            )
        else:
            text = "\n\n".join(record_text.text_of(*one) for one in shown)
        self.app.stdout.write(f"{text}\n")
        return 0


def _costs(
    args: argparse.Namespace,
    search: "_Search",
    pairs: Sequence[tuple[Record, Record | None]],
) -> list[decision_costs.DecisionCosts | None]:
    """Return what the constraints of each decision cost; None without --timeout and --why-not."""
    if not args.timeout and not args.why_not:
        return [None] * len(pairs)
    limit = TimeLimit.after(args.timeout)
    # The newest first: time may not suffice for all.
    links = search.links()
    entries = [logged_decisions.entry_of(record) for record, _ in reversed(pairs)]
    if links is not None and any(links.is_of_another(entry) for entry in entries):
        output.note(
            "a decision was made with another topology: what hpc:objective=bottleneck would have "
            "chosen for it is not known"
        )
    costs = [
        decision_costs.costs_of(entry, args.why_not, search.fabric, limit, links)
        for entry in entries
    ]
    return costs[::-1]


def _as_json(
    record: Record,
    landing: Record | None,
    costs: decision_costs.DecisionCosts | None,
) -> Iterator[Mapping[str, Any]]:
    yield record if costs is None else {**record, "counterfactual": costs.as_json()}
    if landing is not None:
        yield landing


class _Search:
    """Search for the decisions on one ID: its own, those that list it, those on its group."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.hint = ""
        # The topology of --topology, the snapshot or nova.conf; None without any. Read once.
        self.fabric = functools.cache(self._fabric)
        self._args = args
        self._snapshot = sources.snapshot_of(args) if args.snapshot is not None else None
        self._path: str | None = args.decision_log
        self._conf: cfg.ConfigOpts | None = None
        if self._path is None and self._snapshot is None:
            self._conf = nova_conf.read(args, "a file of records with --decision-log")
            if not (path := value_of(self._conf, "decision_log")):
                raise exceptions.ConfigError(
                    "[hpc_sched] decision_log is not set: no decisions are kept; name a file "
                    "with --decision-log"
                )
            self._path = path
        self.source = self._path or f"{args.snapshot}"

    def run(self) -> Sequence[Record]:
        """Return the records of decisions and landings, oldest first."""
        wanted: str = self._args.id
        found = self._records(
            [wanted], [_is_on(wanted), lambda entry: wanted in (entry.instances or ())]
        )
        if found or wanted.startswith("req-"):
            return found
        snapshot = self._state()
        related = () if snapshot is None else _related(snapshot, wanted)
        uuids = [uuid for uuid in related if uuid != wanted]
        if not uuids:
            return ()
        more = f", {plurals.text(len(uuids) - 1, 'more ID')}" if len(uuids) > 1 else ""
        output.note(f"looking for decisions on {uuids[0]}{more}")
        return self._records(uuids, [_is_on(uuid) for uuid in uuids])

    def links(self) -> KnownLinks | None:
        """Return the links of --topology or of the snapshot; None if they are not known.

        :raises exceptions.HPCSchedError: for a --topology that cannot be read
        """
        is_named = self._args.topology is not None
        snapshot = self._snapshot
        has_topology = snapshot is not None and snapshot.topology is not None
        if (not is_named and not has_topology) or (topology := self.fabric()) is None:
            return None
        links = KnownLinks.of(topology, self._objective_options())
        if links is None and is_named:
            output.note(
                "the topology states no uplinks: what hpc:objective=bottleneck would choose is "
                "not known"
            )
        return links

    def _objective_options(self) -> ObjectiveOptions:
        """Return the options of the snapshot or of nova.conf; without both those as delivered."""
        if self._snapshot is not None:
            return nova_options.objective_options(self._snapshot)
        options = self._conf or nova_conf.read_if_any(self._args)
        if options is None:
            output.note(f"no nova.conf is at hand: bottleneck_tradeoff is {float(TRADEOFF):g}")
            return ObjectiveOptions()
        return objective_options(functools.partial(value_of, options))

    def _fabric(self) -> Topology | None:
        try:
            return sources.fabric_of(self._args, self._args.topology, self._snapshot)
        except exceptions.HPCSchedError as failure:
            if self._args.topology is not None:
                raise
            output.note(f"no topology is at hand: {failure}")
            return None

    def _records(
        self, uuids: Sequence[str], wanted: Sequence[logged_decisions.Wanted]
    ) -> Sequence[Record]:
        if self._path is not None:
            found = logged_decisions.found_in(self._path, uuids, wanted, last=self._args.last)
            output.note(*found.notes(self._path))
            return found.records
        assert self._snapshot is not None
        return logged_decisions.first_wanted(self._snapshot.decisions, wanted)

    def _state(self) -> Snapshot | None:
        """Return the state of the cloud, or None if it cannot be read."""
        if self._snapshot is not None:
            return self._snapshot
        try:
            return sources.snapshot_of(self._args)
        except exceptions.SnapshotError as error:
            self.hint = f"; and the cloud cannot be asked for its name or group: {error}"
            return None


def _is_on(uuid: str) -> logged_decisions.Wanted:
    return lambda entry: uuid in (entry.request_id, entry.group, entry.instance)


def _related(snapshot: Snapshot, wanted: str) -> Iterator[str]:
    """Yield the uuids whose decisions may cover a name or a VM, nearest first."""
    things: list[Group | Server] = [*snapshot.groups, *snapshot.servers]
    found = find_one(wanted, "server or server group", things)
    yield found.uuid
    if isinstance(found, Group):
        return
    if found.reservation_id is not None:
        # The record of a request has the uuid of its first VM.
        yield from (
            other.uuid
            for other in snapshot.servers
            if other.reservation_id == found.reservation_id and other.uuid != found.uuid
        )
    yield from (group.uuid for group in snapshot.groups if found.uuid in group.members)
