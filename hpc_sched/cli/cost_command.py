"""hpc-sched cost."""

import argparse

from hpc_sched.cli.common import nova_conf, output, sources
from hpc_sched.cli.common.argument_types import PRICE
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.core.cost import Usage
from hpc_sched.snapshot import hosts_in_use

_COLUMNS = ("Class", "VMs", "vcpus", "Hosts", "Host cores")
_PRICED = {
    "Revenue/h": Usage.revenue,
    "Per host-hour": Usage.revenue_per_host_hour,
    "Per host core-hour": Usage.revenue_per_host_core_hour,
}


class Cost(HPCSchedLister):
    """Show the vcpus of VMs and the hosts in use by application class, with --price the revenue.

    A host is in use while it has a VM. The revenue is what the VMs pay for their vcpus in an hour;
    over the hosts in use, it shows what sharing hosts earns.
    """

    EPILOG = """\
examples:

  hpc-sched cost --cloud mycloud
  hpc-sched cost --cloud mycloud --price 0.05
  hpc-sched cost --snapshot state.json.gz --price sync=0.03,async=0.07 -f json

All VMs that have a host count, also those that are shut off, each with the vcpus of its flavor. A
VM of class extreme pays for these alone, not for the cores that it keeps empty; a price of that
class may cover them. The cores of a host are the vcpus that it offers, allocation ratio included;
of bare metal they are those of the VM's flavor. A host that classes share counts for each of them.
Hints of scheduler requests are not known. Energy, licences, storage and networks have no price.

exit codes: 0 shown, 1 failed, 2 wrong usage
"""

    ARGUMENTS = (PRICE, sources.add_state_arguments, nova_conf.add_arguments)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each class that has a VM, and one for all."""
        cloud = sources.cloud_without_fabric(parsed_args)
        found = hosts_in_use.by_class(cloud)
        prices, every = parsed_args.price, found[hosts_in_use.ALL]
        output.note(*(() if prices is None else prices.notes(found.keys() - {hosts_in_use.ALL})))
        number, cores = len(hosts_in_use.all_hosts(cloud)), every.hourly.host_core_hours
        self.below = [
            f"Hosts with VMs: {every.hosts} of {number}. "
            f"Their cores: {cores:g}, of which VMs have {every.vcpus}."
        ]
        rows = [
            (
                *(name, use.vms, use.vcpus, use.hosts, use.hourly.host_core_hours),
                *(earned(use.hourly, prices) for earned in _PRICED.values() if prices is not None),
            )
            for name, use in found.items()
        ]
        return _COLUMNS if prices is None else (*_COLUMNS, *_PRICED), [
            [output.cell(value, parsed_args.formatter) for value in row] for row in rows
        ]
