"""hpc-sched fits refuses what HPCGroupFilter refuses, whatever the room."""

import pytest

from hpc_sched.cli import main
from tests.snapshots import flavor, saved

DOES_NOT_FIT = 3


@pytest.mark.parametrize(
    "stated",
    [
        {"app_class": "web"},
        {"prefer": "island"},
        {"group_size": "many"},
        {"cache_score": "-1"},
        {"app_name": "../etc"},
    ],
    ids=str,
)
def test_a_value_that_cannot_be_read_is_refused_as_by_the_filter(tmp_path, capsys, stated):
    path = saved(
        tmp_path,
        flavors=[flavor("wrong", 8, **stated)],
        filters=("HPCHomogeneityFilter", "HPCGroupFilter"),
        weighers=(),
    )
    request = ["fits", "--snapshot", path, "--flavor", "wrong", "--count", "2"]
    assert main.main(request) == DOES_NOT_FIT, capsys.readouterr().out
    capsys.readouterr()
    assert main.main([*request, "-f", "json"]) == DOES_NOT_FIT
    assert capsys.readouterr().err.count(": expected ") == 1


def test_a_final_size_that_no_empty_cloud_could_hold_is_refused_as_by_the_filter(tmp_path, capsys):
    # A leaf has 4 hosts of 16 processors.
    path = saved(
        tmp_path,
        flavors=[flavor("grows", 16, max_leaves="1", group_size="5")],
        filters=("HPCHomogeneityFilter", "HPCGroupFilter"),
        weighers=(),
    )
    code = main.main(["fits", "--snapshot", path, "--flavor", "grows", "--count", "2"])
    assert code == DOES_NOT_FIT, capsys.readouterr().out


@pytest.mark.parametrize(
    ("stated", "options", "noted"),
    [
        ({}, {}, True),
        ({}, {"implicit_groups": True}, False),
        ({"app_class": "sync"}, {}, False),
        ({"app_class": "none"}, {}, False),
    ],
    ids=["no class", "the option is on", "a class", "class none"],
)
def test_vms_that_are_a_group_only_in_a_server_group_have_a_note(
    tmp_path, capsys, stated, options, noted
):
    path = saved(
        tmp_path, flavors=[flavor("web", 1, **stated)], filters=("HPCGroupFilter",), options=options
    )
    request = ["fits", "--snapshot", path, "--flavor", "web", "--count", "2"]
    for arguments, expected in ((request, noted), ([*request, "--policy", "affinity"], False)):
        assert main.main(arguments) == 0
        assert ("only the VMs of a server group" in capsys.readouterr().err) == expected


@pytest.mark.parametrize(
    ("least", "said"),
    [
        ("12", "; the largest number that fits: 16"),
        ("25", "; fewer than 25 fit"),
        (None, "largest gang that fits: 16 on core"),
    ],
    ids=["fewer are of use", "not as few", "all of them are needed"],
)
def test_the_largest_number_that_fits_is_printed_where_fewer_are_of_use(
    tmp_path, capsys, least, said
):
    path = saved(tmp_path, flavors=[flavor("node", 16)], filters=("HPCGroupFilter",), weighers=())
    more = [] if least is None else ["--min-size", least]
    request = ["fits", "--snapshot", path, "--flavor", "node", "--count", "40"]
    request += ["--policy", "soft-anti-affinity"]
    assert main.main([*request, *more]) == DOES_NOT_FIT
    found = capsys.readouterr()
    assert said in found.out + found.err
