"""The saved snapshot: what is written is read again, and nothing else is."""

import gzip
import json
import random

import msgspec
import pytest
from msgspec.structs import replace

from hpc_sched import exceptions
from hpc_sched.core.room.device_fitting import RecordedDevices
from hpc_sched.core.room.provider_tree import SHARES, Provider, ProviderInventory
from hpc_sched.snapshot.snapshot_model import Aggregate, Snapshot
from hpc_sched.snapshot.source import snapshot_file
from tests.snapshots import flavor, group, server, snapshot

VMS = [
    server("vm-1", "n01", flavor("big", 16, app_class="sync"), reservation_id="r-1"),
    server("vm-2", None, boots_from_volume=True),
]
FULL = snapshot(
    VMS,
    [group("job", VMS, "anti-affinity", max_per_host=2)],
    aggregates=[Aggregate("a", ("n01",), {"hpc:leaf": "leaf01"})],
    options={"cache_score_limit": 100.0, "processor_order": ["new"], "decision_log": None},
    filters=("HPCGroupFilter",),
    weighers=(),
    interference={"WRF": {"LU": 0.5}},
    decisions=({"time": "now", "plan": {"hosts": {"n01": 1}}},),
    notes=("a cell does not answer",),
    shared_providers=(
        Provider("pool", None, {"DISK_GB": ProviderInventory(9)}, (SHARES,), ("a",)),
    ),
    pci_aliases=('{"name": "gpu"}',),
)
FULL = replace(
    FULL,
    hypervisors=(
        replace(
            FULL.hypervisors[0],
            providers=(
                Provider("root", None, {"VCPU": ProviderInventory(16, 2, max_unit=8)}),
                Provider("gpu", "root", {"VGPU": ProviderInventory(4)}, ("CUSTOM_RED",)),
            ),
            devices=RecordedDevices(numa_topology="{}", cpu_allocation_ratio=2.0),
        ),
        *FULL.hypervisors[1:],
    ),
)


@pytest.mark.parametrize("name", ["state.json", "state.json.gz"])
def test_what_is_written_is_read_again(tmp_path, name):
    snapshot_file.write(tmp_path / name, FULL)
    assert snapshot_file.read(tmp_path / name) == FULL


def test_a_file_of_version_1_is_read_with_a_note_on_what_it_lacks(tmp_path):
    document = json.loads(broken(lambda d: d.update(version=1)))
    for part in ("shared_providers", "pci_aliases", "pci_in_placement"):
        del document[part]
    for node in document["hypervisors"]:
        del node["providers"], node["devices"]
    (tmp_path / "old").write_text(json.dumps(document))
    found = snapshot_file.read(tmp_path / "old")
    assert found.notes[:-1] == FULL.notes
    assert "version 1 of the file" in found.notes[-1]
    bare = replace(
        FULL,
        hypervisors=tuple(replace(n, providers=(), devices=None) for n in FULL.hypervisors),
        shared_providers=(),
        pci_aliases=None,
        notes=found.notes,
    )
    assert found == bare
    # The note stays in a file that is written from it.
    snapshot_file.write(tmp_path / "new", found)
    assert snapshot_file.read(tmp_path / "new") == found


def test_what_is_read_is_written_again_to_the_byte(tmp_path):
    snapshot_file.write(tmp_path / "a", FULL)
    snapshot_file.write(tmp_path / "b", snapshot_file.read(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_name_in_gz_is_packed_and_one_that_was_renamed_is_read_all_the_same(tmp_path):
    snapshot_file.write(tmp_path / "state.json.gz", FULL)
    packed = (tmp_path / "state.json.gz").read_bytes()
    assert json.loads(gzip.decompress(packed))["version"] == snapshot_file.VERSION
    (tmp_path / "state").write_bytes(packed)
    assert snapshot_file.read(tmp_path / "state") == FULL


def test_the_same_snapshot_is_the_same_file(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        snapshot_file.write(tmp_path / name, FULL)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def broken(change) -> str:
    """Return a document with a change to it."""
    header = {"format": snapshot_file.FORMAT, "version": snapshot_file.VERSION}
    document = json.loads(json.dumps({**header, **msgspec.to_builtins(FULL)}))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            lambda d: d.update(version=3),
            "version: expected 1 to 2, found 3: a newer hpc-sched wrote it",
        ),
        (lambda d: d.update(version=True), "version: expected 1 to 2, found True"),
        (lambda d: d.update(format="x"), "expected a file of hpc-sched snapshot save"),
        (lambda d: d.pop("taken"), "Object missing required field `taken`"),
        (lambda d: d.update(more=1), "Object contains unknown field `more`"),
        (lambda d: d.update(servers={}), "Expected `array`, got `object` - at `$.servers`"),
        (
            lambda d: d["hypervisors"][3]["used"].update(VCPU="4"),
            "Expected `int | float`, got `str` - at `$.hypervisors[3].used[...]`",
        ),
        (
            lambda d: d["hypervisors"][0].update(up=1),
            "Expected `bool`, got `int` - at `$.hypervisors[0].up`",
        ),
        (
            lambda d: d["servers"][0]["flavor"].update(vcpus=1.5),
            "Expected `int`, got `float` - at `$.servers[0].flavor.vcpus`",
        ),
        (
            lambda d: d["groups"][0].update(members=[None]),
            "Expected `str`, got `null` - at `$.groups[0].members[0]`",
        ),
        (
            lambda d: d["hypervisors"][0]["capacity"].update(VCPU=10**400),
            "Expected `int` <= 9223372036854775807 - at `$.hypervisors[0].capacity[...]`",
        ),
        (
            lambda d: d.update(decisions=[[]]),
            "Expected `object`, got `array` - at `$.decisions[0]`",
        ),
    ],
)
def test_an_error_names_file_and_key_and_what_was_expected(tmp_path, change, error):
    path = tmp_path / "state.json"
    path.write_text(broken(change))
    with pytest.raises(exceptions.SnapshotError) as raised:
        snapshot_file.read(path)
    assert str(raised.value).startswith(f"{path}: {error}")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", ": not JSON: Input data was truncated"),
        (b"{\n,}", ": not JSON: JSON is malformed: object keys must be strings (byte 2)"),
        (b'{"format":"\xff"}', ": expected UTF-8, found byte 0xff"),
        (b"[" * 100_000, ": Expected `object`, got `array`"),
        (b'{"servers":' + b"[" * 100_000, ": nested too deeply"),
        (b'{"servers":NaN}', ": not JSON: JSON is malformed: invalid character (byte 11)"),
        (b'{"format":' + b"9" * 5000 + b"}", ": Integer value out of range - at `$.format`"),
        (b"[]", ": Expected `object`, got `array`"),
        (b"\x1f\x8b123", ": cannot be unpacked: "),
        (gzip.compress(b"{}")[:-4], ": cannot be unpacked: "),
        (gzip.compress(b"{}"), ": expected a file of hpc-sched snapshot save"),
    ],
    ids=[
        "nothing",
        "a comma too many",
        "no text",
        "deeply nested lists",
        "deeply nested",
        "no number",
        "a number of too many digits",
        "a list",
        "the beginning of a packed file",
        "a packed file without its end",
        "a packed file of something else",
    ],
)
def test_what_is_no_snapshot_is_refused_with_its_name(tmp_path, content, error):
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(exceptions.SnapshotError) as raised:
        snapshot_file.read(path)
    assert f"{path}{error}" in str(raised.value)


def test_an_infinite_number_is_refused(tmp_path):
    path = tmp_path / "state.json"
    text = broken(lambda d: d["hypervisors"][0]["capacity"].update(VCPU=4242))
    path.write_text(text.replace("4242", "1e999"))
    with pytest.raises(exceptions.SnapshotError, match=r"Number out of range - at `\$.hypervisors"):
        snapshot_file.read(path)


def test_a_file_that_unpacks_to_more_than_is_allowed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_file, "MAX_BYTES", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(exceptions.SnapshotError, match="expected at most 1000 bytes, found more"):
        snapshot_file.read(tmp_path / "bomb.gz")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(exceptions.SnapshotError, match=r"missing/x.*cannot be written: No such"):
        snapshot_file.write(tmp_path / "missing" / "x", FULL)
    with pytest.raises(exceptions.SnapshotError, match=r"nothing: cannot be read: No such file"):
        snapshot_file.read(tmp_path / "nothing")


def test_what_json_cannot_say_is_not_written(tmp_path):
    with pytest.raises(exceptions.SnapshotError, match="cannot be written"):
        snapshot_file.write(tmp_path / "x", replace(FULL, options={"a": float("nan")}))
    assert not (tmp_path / "x").exists()


def test_any_change_of_bytes_gives_a_snapshot_or_a_snapshot_error(tmp_path):
    path = tmp_path / "state.json"
    snapshot_file.write(path, FULL)
    good = path.read_bytes()
    numbers = random.Random(5)
    for _ in range(500):
        content = bytearray(good)
        for _ in range(numbers.randint(1, 4)):
            at = numbers.randrange(len(content))
            match numbers.randrange(3):
                case 0:
                    content[at] = numbers.randrange(256)
                case 1:
                    del content[at : at + numbers.randrange(40)]
                case _:
                    content[at:at] = numbers.choice([b"null", b"[", b"}", b'"', b"1e9", b","])
        path.write_bytes(content)
        try:
            assert isinstance(snapshot_file.read(path), Snapshot)
        except exceptions.SnapshotError as error:
            assert str(error).startswith(str(path))  # noqa: PT017


def test_without_names_the_people_s_words_are_gone_and_equal_ones_stay_equal(tmp_path):
    servers = [server("secret-1", "n01"), server("secret-1", "n02"), server("secret-2", "n03")]
    found = snapshot_file.without_names(snapshot(servers, [group("secret-3", servers)]))
    path = tmp_path / "state.json"
    snapshot_file.write(path, replace(found, servers=(), groups=()))
    names = [vm.name for vm in found.servers]
    assert len(set(names)) == 2
    assert not any("secret" in name for name in [*names, found.groups[0].name])
    assert {vm.project_id for vm in found.servers} == {found.groups[0].project_id}
    assert found.groups[0].members == group("secret-3", servers).members
    again = snapshot_file.without_names(snapshot(servers))
    assert again.servers[0].project_id != found.servers[0].project_id


def test_without_names_the_projects_that_own_aggregates_are_the_words_of_their_servers():
    owned = Aggregate("a", ("n01",), {"filter_tenant_id7": "project, other", "hpc:leaf": "leaf1"})
    found = snapshot_file.without_names(snapshot([server("vm", "n01")], aggregates=[owned]))
    [aggregate] = found.aggregates
    assert aggregate.metadata["hpc:leaf"] == "leaf1"
    first, second = aggregate.metadata["filter_tenant_id7"].split(",")
    assert first == found.servers[0].project_id
    assert second.startswith("project-")


def test_without_names_none_that_people_gave_is_anywhere_in_the_file(tmp_path):
    owner = {"project_id": "SecretProject"}
    servers = [server(f"Secret{n}", "n01", uuid=f"u{n}", **owner) for n in range(3)]
    groups = [replace(group("SecretGroup", servers), uuid="g", **owner)]
    owned = Aggregate("a", ("n01",), {"filter_tenant_id": "SecretProject"})
    record = {"instance": servers[0].uuid, "group": groups[0].uuid, "decision": "planned"}
    found = replace(snapshot(servers, groups, aggregates=[owned]), decisions=(record,))
    path = tmp_path / "state.json"
    snapshot_file.write(path, found)
    assert path.read_text().count("Secret") == 3 + 3 + 2 + 1
    snapshot_file.write(path, snapshot_file.without_names(found))
    assert "Secret" not in path.read_text()
    # The places stay: without them no question could be answered.
    assert '"n01"' in path.read_text()


def test_a_snapshot_that_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_file, "MAX_VALUES", 100)
    for name in ("state.json", "state.json.gz"):
        with pytest.raises(exceptions.SnapshotError) as raised:
            snapshot_file.write(tmp_path / name, FULL)
        assert str(raised.value) == (
            f"{tmp_path / name}: cannot be written: expected at most 100 JSON values, found more"
        )
    assert not list(tmp_path.iterdir())
