"""hpc-sched explain."""

import argparse
import json
from collections.abc import Callable, Iterator

from hpc_sched import exceptions
from hpc_sched.cli.common import cloud_source, nova_conf, output
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.core.decision_entry import DecisionEntry
from hpc_sched.snapshot import logged_decisions
from hpc_sched.snapshot.cloud import find_one
from hpc_sched.snapshot.model import Group, Server, Snapshot


class Explain(HPCSchedCommand):
    """Explain why VMs were placed where they are, or were refused.

    Shows the request, the candidate hosts, the hosts that each filter of hpc_sched removed, the
    plan with its cost and the least possible, or what would have fitted.
    """

    EPILOG = """\
examples:

  hpc-sched explain 2b4ab4ae-3b44-4a3c-9d3f-36c1c4a1b0e1
  hpc-sched explain --decision-log /var/log/nova/decisions.json req-8b0c6f1e-... --last
  hpc-sched explain --cloud mycloud job17
  hpc-sched explain --snapshot state.json.gz job17 --json

Records come from --decision-log, else from the snapshot, else from the decision_log of
nova.conf; its rotated files (FILE.1, FILE.2.gz, FILE-20260131) are read too. The state of the
cloud is read only if the records do not have the ID: for a name, and for a VM that was created
together with others, whose request or server group is then looked up.

exit codes: 0 found, 1 failed or nothing found, 2 wrong usage
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument(
            "id",
            metavar="ID",
            help="server or server group, by ID or name, or the id of an API request, req-...",
        )
        parser.add_argument(
            "--decision-log", metavar="FILE", help="file of records, one JSON object a line"
        )
        parser.add_argument(
            "--last", action="store_true", help="only the newest of several decisions"
        )
        parser.add_argument(
            "--json", action="store_true", help="print the records, one JSON object a line"
        )
        cloud_source.add_state_arguments(parser)
        nova_conf.add_arguments(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the decisions, newest last; return the exit code."""
        search = _Search(parsed_args)
        found = search.run()
        if not found:
            raise exceptions.SnapshotError(
                f"no decision on {parsed_args.id!r} in {search.source}{search.hint}"
            )
        for i, record in enumerate(found):
            if parsed_args.json:
                self.app.stdout.write(json.dumps(record, separators=(",", ":")) + "\n")
            else:
                self.app.stdout.write(("\n" if i else "") + logged_decisions.text_of(record) + "\n")
        return 0


class _Search:
    """Search for the decisions on one ID: its own, those that list it, those on its group."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.wanted: str = args.id
        self.last: bool = args.last
        self.hint = ""
        self._args = args
        self._snapshot = cloud_source.snapshot_of(args) if args.snapshot is not None else None
        self._path: str | None = args.decision_log
        if self._path is None and self._snapshot is None:
            options = nova_conf.read(args, "a file of records with --decision-log")
            self._path = options.hpc_sched.decision_log
            if not self._path:
                raise exceptions.ConfigError(
                    "[hpc_sched] decision_log is not set: no decisions are kept; name a file "
                    "with --decision-log"
                )
        self.source = self._path or f"{args.snapshot}"

    def run(self) -> list[logged_decisions.Record]:
        """Return the decisions, oldest first."""
        own = self._about(self.wanted)
        if own or self.wanted.startswith("req-"):
            return own
        listed = self._records(self.wanted, _lists)
        if listed:
            return listed
        snapshot = self._state()
        if snapshot is None:
            return []
        for uuid in _related(snapshot, self.wanted):
            if uuid == self.wanted:
                continue
            output.say(f"note: looking for decisions on {uuid}")
            found = self._about(uuid)
            if found:
                return found
        return []

    def _about(self, uuid: str) -> list[logged_decisions.Record]:
        """Return the decisions on a request, a group or the first VM of a request."""
        return self._records(uuid, _is_about)

    def _records(
        self, uuid: str, is_wanted: Callable[[DecisionEntry, str], bool]
    ) -> list[logged_decisions.Record]:
        if self._path is not None:
            return logged_decisions.found_in(
                self._path, uuid, lambda entry: is_wanted(entry, uuid), last=self.last
            )
        assert self._snapshot is not None
        found = [
            record
            for record in self._snapshot.decisions
            if is_wanted(logged_decisions.entry_of(record), uuid)
        ]
        return found[-1:] if self.last else found

    def _state(self) -> Snapshot | None:
        """Return the state of the cloud, or None if it cannot be read and no cloud is named."""
        if self._snapshot is not None:
            return self._snapshot
        try:
            return cloud_source.snapshot_of(self._args)
        except exceptions.SnapshotError as error:
            if self._args.cloud is not None:
                raise
            self.hint = f"; and the cloud cannot be asked for its name or group: {error}"
            return None


def _is_about(entry: DecisionEntry, uuid: str) -> bool:
    return uuid in (entry.request_id, entry.group, entry.instance)


def _lists(entry: DecisionEntry, uuid: str) -> bool:
    """True if an entry has a VM among those to place."""
    return uuid in (entry.instances or ())


def _related(snapshot: Snapshot, wanted: str) -> Iterator[str]:
    """Yield the uuids whose decisions may cover a name or a VM, nearest first.

    :raises exceptions.SnapshotError: for an unknown name, with similar ones, or an ambiguous one
    """
    things: list[Group | Server] = [*snapshot.groups, *snapshot.servers]
    found = find_one(wanted, "server or server group", things)
    yield found.uuid
    if isinstance(found, Group):
        return
    if found.reservation_id is not None:
        # The record of a request has the uuid of its first VM.
        for other in snapshot.servers:
            if other.reservation_id == found.reservation_id and other.uuid != found.uuid:
                yield other.uuid
    yield from (group.uuid for group in snapshot.groups if found.uuid in group.members)
