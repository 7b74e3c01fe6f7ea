"""hpc-sched explain."""

import argparse
import json
from collections.abc import Callable, Iterator

from cliff.command import Command

from hpc_sched import exceptions
from hpc_sched.cli.common import output, snapshot_source, topology_source
from hpc_sched.core.decision_entry import DecisionEntry
from hpc_sched.snapshot.cloud import find_one
from hpc_sched.snapshot.decisions import decision_text, log_reader
from hpc_sched.snapshot.model import Group, Server, Snapshot

_EPILOG = """\
examples:

  hpc-sched explain 2b4ab4ae-3b44-4a3c-9d3f-36c1c4a1b0e1
  hpc-sched explain --decision-log /var/log/nova/decisions.json req-8b0c6f1e-... --last
  hpc-sched explain --cloud mycloud job17
  hpc-sched explain --snapshot state.json.gz job17 --json

Records come from --decision-log, else from the snapshot, else from the decision_log of
nova.conf; rotated files beside it (FILE.1, FILE.2.gz, FILE-20260131) are read too. The state of
the cloud is asked only where the records do not know the ID: for a name, and for a VM that was
made together with others, whose request or server group is then looked for.

exit codes: 0 found, 1 failed or nothing found, 2 wrong usage
"""


class Explain(Command):
    """Tell in words why VMs were put where they are, or were refused.

    What was asked, which hosts there were to choose from, what our filters removed and why, the
    plan with its cost against the least possible, or what would have fitted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
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
        snapshot_source.add_arguments(parser)
        parser.add_argument(
            "--config-file",
            metavar="FILE",
            action="append",
            help="nova.conf to read decision_log from; may be given several times (default: where "
            "Nova's services look)",
        )
        return parser

    def get_epilog(self) -> str:
        """Return the examples."""
        return _EPILOG

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
                self.app.stdout.write(("\n" if i else "") + decision_text.text_of(record) + "\n")
        return 0


class _Search:
    """Looks for the decisions on one thing, in ever wider circles."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.wanted: str = args.id
        self.last: bool = args.last
        self.hint = ""
        self._args = args
        self._snapshot = snapshot_source.snapshot_of(args) if args.snapshot is not None else None
        self._path: str | None = args.decision_log
        if self._path is None and self._snapshot is None:
            self._path = topology_source.configuration(args).hpc_sched.decision_log
            if not self._path:
                raise exceptions.ConfigError(
                    "[hpc_sched] decision_log is not set: no decisions are kept; name a file "
                    "with --decision-log"
                )
        self.source = self._path or f"{args.snapshot}"

    def run(self) -> list[log_reader.Record]:
        """Return the decisions, oldest first."""
        own = self._records(self.wanted, _is_about(self.wanted))
        if own or self.wanted.startswith("req-"):
            return own
        named = self._records(self.wanted, _names(self.wanted))
        if named:
            return named
        snapshot = self._state()
        if snapshot is None:
            return []
        for uuid in _wider(snapshot, self.wanted):
            if uuid == self.wanted:
                continue
            output.say(f"note: looking for decisions on {uuid}")
            found = self._records(uuid, _is_about(uuid))
            if found:
                return found
        return []

    def _records(
        self, needle: str, is_wanted: Callable[[DecisionEntry], bool]
    ) -> list[log_reader.Record]:
        if self._path is not None:
            return log_reader.found_in(self._path, needle, is_wanted, last=self.last)
        assert self._snapshot is not None
        entry_of = log_reader.entry_of
        found = [record for record in self._snapshot.decisions if is_wanted(entry_of(record))]
        return found[-1:] if self.last else found

    def _state(self) -> Snapshot | None:
        """Return the state of the cloud, None where that cannot be had."""
        if self._snapshot is not None:
            return self._snapshot
        try:
            return snapshot_source.snapshot_of(self._args)
        except exceptions.SnapshotError as error:
            if self._args.cloud is not None:
                raise
            self.hint = f"; and the cloud cannot be asked for its name or group: {error}"
            return None


def _is_about(wanted: str) -> Callable[[DecisionEntry], bool]:
    """Return a test whether an entry is that of a request, a group or its first VM."""
    return lambda entry: wanted in (entry.request_id, entry.group, entry.instance)


def _names(wanted: str) -> Callable[[DecisionEntry], bool]:
    """Return a test whether an entry names a VM among those that awaited a place."""
    return lambda entry: wanted in (entry.instances or ())


def _wider(snapshot: Snapshot, wanted: str) -> Iterator[str]:
    """Yield the uuids by which there may be a decision on a name or a VM, nearest first.

    :raises exceptions.SnapshotError: where nothing is called so, naming what is called much so
    """
    things: list[Group | Server] = [*snapshot.groups, *snapshot.servers]
    find_one(wanted, "server or server group", things)
    groups = [group for group in snapshot.groups if wanted in (group.uuid, group.name)]
    servers = [server for server in snapshot.servers if wanted in (server.uuid, server.name)]
    for group in groups:
        yield group.uuid
    for server in servers:
        yield server.uuid
        yield from _made_with(snapshot, server)
        yield from (group.uuid for group in snapshot.groups if server.uuid in group.members)


def _made_with(snapshot: Snapshot, server: Server) -> Iterator[str]:
    """Yield the VMs that the same request made: a record has the first one's uuid."""
    if server.reservation_id is not None:
        for other in snapshot.servers:
            if other.reservation_id == server.reservation_id and other.uuid != server.uuid:
                yield other.uuid
