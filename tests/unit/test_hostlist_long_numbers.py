"""Host names are folded however long their numbers are: Python parses 4,300 digits at most."""

from hpc_sched.topology import hostlist


def test_a_name_with_five_thousand_digits_is_folded():
    name = f"n{'9' * 5000}"
    assert hostlist.fold([name, "n1", "n2"])


def test_a_number_that_nodeset_does_not_read_follows_unfolded():
    short, long = f"n{'9' * 99}", f"n{'9' * 101}"
    assert hostlist.fold([long, "n1", "n2"]) == f"n[1-2],{long}"
    assert hostlist.fold([short, "m"]) == f"m,{short}"
    assert hostlist.expand(hostlist.fold([long, "n1"])) == ["n1", long]
