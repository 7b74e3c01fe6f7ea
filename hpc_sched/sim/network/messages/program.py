"""What each rank does, in order: it computes, posts messages, and waits for them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.traffic.step import Step
from hpc_sched.sim.network.messages.iteration import Iteration


@dataclass(frozen=True, slots=True)
class Computation:
    """Time that a rank needs for itself, s."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Send:
    """A message that is offered; the rank goes on."""

    receiver: int  # rank
    tag: int
    size: float  # bytes


@dataclass(frozen=True, slots=True)
class Receive:
    """A message that may come; the rank goes on. The first sent is the first received."""

    sender: int  # rank
    tag: int


@dataclass(frozen=True, slots=True)
class Wait:
    """The rank waits for all messages that it has posted."""


Operation = Computation | Send | Receive | Wait


@dataclass(frozen=True, slots=True)
class Program:
    """A rank's operations, and its host."""

    host: int  # index in ``topology.hosts``
    operations: tuple[Operation, ...]


def programs(
    iteration: Iteration, hosts: Array, times: int = 1, first: int = 0
) -> tuple[Program, ...]:
    """Return the program of each rank of a job.

    :param times: iterations, one after the other
    :param first: number of rank 0 among the ranks of all jobs
    """
    found: list[list[Operation]] = [[] for _ in hosts]
    every = (one for _ in range(times) for one in iteration for _ in range(one.times))
    for tag, each in enumerate(every):
        if each.computation:
            for operations in found:
                operations.append(Computation(each.computation))
        pairs = zip(each.sender.tolist(), each.receiver.tolist(), each.size.tolist(), strict=True)
        for sender, receiver, size in pairs:
            found[sender].append(Send(first + receiver, tag, size))
            found[receiver].append(Receive(first + sender, tag))
        for rank in {*each.sender.tolist(), *each.receiver.tolist()}:
            found[rank].append(Wait())
    return tuple(Program(host, tuple(ops)) for host, ops in zip(hosts.tolist(), found, strict=True))


@dataclass(frozen=True, slots=True)
class Message:
    """A send with its receive."""

    sender: int  # rank
    receiver: int  # rank
    size: float  # bytes


@dataclass(frozen=True, slots=True)
class Posts:
    """The operations of all ranks with their messages by number.

    ``operations[rank]`` has seconds of computation, numbers of messages, or None for a wait.
    """

    messages: tuple[Message, ...]
    operations: tuple[tuple[float | int | None, ...], ...]


def posts(ranks: Sequence[Program]) -> Posts:
    """Return the operations with each send and its receive as one message.

    :raises ValueError: for a message without a send, or without a receive
    """
    messages: list[Message] = []
    sent: dict[tuple[int, int, int], list[int]] = {}
    for rank, program in enumerate(ranks):
        for operation in program.operations:
            if isinstance(operation, Send):
                key = rank, operation.receiver, operation.tag
                sent.setdefault(key, []).append(len(messages))
                messages.append(Message(rank, operation.receiver, operation.size))
    offered = {key: iter(numbers) for key, numbers in sent.items()}
    received = {key: iter(numbers) for key, numbers in sent.items()}
    none: Iterable[int] = iter(())
    found = []
    for rank, program in enumerate(ranks):
        ops: list[float | int | None] = []
        for operation in program.operations:
            match operation:
                case Computation():
                    ops.append(float(operation.seconds))
                case Send():
                    ops.append(next(offered[rank, operation.receiver, operation.tag]))
                case Receive():
                    key = operation.sender, rank, operation.tag
                    number = next(received.get(key, iter(none)), None)
                    if number is None:
                        raise ValueError(
                            f"rank {rank} receives a message of tag {operation.tag} from rank "
                            f"{operation.sender} that is not sent"
                        )
                    ops.append(number)
                case Wait():
                    ops.append(None)
        found.append(tuple(ops))
    for key, numbers in received.items():
        if next(numbers, None) is not None:
            raise ValueError(
                f"rank {key[0]} sends a message of tag {key[2]} to rank {key[1]} that is not "
                "received"
            )
    return Posts(tuple(messages), tuple(found))


def steps(ranks: Sequence[Program]) -> Iteration:
    """Return programs with a barrier after each wait: the k-th step is up to each rank's k-th.

    Computation of a step is that of its slowest rank. Steps that follow each other and are equal
    are one.

    :raises ValueError: for a message that is not posted in the same step by both ranks
    """
    matched = posts(ranks)
    parts = [list(_until_waits(operations)) for operations in matched.operations]
    found: list[Step] = []
    for each in zip_longest(*parts, fillvalue=(0.0, frozenset())):
        posted = [number for _, numbers in each for number in numbers]
        numbers = sorted(set(posted))
        if len(posted) != 2 * len(numbers):
            ends = Counter(posted)
            lone = matched.messages[next(each for each in numbers if ends[each] < 2)]
            raise ValueError(
                "between two waits a message has only one of its ends: that from rank "
                f"{lone.sender} to rank {lone.receiver}"
            )
        messages = [matched.messages[number] for number in numbers]
        new = Step(
            sender=np.array([message.sender for message in messages], dtype=np.int64),
            receiver=np.array([message.receiver for message in messages], dtype=np.int64),
            size=np.array([message.size for message in messages], dtype=np.float64),
            computation=max(seconds for seconds, _ in each),
        )
        if found and found[-1].is_like(new):
            found[-1] = replace(found[-1], times=found[-1].times + 1)
        else:
            found.append(new)
    return tuple(found)


def _until_waits(
    operations: Sequence[float | int | None],
) -> Iterable[tuple[float, frozenset[int]]]:
    """Yield computation and messages up to each wait, and what is left behind the last one."""
    seconds, numbers = 0.0, set[int]()
    for operation in operations:
        if isinstance(operation, float):
            seconds += operation
        elif operation is not None:
            numbers.add(operation)
        else:
            yield seconds, frozenset(numbers)
            seconds, numbers = 0.0, set()
    yield seconds, frozenset(numbers)
