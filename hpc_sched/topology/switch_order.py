"""Lists of switches in an order in which what is below comes first."""

from collections.abc import Callable, Iterator, Mapping, Sequence


def ordered(
    lists: Mapping[str, Sequence[str]],
    list_of: Callable[[str], str | None],
    cycle: Callable[[list[str]], None],
) -> list[str]:
    """Return the keys of lists, those of the lists below before those above.

    Linear, and without recursion: a file may be a chain of as many switches as it has lines.

    :param lists: key to the switches that it lists
    :param list_of: the key of the list that a switch has below it, None for a leaf
    :param cycle: told the switches of a cycle, of which each lists the next
    """
    order: list[str] = []
    done: set[str] = set()
    for start in lists:
        if start in done:
            continue
        path: dict[str, str] = {start: ""}  # the lists on the way down, and by which switch
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(lists[start]))]
        while stack:
            key, rest = stack[-1]
            for switch in rest:
                below = list_of(switch)
                if below is None or below in done:
                    continue
                if below in path:
                    ways = list(path)
                    cycle([path[way] for way in ways[ways.index(below) + 1 :]] + [switch])
                    continue
                path[below] = switch
                stack.append((below, iter(lists[below])))
                break
            else:
                stack.pop()
                path.pop(key)
                done.add(key)
                order.append(key)
    return order
