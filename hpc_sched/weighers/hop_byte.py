"""HopByteWeigher: follows the exact plan; the recommended topology weigher."""

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.weighers.group_weigher import TopologyWeigher


class HopByteWeigher(TopologyWeigher):
    """Sends each VM of a group to its place in the plan of least Hop-Byte.

    The places of a plan are in the order of the fabric. After the VM's own place come the others
    in its leaf, then the other planned places, then the other hosts by the cost of one more VM
    there: so a lost claim goes to the next best host. Once a VM is placed elsewhere, the group is
    planned again. If the whole group does not fit and no filter refuses it, the
    largest part that fits is planned, without constraints.

    A VM that is claimed already (``gang_claims``) goes to its host, whatever other weighers say.
    """

    multiplier = "hop_byte_weight_multiplier"
    follows_claims = True

    def _limited(self, group: GroupPlacement, request: GroupRequest) -> GroupRequest:
        answer = group.decisions.answer
        return request.as_planned(answer) if isinstance(answer, Plan) else request
