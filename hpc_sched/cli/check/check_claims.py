"""hpc-sched check claims."""

import argparse
import datetime
from collections.abc import Sequence
from typing import Any

from hpc_sched.cli.common import nova_conf
from hpc_sched.cli.common.argument_types import argument
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.topology import plurals

COLUMNS = ("Kind", "Instance", "Hosts", "Created", "State", "Request")
CLAIM, HOLD = "claim", "hold"


class CheckClaims(HPCSchedLister):
    """List what schedulers hold in Placement ahead of Nova, and release what dead ones have left.

    A gang claim holds the hosts of all VMs of a request until Nova has claimed them one by one. A
    scheduler that is killed leaves it. Another one releases it soon after nova-conductor has put
    the VMs into ERROR; this command shows what is left and why, and releases it at once.

    The request of a claim is dead if its instance is in cell0, or was deleted before it had a cell
    and no scheduler can have its request any more, or is not known to Nova. While an instance is
    being created nothing is proved, and its claim is never released.

    A hold is a place that is kept for a VM of a group that follows another one. It ends by itself
    (follower_hold_time).
    """

    EPILOG = """\
examples:

  hpc-sched check claims
  hpc-sched check claims --release
  hpc-sched check claims --config-file /etc/nova/nova.conf -f json

Reads Placement and Nova's API database by nova.conf: run it where nova-scheduler runs, as its user.
One call of Placement for each resource provider.

exit codes: 0 no claim of a dead request is left, 1 some are or the command failed, 2 wrong usage
"""

    ARGUMENTS = (
        argument("--release", "release the claims of dead requests", action="store_true"),
        nova_conf.add_arguments,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each claim that Nova has not taken over."""
        claims = nova_conf.module_of_nova(parsed_args, "hpc_sched.nova_glue.claim.unused_claims")
        found, holds = claims.read(), claims.holds()
        verdicts = [_verdict(one, is_released=parsed_args.release) for one in found]
        left = sum(verdict != RELEASED for verdict in verdicts if verdict != NOT_PROVED)
        self.exit_code = int(left > 0)
        self.below = [_summary(verdicts)]
        rows = [_row(one, verdict) for one, verdict in zip(found, verdicts, strict=True)]
        return COLUMNS, [*rows, *map(_hold_row, holds)]


RELEASED, DEAD, NOT_PROVED = "dead, released", "dead", "not proved dead"


def _verdict(one: Any, *, is_released: bool) -> str:
    """Return the state of a claim's request; release the claim of a dead one where wanted."""
    if not one.instance.is_dead:
        return NOT_PROVED
    if not is_released:
        return DEAD
    why_not = one.release()
    return RELEASED if why_not is None else f"{DEAD}, not released: {why_not}"


def _row(one: Any, verdict: str) -> Sequence[str]:
    created_at = one.instance.created_at
    created = "" if created_at is None else f"{created_at:%Y-%m-%d %H:%M:%S}"
    instance = one.instance
    return CLAIM, instance.uuid, " ".join(one.hosts), created, instance.state, verdict


def _hold_row(one: Any) -> Sequence[str]:
    until = datetime.datetime.fromtimestamp(one.until, datetime.UTC)
    state = "is being placed" if one.is_moving else "follows"
    return HOLD, one.instance, one.node, "", state, f"ends {until:%Y-%m-%d %H:%M:%S}"


def _summary(verdicts: Sequence[str]) -> str:
    if not verdicts:
        return "Nova has taken over all claims."
    dead = sum(verdict != NOT_PROVED for verdict in verdicts)
    released = sum(verdict == RELEASED for verdict in verdicts)
    text = f"{plurals.text(len(verdicts), 'claim')}, {dead} of dead requests"
    return f"{text}, {released} released." if released else f"{text}."
