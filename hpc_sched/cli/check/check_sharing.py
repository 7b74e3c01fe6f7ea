"""hpc-sched check sharing."""

import argparse

from hpc_sched.cli.common import nova_conf, sources
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.enabled_plugins import INTERFERENCE_FILTER
from hpc_sched.snapshot import colocated_vms
from hpc_sched.topology import plurals


class CheckSharing(HPCSchedLister):
    """List hosts whose VMs break a rule for sharing: dedicated hosts, cache scores, interference.

    A rule may break where a VM was placed past the filters (force_hosts), by a scheduler without
    them, before they were enabled, or while the databases did not answer. The VMs that could not
    join the others today are listed.
    """

    EPILOG = f"""\
examples:

  hpc-sched check sharing --cloud mycloud
  hpc-sched check sharing --snapshot state.json.gz -f json
  hpc-sched check sharing --cloud mycloud -f value -c Host || echo broken

Cache scores and the interference index count if nova.conf, or the snapshot, enables
{INTERFERENCE_FILTER}, or if no nova.conf is found. Hints of scheduler requests are not known.

exit codes: 0 no rule is broken, 1 some are or the command failed, 2 wrong usage
"""

    ARGUMENTS = (sources.add_state_arguments, nova_conf.add_arguments)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each rule that a host breaks."""
        cloud = sources.cloud_without_fabric(parsed_args)
        hosts = {node.nodename for node in cloud.snapshot.hypervisors}
        broken = colocated_vms.broken_rules(cloud)
        names = {server.uuid: server.name or server.uuid for server in cloud.snapshot.servers}
        self.exit_code = int(bool(broken))
        number = plurals.text(len({place for place, _ in broken}), "host")
        checked = f"{plurals.text(len(hosts), 'host')} and {plurals.text(len(names), 'VM')} checked"
        self.below = [f"{checked}, {number} with a broken rule." if broken else f"{checked}: good."]
        return ("Host", "Rule", "Found", "VMs"), [
            (node, found.rule, found.text, " ".join(sorted(names[uuid] for uuid in found.vms)))
            for (_, node), found in broken
        ]
