"""Other names of hosts; a GUID is the same in every notation."""

import pytest

from hpc_sched import exceptions
from hpc_sched.topology.readers import name_map


def test_a_guid_is_found_as_written_and_normalized():
    names = name_map.NameMap(b'0x1A "n1"  # an adapter\nnode2 uuid-2\n', "map")
    assert names == {"0x1A": "n1", "000000000000001a": "n1", "node2": "uuid-2"}


def test_lines_end_as_those_that_are_counted():
    assert name_map.NameMap(b"#\x0b\xe2\x80\xa8 c\ra b\r\n\x0c\nc d\r\n", "map") == {"c": "d"}
    with pytest.raises(exceptions.TopologyError, match=r"map:2: expected .*, found 'c"):
        name_map.NameMap(b'a b\nc "d\re"', "map")


def test_two_names_for_one_guid_are_refused_however_it_is_written():
    with pytest.raises(
        exceptions.TopologyError, match=r"map:2: '0x000000000000001a' is 'n2' here and 'n1' on line"
    ):
        name_map.NameMap(b"0x1A n1\n0x000000000000001a n2\n", "map")


def test_a_repeated_line_changes_nothing():
    assert name_map.NameMap(b"a b\na b\n", "map") == {"a": "b"}


def test_a_guid_that_stands_twice_is_used_once():
    names = name_map.NameMap(b"H-1a n1\n0x1a n1\n1a n1\n", "map")
    assert names[name_map.guid("0x1a") or ""] == "n1"
    assert names.remarks() == ["map:3: '1a' matches no host or switch"]


def test_at_most_a_hundred_problems_are_reported():
    with pytest.raises(exceptions.TopologyError) as caught:
        name_map.NameMap(b"nonsense\n" * 5000, "map")
    assert len(caught.value.problems) == 100
