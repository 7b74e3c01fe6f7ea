"""hpc-sched fits."""

import argparse
from functools import partial

import msgspec

from hpc_sched import exceptions
from hpc_sched.cli.common import output, sources
from hpc_sched.cli.common.argument_types import (
    PROPERTY,
    ZERO_OR_MORE,
    argument,
    flag,
    number,
    parsed_by,
    repeated,
)
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.cli.common.constraint_arguments import constraint_argument
from hpc_sched.cli.group import fit_rows, fit_wait, frontier_rows, objective_arguments
from hpc_sched.core import extra_specs
from hpc_sched.core.constraints.require import Require
from hpc_sched.core.constraints.values import CONSTRAINTS
from hpc_sched.enabled_plugins import HOMOGENEITY_FILTER, INTERFERENCE_FILTER
from hpc_sched.snapshot import group_fit, group_frontier, request_builder, what_if
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.groups import server_groups
from hpc_sched.snapshot.snapshot_model import Flavor
from hpc_sched.topology import hostlist

# Exit code that scripts distinguish from an error and from wrong usage.
DOES_NOT_FIT = 3
TIME_IS_OVER = 4  # with --wait

# Constraints that an operator may vary; --level is hpc:require.
ASSUMED = tuple(one for one in CONSTRAINTS if one.fits_help)
SERVER_GROUP_POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


def _add_additions(parser: argparse._ActionsContainer) -> None:
    # The names in all values of one command are limited together.
    repeated(
        "--add",
        "assume that a leaf has these hosts too, without VMs and as large as HOST "
        "(default: the leaf's first); PARENT is the switch above a new leaf; may be given "
        "several times",
        type=parsed_by(partial(what_if.addition_in, hostlist.Expansion())),
        metavar=what_if.ADDITION,
    )(parser)


class Fits(HPCSchedLister):
    """Show whether a group of VMs fits now, where, and at what cost.

    Without --count: the largest group that fits under one switch of each level. Nothing is
    claimed or reserved.
    """

    EPILOG = f"""\
examples:

  The largest group that fits under one switch of each level:
    hpc-sched fits --cloud mycloud --flavor hpc.large

  Where 64 VMs would go, all under one pod:
    hpc-sched fits --cloud mycloud --flavor hpc.large --count 64 --level pod

  8 more for a group, with a leaf taken out and a few hosts put in:
    hpc-sched fits --snapshot state.json --flavor hpc.large --group job17 --count 8 \\
      --drain leaf03 --drain 'node[001-008]' --add 'leaf05=node[100-108]:like=node001'

  What plans by bottleneck would gain, and do to others, with leaves 4 : 1:
    hpc-sched fits --cloud mycloud --flavor hpc.large --count 64 --frontier \\
      --oversubscription leaf=4 --picture plans.svg

  In a script:
    hpc-sched fits --flavor hpc.large --count 64 --summary -f value -c Hop-Byte || echo no

  As soon as 64 VMs fit below one pod, within an hour:
    hpc-sched fits --cloud mycloud --flavor hpc.large --count 64 --level pod --wait 3600 \\
      && openstack server create ...

The answer depends on what the scheduler reads: free resources and traits in Placement, the state
of compute services, the group's policy, the flavor's hpc: extra specs, and the VMs on the hosts if
nova.conf (or the snapshot) enables HPCDedicatedHostFilter, HPCInterferenceFilter or
HPCHomogeneityFilter. NUMA cells and PCI devices count where Nova is installed and its databases
were read. The limits of IoOpsFilter, NumInstancesFilter and their Aggregate forms count where
nova.conf enables these filters. It ignores Nova's other filters: availability zones, images,
aggregates of flavors, quotas.

Extra specs that only a group can have, such as hpc:require, need --group or --policy, or a class
and more than one VM, as in the scheduler. --level, --max-leaves, --min-leaves,
--segment, --segment-level and --balance are assumed for a group, and so are --objective and
--pattern.

--frontier shows the plan of least Hop-Byte and those that values of bottleneck_tradeoff give, up
to the least bottleneck; none is as bad as another one in bottleneck, Hop-Byte and harm. Bottleneck
and harm are seconds if each VM sends 1 GB: of the busiest uplinks or host's link, and of the
uplinks of all switches added up. Ratios are to the plan of least Hop-Byte. Chosen is the plan that
the group gets by its objective.

{fit_wait.EPILOG}
exit codes: 0 it fits (or no --count), 1 failed, 2 wrong usage, {DOES_NOT_FIT} it does not fit (with
--wait: nor would it without any VM on the hosts), {TIME_IS_OVER} the time of --wait is over and
it does not fit, 130 interrupted
"""

    ARGUMENTS = (
        argument("--flavor", "flavor of the VMs", metavar="NAME"),
        number("--vcpus", "in place of --flavor", ZERO_OR_MORE),
        number("--ram", "with --vcpus", ZERO_OR_MORE, "MB"),
        number("--disk", "with --vcpus", ZERO_OR_MORE, "GB"),
        repeated(
            "--property",
            "extra spec, over the flavor's own; may be given several times",
            type=PROPERTY,
            metavar="KEY=VALUE",
        ),
        flag("--volume", "the VMs boot from volumes: no root disk"),
        number("--count", "number of VMs"),
        argument("--level", "all under one switch of this level (hpc:require)", metavar="LEVEL"),
        *(constraint_argument(one, one.fits_help) for one in ASSUMED),
        argument("--policy", "policy of their server group", choices=SERVER_GROUP_POLICIES),
        number(
            "--max-per-host", "with --policy anti-affinity: rule max_server_per_host (default: 1)"
        ),
        argument("--group", "existing server group that they will join", metavar="ID_OR_NAME"),
        repeated(
            "--drain",
            "assume that these hosts, folded or not, or those below a switch, take no new "
            "VMs; may be given several times",
            metavar="HOST_OR_SWITCH",
        ),
        _add_additions,
        flag("--summary", "with --count: one row with the numbers"),
        *fit_wait.ARGUMENTS,
        *objective_arguments.ARGUMENTS,
        *sources.ARGUMENTS,
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that exclude each other."""
        by_hand = {"--vcpus": args.vcpus, "--ram": args.ram, "--disk": args.disk}
        first = next((name for name, value in by_hand.items() if value is not None), None)
        is_named = args.flavor is not None
        lacks_size = not is_named and (args.vcpus is None or args.ram is None)
        no_count = args.count is None
        self.refuse(
            (is_named and first, f"--flavor {args.flavor} and {first}: expected one of them"),
            (
                args.group is None and lacks_size,
                "expected --flavor NAME, or --vcpus N --ram MB [--disk GB]",
            ),
            (first and lacks_size, f"{first}: expected --vcpus N and --ram MB"),
            (
                args.group is not None and args.policy is not None,
                "--group has a policy of its own: --policy means nothing with it",
            ),
            (
                args.max_per_host is not None and args.policy != "anti-affinity",
                "--max-per-host means nothing without --policy anti-affinity",
            ),
            (args.summary and no_count, "--summary means nothing without --count"),
            (args.wait is not None and no_count, "--wait means nothing without --count"),
            (
                args.interval is not None and args.wait is None,
                "--interval means nothing without --wait",
            ),
            (args.frontier and no_count, "--frontier means nothing without --count"),
            (args.frontier and args.summary, "--frontier and --summary: expected one of them"),
            (args.picture and not args.frontier, "--picture means nothing without --frontier"),
            (
                args.picture and not args.picture.endswith(".svg"),
                f"--picture {args.picture}: expected a name that ends in .svg",
            ),
            (
                args.level is not None and no_count,
                "--level means nothing without --count: all levels are shown",
            ),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return columns and rows."""
        if parsed_args.picture is not None:
            frontier_rows.check_picture(parsed_args.picture)
        if parsed_args.wait is not None:
            return self._waited(parsed_args)
        state = _state(parsed_args, sources.cloud_of(parsed_args))
        if parsed_args.count is None:
            if conflict := state.group.conflict:
                output.note(f"no VM can join the group: {conflict}")
            return fit_rows.largest(state)
        return self._answer(parsed_args, state, group_fit.fit(state))

    def _waited(self, args: argparse.Namespace) -> Table:
        """Return the answer once the group fits, or when the time is over."""
        with output.each_note_once():
            waited = fit_wait.until_fit_in(args, partial(_state, args))
            table = self._answer(args, waited.state, waited.fit)
        if waited.never is not None:
            output.say(f"not waited: without any VM on the hosts, {waited.never}")
        elif waited.is_over:
            self.exit_code = TIME_IS_OVER
            output.say(f"the time is over: {waited.sentence}")
        if self.above and waited.fit.plan is not None:
            self.above = [f"{self.above[0]}; {waited.sentence}", *self.above[1:]]
        return table if args.formatter == "table" and not args.summary else waited.counted(table)

    def _answer(
        self,
        parsed_args: argparse.Namespace,
        state: request_builder.SnapshotRequest,
        fit: group_fit.Fit,
    ) -> Table:
        """Return whether a group fits, and where; set the exit code."""
        self.exit_code = DOES_NOT_FIT if fit.plan is None else 0
        if not parsed_args.frontier or fit.plan is None:  # otherwise the frontier has these notes
            output.note(*group_frontier.notes_on_own(state))
        if parsed_args.summary:
            return fit_rows.summary(state, fit)
        if fit.plan is not None:
            self.above = [fit_rows.sentence(state, fit, fit.plan)]
            if parsed_args.frontier:
                return self._frontier(state, fit, parsed_args)
            return fit_rows.places(state.cloud, fit.plan)
        why = fit.reason or ""
        if parsed_args.formatter != "table":
            if why != "; ".join(state.hpc_specs.faults):  # otherwise the notes have the reason
                output.say(why)
            return fit_rows.PLACES, []
        self.above = [why, *fit_rows.uplinks_of_others(state), "", "largest groups that fit:"]
        return fit_rows.largest(state)

    def _frontier(
        self, state: request_builder.SnapshotRequest, fit: group_fit.Fit, args: argparse.Namespace
    ) -> Table:
        """Return a row for each plan between the least Hop-Byte and the least bottleneck."""
        assert fit.plan is not None
        shown = frontier_rows.shown(state, fit.plan)
        self.below = list(shown.sentences)
        if args.picture is not None:
            frontier_rows.draw(shown, args.picture)
        return shown.table(args.formatter)


def _state(args: argparse.Namespace, cloud: Cloud) -> request_builder.SnapshotRequest:
    """Return the group of the arguments on a cloud with their assumptions; write notes on it."""
    found = what_if.drained(what_if.added(cloud, args.add), args.drain)
    found = objective_arguments.assumed(args, found)
    state = request_builder.of(found, _request(args, found))
    _say_notes(state)
    return state


def _request(args: argparse.Namespace, found: Cloud) -> request_builder.GroupQuery:
    group = found.group(args.group) if args.group is not None else None
    placed = server_groups.placed_of(found, group) if group is not None else ()
    boots_from_volume = False
    if args.flavor is not None:
        flavor = found.flavor(args.flavor)
    elif args.vcpus is not None:
        flavor = Flavor("by hand", args.vcpus, args.ram, args.disk or 0)
    elif placed:
        flavor, boots_from_volume = placed[0].flavor, placed[0].boots_from_volume
        output.note(f"of the group's own flavor {flavor.name}")
    else:
        raise exceptions.SnapshotError(f"group {args.group} has no VM: give its --flavor")
    levels = found.description.request_levels
    if args.level is not None and args.level not in levels:
        raise exceptions.SnapshotError(
            f"there is no level {args.level!r}: expected one of {', '.join(levels)}"
        )
    constraints = {
        Require.spec.name: args.level,
        **{one.spec.name: getattr(args, one.name) for one in ASSUMED},
        **objective_arguments.extra_specs(args),
    }
    policy = args.policy if group is None else group.policy
    most = args.max_per_host if group is None else group.max_per_host
    return request_builder.GroupQuery(
        flavor=msgspec.structs.replace(
            flavor, extra_specs={**flavor.extra_specs, **dict(args.property)}
        ),
        constraints={name: str(value) for name, value in constraints.items() if value is not None},
        count=args.count or 1,
        boots_from_volume=args.volume or boots_from_volume,
        policy=policy,
        max_per_host=server_groups.most_per_host(policy, most),
        group_id="" if group is None else group.uuid,
        members=placed,
        is_single=args.count == 1,
    )


def _say_notes(state: request_builder.SnapshotRequest) -> None:
    output.note(*state.notes)
    if not state.hpc_specs.is_planned:
        output.note("MDOBP alone places a single VM without a server group, on any host")
    elif state.is_flat:
        output.note(
            f"class {state.hpc_specs.app_class} is not placed by topology: what is shown is "
            "one way that the room allows"
        )
    if state.cloud.snapshot.filters is None:
        keys = (extra_specs.CACHE_SCORE, extra_specs.APP_NAME, extra_specs.HOMOGENEOUS)
        if ignored := ", ".join(key for key in keys if key in state.request.flavor.extra_specs):
            output.note(
                f"{ignored} ignored: no nova.conf says whether "
                f"{INTERFERENCE_FILTER} and {HOMOGENEITY_FILTER} are enabled"
            )
