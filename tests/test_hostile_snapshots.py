"""Snapshots with values that no cloud has: an error names the value, whatever the command."""

import json

import pytest

from hpc_sched.cli import main
from tests.snapshots import flavor, group, saved, server

SCORED = flavor("scored", 4, app_class="sync", app_name="wrf", cache_score="2.5")
# As msgspec, Python or the commands' own code would put it.
BUGS = ("NoneType", "float NaN", "unsupported operand", "KeyError", "cannot convert")


def snapshot(folder) -> str:
    servers = [server(f"vm{i}", f"n0{i}", SCORED) for i in range(1, 5)]
    return saved(
        folder,
        servers,
        [group("job", servers)],
        flavors=[SCORED],
        filters=("HPCInterferenceFilter", "HPCHomogeneityFilter", "HPCGroupFilter"),
        weighers=(),
        interference={"wrf": {"wrf": 0.5}},
    )


@pytest.mark.parametrize("command", [["fits", "--flavor", "scored"], ["group", "show", "job"]])
@pytest.mark.parametrize("value", ["", "nan"])
@pytest.mark.parametrize(
    "option", ["cache_score_limit", "sync_cache_score_limit", "interference_tolerance"]
)
def test_an_option_that_is_no_number_is_named(tmp_path, capsys, command, option, value):
    path = snapshot(tmp_path)
    with open(path) as stream:
        document = json.load(stream)
    document["options"] = {option: value}
    with open(path, "w") as stream:
        json.dump(document, stream)
    code = main.main([*command, "--snapshot", path])
    said = capsys.readouterr().err
    assert not any(bug in said for bug in BUGS), said
    assert code == 1
    assert option in said


def test_a_processor_type_may_end_in_any_letter(tmp_path, capsys):
    path = snapshot(tmp_path)
    with open(path) as stream:
        document = json.load(stream)
    document["hypervisors"][4]["cpu_info"] = {
        "vendor": "GenuineIntel",
        "model": "Xeon",
        "topology": {},
    }
    document["hypervisors"][5]["cpu_info"] = {
        "vendor": "GenuineIntel",
        "model": "Xeon",
        "topology": {},
        "features": ["avx\x00"],
    }
    with open(path, "w") as stream:
        json.dump(document, stream)
    code = main.main(["fits", "--snapshot", path, "--flavor", "scored", "--count", "1"])
    said = capsys.readouterr()
    assert (code, said.err) == (0, ""), said.err


@pytest.mark.parametrize("part", ["hypervisors", "servers"])
def test_nothing_counts_twice(tmp_path, capsys, part):
    path = snapshot(tmp_path)
    with open(path) as stream:
        document = json.load(stream)
    document[part].append(document[part][-1])
    with open(path, "w") as stream:
        json.dump(document, stream)
    code = main.main(["fits", "--snapshot", path, "--flavor", "scored"])
    assert code == 1, capsys.readouterr().out
