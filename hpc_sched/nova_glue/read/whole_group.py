"""Requests that hold all VMs of their group, as their RequestSpec proves without a database.

What Nova 31 to 34 do (``compute/api.py``, ``conductor/manager.py``, ``scheduler/utils.py``):

* ``_provision_instances`` of nova-api adds each VM of a create to the server group, one
  ``InstanceGroup.add_members`` each, and casts to the conductor after the last one. It fails
  without a cast if one cannot be added. ``num_instances`` is the number that it has made.
* ``schedule_and_build_instances`` of the conductor calls ``setup_instance_group`` before the
  scheduler, which sets ``RequestSpec.instance_group.members`` to what the database has then; if the
  group was deleted meanwhile, they are those that nova-api knew. Deleted VMs stay among them until
  their records are archived.
* All moves have a destination with a cell, or one that lets them leave it
  (:func:`request_spec.is_move`). Builds that fail take an alternate and no scheduler.

So the VMs of a create are among the members of its RequestSpec, and if there are no more members
than VMs, they are the group, as of the conductor's read. Of two creates for one group at least one
has the VMs of the other among its members: it is not proven to be whole.
"""

from collections.abc import Sequence


def vms(first: str, members: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the VMs of a create if they are all members of its server group, else nothing.

    The first one comes first, and the others in the order of the members. That is mostly the one in
    which nova-api has added them, and Nova places them.

    :param first: uuid of the VM that Nova places first
    :param members: uuids of the group's members, by the RequestSpec
    :param count: VMs of the request when it was made
    """
    found = dict.fromkeys([first, *members])
    return tuple(found) if first in members and len(found) == count else ()
