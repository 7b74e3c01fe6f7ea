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


ROOT = {
    "uuid": "root",
    "parent": None,
    "inventories": {
        "VCPU": {"capacity": 16, "used": 0},
        "MEMORY_MB": {"capacity": 65536, "used": 0},
        "DISK_GB": {"capacity": 1000, "used": 0},
    },
    "traits": [],
    "aggregates": [],
}
NUMBERS = (-1, 0, 1, 2**63, 2**64 - 1, -(2**63))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        *(
            pytest.param({"inventories": {"VCPU": {"capacity": 16, key: number}}}, (0, 3))
            for key in ("capacity", "used", "min_unit", "max_unit", "step_size")
            for number in NUMBERS
        ),
        pytest.param({"inventories": {"VCPU": {"capacity": 1.5}}}, (1,)),
        pytest.param({"inventories": {"VCPU": {"capacity": 10**30}}}, (0,)),
        pytest.param({"inventories": {"": {"capacity": 4}}}, (3,)),
        pytest.param({"inventories": {}}, (3,)),
        pytest.param({"parent": "root"}, (0,)),
        pytest.param({"traits": [5]}, (1,)),
        pytest.param({"uuid": ""}, (0,)),
    ],
    ids=str,
)
def test_a_resource_provider_may_say_anything(tmp_path, capsys, change, code):
    path = snapshot(tmp_path)
    with open(path) as stream:
        document = json.load(stream)
    changed = {**ROOT, **change}
    if changed["inventories"]:
        changed["inventories"] = {**ROOT["inventories"], **changed["inventories"]}
    for node in document["hypervisors"]:
        node["providers"] = [changed, {**changed, "uuid": "below", "parent": "root"}]
    document["shared_providers"] = [
        {**changed, "traits": ["MISC_SHARES_VIA_AGGREGATE"], "aggregates": ["a"]}
    ]
    with open(path, "w") as stream:
        json.dump(document, stream)
    args = ["--snapshot", path, "--flavor", "scored", "--policy", "anti-affinity"]
    found = main.main(["fits", *args, "--count", "17" if code == (3,) else "1"])
    said = capsys.readouterr().err
    assert not any(bug in said for bug in BUGS), said
    assert found in code, said
    assert main.main(["group", "show", "job", "--snapshot", path]) in (0, 1)


@pytest.mark.parametrize("devices", [{"numa_topology": 5}, {"unknown": "x"}, []])
def test_recorded_devices_are_texts(tmp_path, capsys, devices):
    path = snapshot(tmp_path)
    with open(path) as stream:
        document = json.load(stream)
    document["hypervisors"][0]["devices"] = devices
    with open(path, "w") as stream:
        json.dump(document, stream)
    code = main.main(["fits", "--snapshot", path, "--flavor", "scored"])
    said = capsys.readouterr().err
    assert not any(bug in said for bug in BUGS), said
    assert code == (0 if devices == {"unknown": "x"} else 1)
