"""nova.conf as a command reads it: [hpc_sched], enabled filters and weighers, and devices.

NUMA cells and PCI devices are in the databases that nova.conf names; reading and fitting them takes
Nova, which is imported for them alone.
"""

import argparse
import functools
import importlib
import importlib.util
import os
import platform
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from oslo_config import cfg

from hpc_sched import conf, exceptions, masking
from hpc_sched.cli.common import output
from hpc_sched.configuration import config_files
from hpc_sched.configuration.option_value import value_of
from hpc_sched.core.room.device_fitting import DeviceFitting
from hpc_sched.core.sharing import interference_file
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.room import pci_aliases
from hpc_sched.snapshot.snapshot_model import Flavor, Snapshot

_ALIAS = cfg.MultiStrOpt(
    "alias",
    default=[],
    # Its name before Nova 15, which still counts.
    deprecated_opts=[cfg.DeprecatedOpt("pci_alias", group="DEFAULT")],
)


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the arguments that name the files of nova.conf."""
    for option, metavar, what in (
        ("--config-file", "FILE", "nova.conf to read [hpc_sched] from"),
        ("--config-dir", "DIR", "folder whose .conf files are read after those of --config-file"),
    ):
        parser.add_argument(
            option,
            metavar=metavar,
            action="append",
            help=f"{what}; may be given several times (default: where Nova's services look)",
        )


def is_named(args: argparse.Namespace) -> bool:
    """True if the arguments name a nova.conf."""
    return bool(args.config_file or args.config_dir)


def read(args: argparse.Namespace, instead: str) -> cfg.ConfigOpts:
    """Return the options of nova.conf; without one ConfigError says what to name ``instead``."""
    if (found := read_if_any(args)) is None:
        raise exceptions.ConfigError(
            f"there is no nova.conf where Nova's services look ({config_files.PLACES}): name "
            f"{instead}, or a copy of the scheduler's nova.conf with --config-file or --config-dir"
        )
    return found


def read_if_any(args: argparse.Namespace) -> cfg.ConfigOpts | None:
    """Return the options of nova.conf, None without one; raise ConfigError if it is unreadable."""
    if not (is_named(args) or any(config_files.defaults().values())):
        return None
    found = cfg.ConfigOpts()
    conf.register_opts(found)
    found.register_opts(_names_for_values())
    named = [
        f"{option}={Path(path)}"
        for option, paths in (
            ("--config-file", args.config_file),
            ("--config-dir", args.config_dir),
        )
        for path in paths or ()
    ]
    config_files.parse(found, named, project="nova")
    return found


def _names_for_values() -> list[cfg.Opt]:
    """Return options of Nova and oslo.log that a value may name, as in ``$state_path/metrics``.

    Made here to do without Nova. An option that is not set has Nova's default.
    """
    nova = importlib.util.find_spec("nova")  # is not imported
    origin = None if nova is None else nova.origin
    modules = Path(origin).parents[1] if origin else sysconfig.get_path("purelib")
    return [
        cfg.StrOpt("pybasedir", default=str(modules)),
        cfg.StrOpt("bindir", default=os.path.join(sys.prefix, "local", "bin")),
        cfg.StrOpt("state_path", default="$pybasedir"),
        cfg.StrOpt("log_dir", deprecated_name="logdir"),
        cfg.StrOpt("log_file", deprecated_name="logfile"),
        cfg.StrOpt("host", default=platform.node()),
        # Nova's default is an address of this host; commands listen on none that nova.conf names.
        cfg.StrOpt("my_ip", default="127.0.0.1"),
    ]


def with_options(snapshot: Snapshot, options: cfg.ConfigOpts) -> Snapshot:
    """Return a snapshot with [hpc_sched], filters, weighers, index and PCI aliases of nova.conf.

    :raises exceptions.ConfigError: for an option with a value that cannot be used
    """
    # Registered here to do without Nova. Its defaults name no filter or weigher of hpc_sched.
    options.register_opts(
        [
            cfg.ListOpt("enabled_filters", default=[]),
            cfg.ListOpt("weight_classes", default=[]),
            cfg.BoolOpt("pci_in_placement", default=False),
            *nova_options.FILTER_LIMITS,
        ],
        group="filter_scheduler",
    )
    options.register_opts([_ALIAS], group="pci")
    value = functools.partial(value_of, options)
    section = {opt.dest: value(opt.dest) for opt in conf.OPTS}
    section |= {opt.dest: value(opt.dest, "filter_scheduler") for opt in nova_options.FILTER_LIMITS}
    interference: dict[str, dict[str, float]] = {}
    if section["interference_file"]:
        try:
            index = interference_file.read_index(section["interference_file"])
            for (one, other), speed in sorted(index.performance.items()):
                interference.setdefault(one, {})[other] = speed
        except exceptions.InterferenceError as error:
            output.note(f"the interference index is left out: {error}")
    return replace(
        snapshot,
        options=section,
        filters=tuple(value("enabled_filters", "filter_scheduler")),
        weighers=tuple(value("weight_classes", "filter_scheduler")),
        interference=interference,
        pci_aliases=tuple(value("alias", "pci")),
        pci_in_placement=value("pci_in_placement", "filter_scheduler"),
    )


def configured(args: argparse.Namespace, snapshot: Snapshot, *, has_devices: bool) -> Snapshot:
    """Return a snapshot with what nova.conf says, if there is one or it is named.

    :param has_devices: whether with the devices of a cloud
    """
    counts = args.snapshot is None or is_named(args)
    options = read_if_any(args) if counts else None
    if options is None:
        return snapshot
    add = functools.partial(with_configuration, args) if has_devices else with_options
    return add(snapshot, options)


def with_configuration(
    args: argparse.Namespace, snapshot: Snapshot, options: cfg.ConfigOpts
) -> Snapshot:
    """Return a snapshot with what nova.conf says, and for a cloud the devices in its databases."""
    found = with_options(snapshot, options)
    return found if args.snapshot is not None else with_devices(found, options)


def fitting_of(flavor: Flavor, snapshot: Snapshot) -> DeviceFitting | None:
    """Return Nova's fitting of a flavor, see :attr:`Cloud.fittings`."""
    has_devices = any(node.devices is not None for node in snapshot.hypervisors)
    is_fitted = has_devices and pci_aliases.only_nova_fits(flavor, snapshot)
    if not is_fitted or (nova := _nova()) is None:
        return None
    specs = dict(flavor.extra_specs)
    if snapshot.pci_aliases is None:
        specs.pop(pci_aliases.EXTRA_SPEC, None)
    fitting: DeviceFitting | None = nova.fitting_of(
        flavor.vcpus,
        flavor.memory_mb,
        specs,
        aliases=snapshot.pci_aliases or (),
        request_ids=[pci_aliases.request_id(i) for i in range(len(pci_aliases.requested(flavor)))],
        pci_in_placement=snapshot.pci_in_placement,
    )
    return fitting


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


def module_of_nova(args: argparse.Namespace, name: str) -> Any:
    """Return a module that calls Nova, once nova.conf is read; raise ConfigError without either."""
    options = read(args, "the nova.conf of nova-scheduler")
    if (found := _nova(name)) is None:
        raise exceptions.ConfigError(
            "Nova is not installed: run this where nova-scheduler runs, in its Python environment"
        )
    from hpc_sched.nova_glue import service_setup

    try:
        service_setup.read_configuration(options.config_file or [], options.config_dir or [])
    except (cfg.Error, OSError, ValueError) as error:
        raise exceptions.ConfigError(f"nova.conf: {masking.masked(str(error))}") from error
    return found


def _nova(name: str = "hpc_sched.nova_glue.read.room.recorded_fitting") -> Any:
    """Return a module that calls Nova, or None if Nova is not installed."""
    # A command reads with native threads, whatever Nova's services do.
    os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
    with warnings.catch_warnings():
        # A user cannot act on what libraries warn of while they are imported.
        warnings.simplefilter("ignore")
        try:
            from hpc_sched.nova_glue import service_setup

            service_setup.register_objects()
            return importlib.import_module(name)
        except ImportError:
            return None
