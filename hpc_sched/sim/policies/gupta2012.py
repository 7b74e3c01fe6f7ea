"""The build plan of Gupta2012, as RackCapacityWeigher has it.

Behind HPCHomogeneityFilter and HPCGroupFilter. HPCRackCapacityFilter is left out: it keeps the
leaves of the exact plan and spares, which are seldom those with most capacity.
"""

from hpc_sched.core.classic.build_plan import Selection, build_plan
from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies import constrained
from hpc_sched.sim.policies.base import Place, Places, Policy, Request, filled
from hpc_sched.sim.policies.processor_type import on_one_type


def _by(selection: Selection) -> Place:
    def place(request: Request) -> Places | Rejection:
        return filled(request.problem, build_plan(request.problem, selection))

    return on_one_type(constrained.kept(place))


LARGEST = Policy(
    "gupta2012",
    "racks by capacity, the build plan of Gupta2012 (RackCapacityWeigher)",
    _by("largest"),
)
BEST_FIT = Policy(
    "gupta2012-best-fit",
    "the racks with the least excess capacity, Gupta2012's future work",
    _by("best_fit"),
)
