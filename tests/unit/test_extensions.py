"""Entry points are read once, and again where something is installed."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from hpc_sched import extensions

GROUP = "hpc_sched.made_up"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the groups that are read, as they are."""
    found: list[str] = []
    entry_points: Callable[..., Any] = metadata.entry_points

    def counted(*, group: str) -> Any:
        found.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(metadata, "entry_points", counted)
    return found


def install(folder: Path, name: str) -> None:
    information = folder / f"{name}-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (information / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = json:loads\n")


def names() -> list[str]:
    return sorted(point.name for point in extensions.points(GROUP))


def test_a_group_is_read_once_while_nothing_changes(tmp_path: Path, monkeypatch, reads):
    install(tmp_path, "first")
    monkeypatch.syspath_prepend(tmp_path)
    assert [names(), names(), names()] == [["first"]] * 3
    assert reads == [GROUP]


def test_what_is_installed_later_is_found(tmp_path: Path, monkeypatch, reads):
    monkeypatch.syspath_prepend(tmp_path)
    assert names() == []
    install(tmp_path, "first")
    assert names() == ["first"]
    other = tmp_path / "other"
    other.mkdir()
    install(other, "second")
    monkeypatch.syspath_prepend(other)
    assert names() == ["first", "second"]


def test_a_path_that_cannot_be_read_has_no_entry_points(monkeypatch, tmp_path: Path):
    monkeypatch.syspath_prepend(tmp_path / "missing")
    assert names() == []
