"""What shows that a dump of ibnetdiscover was cut off.

Each switch and HCA has a section, and each cable is in the sections of both ends.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from hpc_sched.topology import plurals


def sentences(
    nodes: Iterable[str], stated: Mapping[str, int], ends: Iterable[str]
) -> Iterator[str]:
    """Yield what is missing in a dump. Linear.

    :param nodes: ids such as S-0002c90200404718
    :param stated: number of cables in the section of a node that has one
    :param ends: the nodes of all cables, one for each end
    """
    for kind, noun in (("S", "switch"), ("H", "HCA")):
        without = [id_ for id_ in nodes if id_[0] == kind and id_ not in stated]
        if without:
            verb = "has" if len(without) == 1 else "have"
            yield f"{plurals.text(len(without), noun)}, such as {min(without)}, {verb} no section"
    found = Counter(id_ for id_ in ends if id_ in stated)
    missing = {id_: number - stated[id_] for id_, number in found.items() if number > stated[id_]}
    if missing:
        number = plurals.text(sum(missing.values()), "cable")
        verb = "is" if number.startswith("1 ") else "are"
        yield f"{number}, such as one of {min(missing)}, {verb} in one section only"
