"""NUMA cells and PCI devices, where Nova is installed: a command imports it only for them."""

import os
import warnings
from typing import Any

from msgspec.structs import replace
from oslo_config import cfg

from hpc_sched import exceptions, masking
from hpc_sched.cli.common import output
from hpc_sched.configuration.option_value import value_of
from hpc_sched.core.room.device_fitting import DeviceFitting
from hpc_sched.snapshot.room import pci_aliases
from hpc_sched.snapshot.snapshot_model import Flavor, Snapshot


def fitting_of(flavor: Flavor, snapshot: Snapshot) -> DeviceFitting | None:
    """Return Nova's fitting of a flavor, see :attr:`Cloud.fittings`."""
    has_devices = any(node.devices is not None for node in snapshot.hypervisors)
    if not (has_devices and pci_aliases.only_nova_fits(flavor, snapshot)):
        return None
    if (nova := _nova()) is None:
        return None
    specs = dict(flavor.extra_specs)
    if snapshot.pci_aliases is None:
        specs.pop(pci_aliases.EXTRA_SPEC, None)
    found: DeviceFitting | None = nova.fitting_of(
        flavor.vcpus,
        flavor.memory_mb,
        specs,
        aliases=snapshot.pci_aliases or (),
        request_ids=[pci_aliases.request_id(i) for i in range(len(pci_aliases.requested(flavor)))],
        pci_in_placement=snapshot.pci_in_placement,
    )
    return found


def with_devices(snapshot: Snapshot, options: cfg.ConfigOpts) -> Snapshot:
    """Return a snapshot with the devices of Nova's databases, if nova.conf names these."""
    options.register_opts([cfg.StrOpt("connection", secret=True)], group="api_database")
    named = value_of(options, "connection", "api_database", is_secret=True)
    if not named or (nova := _nova()) is None:
        return snapshot
    from hpc_sched.nova_glue import service_setup

    try:
        service_setup.read_configuration(options.config_file or [], options.config_dir or [])
        found, problems = nova.read()
    except (exceptions.HPCSchedError, cfg.Error, OSError) as failure:
        found, problems = {}, [masking.masked(str(failure))]
    except Exception as failure:  # of a database driver; the rest of the snapshot holds
        found, problems = {}, [masking.first_line(failure)]
    output.note(*(f"NUMA cells and PCI devices cannot be read: {one}" for one in problems))
    nodes = (replace(node, devices=found.get(node.place)) for node in snapshot.hypervisors)
    return replace(snapshot, hypervisors=tuple(nodes))


def _nova() -> Any:
    """Return the module that calls Nova, or None if Nova is not installed."""
    # A command reads with native threads, whatever Nova's services do.
    os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
    with warnings.catch_warnings():
        # A user cannot act on what libraries warn of while they are imported.
        warnings.simplefilter("ignore")
        try:
            from hpc_sched.nova_glue import service_setup

            service_setup.register_objects()
            from hpc_sched.nova_glue.read.room import recorded_fitting
        except ImportError:
            return None
    return recorded_fitting
