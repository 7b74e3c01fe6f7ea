"""openstack hpc ...: the commands of hpc-sched, imported when one runs or its help is shown.

python-openstackclient imports this module for each of its commands, and shows the first lines of
the docstrings in the list of all commands.
"""

import argparse
import pkgutil
from typing import TYPE_CHECKING, Any

from cliff.command import Command

if TYPE_CHECKING:
    from hpc_sched.cli.common.base_command import HPCSchedCommand


class _HPCCommand(Command):
    """A command of hpc-sched, on the cloud of the shell's own options."""

    # Files need no cloud: authentication is left to the command.
    auth_required = False
    app: Any  # the shell
    name: str  # of the command in hpc-sched
    target: str  # its class

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command, without the option that names the cloud."""
        self._command: HPCSchedCommand = pkgutil.resolve_name(self.target)(
            self.app, self.app_args, self.cmd_name
        )
        self._command.cloud = self._connection
        parser: argparse.ArgumentParser = self._command.get_parser(prog_name)
        parser.epilog = (
            (parser.epilog or "")
            .replace(f"hpc-sched {self.name}", f"openstack hpc {self.name}")
            .replace("--cloud", "--os-cloud")
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        from hpc_sched.cli.common import output

        output.discard_errors_if_closed()
        output.escape_unencodable(self.app.stdout)
        try:
            code = self._command.run(parsed_args)
        finally:
            unwritten = output.flush(self.app.stdout)
        return unwritten or code

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what the command does."""
        return self._command.take_action(parsed_args)

    def _connection(self) -> Any:
        """Return the connection of openstacksdk to the shell's cloud; authenticate first."""
        from osc_lib import exceptions as osc

        from hpc_sched import exceptions

        self.auth_required = True
        try:
            self.app.prepare_to_run_command(self)
            return self.app.client_manager.sdk_connection
        except (osc.AuthorizationFailure, osc.CommandError) as failure:
            raise exceptions.SnapshotError(str(failure)) from failure


class Explain(_HPCCommand):
    """Explain why VMs were placed where they are, or were refused."""

    name = "explain"
    target = "hpc_sched.cli.group.explain:Explain"


class Fits(_HPCCommand):
    """Show whether a group of VMs fits now, where, and at what cost."""

    name = "fits"
    target = "hpc_sched.cli.group.fits:Fits"


class GroupShow(_HPCCommand):
    """Show where the VMs of a server group are, what that costs, and a picture of its leaves."""

    name = "group show"
    target = "hpc_sched.cli.group.group_show:GroupShow"


class TopologyShow(_HPCCommand):
    """Show a topology: its switches as a tree, with folded host names."""

    name = "topology show"
    target = "hpc_sched.cli.topology.topology_show:TopologyShow"
