"""Host names are folded however long their numbers are: Python parses 4,300 digits at most."""

from hpc_sched.topology import hostlist


def test_a_name_with_five_thousand_digits_is_folded():
    name = f"n{'9' * 5000}"
    assert hostlist.fold([name, "n1", "n2"])
