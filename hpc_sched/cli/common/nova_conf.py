"""nova.conf as a command reads it: section [hpc_sched] and the enabled filters and weighers."""

import argparse
from pathlib import Path

from msgspec.structs import replace
from oslo_config import cfg

from hpc_sched import conf, exceptions, masking
from hpc_sched.cli.common import output
from hpc_sched.core.sharing import interference_file
from hpc_sched.snapshot.model import Snapshot

# The option's name before Nova 15, which still counts.
_ALIAS_BEFORE = [cfg.DeprecatedOpt("pci_alias", group="DEFAULT")]


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
    found = read_if_any(args)
    if found is None:
        raise exceptions.ConfigError(
            f"there is no nova.conf where Nova's services look ({conf.NOVA_CONF_PLACES}): name "
            f"{instead}, or a copy of the scheduler's nova.conf with --config-file or --config-dir"
        )
    return found


def read_if_any(args: argparse.Namespace) -> cfg.ConfigOpts | None:
    """Return the options of nova.conf, None without one; raise ConfigError if it is unreadable."""
    defaults = conf.nova_conf_files()
    if not (is_named(args) or any(defaults.values())):
        return None
    found = cfg.ConfigOpts()
    conf.register_opts(found)
    named = [f"--config-file={Path(path)}" for path in args.config_file or ()]
    named += [f"--config-dir={Path(path)}" for path in args.config_dir or ()]
    try:
        found(named, "nova", **defaults)
    except cfg.Error as error:
        raise exceptions.ConfigError(masking.masked(str(error))) from error
    return found


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
        ],
        group="filter_scheduler",
    )
    alias = cfg.MultiStrOpt("alias", default=[], deprecated_opts=_ALIAS_BEFORE)
    options.register_opts([alias], group="pci")
    try:
        section = {opt.dest: getattr(options.hpc_sched, opt.dest) for opt in conf.OPTS}
        filters = tuple(options.filter_scheduler.enabled_filters)
        weighers = tuple(options.filter_scheduler.weight_classes)
        pci_in_placement = options.filter_scheduler.pci_in_placement
        pci_aliases = tuple(options.pci.alias)
    except (cfg.Error, ValueError) as error:
        raise exceptions.ConfigError(str(error)) from error
    interference: dict[str, dict[str, float]] = {}
    if section["interference_file"]:
        try:
            index = interference_file.read_index(section["interference_file"])
            for (one, other), speed in sorted(index.performance.items()):
                interference.setdefault(one, {})[other] = speed
        except exceptions.InterferenceError as error:
            output.say(f"note: the interference index is left out: {error}")
    return replace(
        snapshot,
        options=section,
        filters=filters,
        weighers=weighers,
        interference=interference,
        pci_aliases=pci_aliases,
        pci_in_placement=pci_in_placement,
    )
