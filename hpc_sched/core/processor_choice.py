"""The choice of one processor type for a group (Gupta2012, homogeneity)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from hpc_sched.core.arrays import Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Refusal, Rejection

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ProcessorChoice(Generic[Answer]):
    """The processor type that a group is placed on."""

    name: str
    hypervisors: Mask  # shape (hypervisors,)
    answer: Answer  # the plan or the places on these hypervisors


def by_processor(request: GroupRequest) -> Iterator[tuple[str, GroupRequest]]:
    """Yield each processor type, or the members', and the request on it; the best first."""
    if request.processors is not None:
        for name in request.processors.best_first():
            yield name, request.among(request.processors.hypervisors[name])


def choose_processor(
    request: GroupRequest,
    decide: Callable[[GroupRequest], Answer | Rejection],
    planned: Callable[[Answer], int],
) -> ProcessorChoice[Answer] | Refusal | None:
    """Return the processor type of a group, as HPCHomogeneityFilter chooses it (Gupta2012).

    The best type, or a later one that holds a larger of the request's ``sizes``; without shunned
    hosts if any type holds the group so. If no type holds it: the Refusal if one type is
    required, else None.

    :param decide: returns the plan, or the places, on the hypervisors of one type
    :param planned: returns the number of VMs in an answer of ``decide``
    """
    processors = request.processors
    if processors is None or request.homogeneous == "false":
        return None
    is_required = request.homogeneous == "true"
    if is_required and (fault := processors.fault_of_members()):
        return fault
    best: ProcessorChoice[Answer] | None = None
    most, is_proven = 0, True  # the largest gang that fits on one type
    for group in request.candidate_sets():
        for name, on_type in by_processor(group):
            answer = decide(on_type)
            if isinstance(answer, Rejection):
                most = max(most, answer.best.vms if answer.best is not None else 0)
                is_proven &= answer.at_most is None
            elif best is None or planned(answer) > planned(best.answer):
                best = ProcessorChoice(name, processors.hypervisors[name], answer)
                if planned(answer) == request.sizes[0]:
                    break
        if best is not None:
            return best
        if group is not request and not is_required and not isinstance(decide(group), Rejection):
            # A preference gives way: several types without shunned hosts.
            return None
    if not is_required:
        return None
    anywhere = decide(request)
    if isinstance(anywhere, Rejection):
        # Processors are not the reason.
        return request.refusal(anywhere)
    return processors.refusal(request.sizes[-1], most if is_proven else None, request.left)
