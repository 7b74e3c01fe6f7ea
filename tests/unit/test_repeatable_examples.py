"""The examples of a property are the same in every run, whatever else the process has loaded."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBER = 8_642_097_531_246_809_753


def test_constants_of_modules_that_other_tests_load_are_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "loaded_by_another.py"
    path.write_text(f"NUMBER = {NUMBER}\n")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, path.stem, module)
    drawn = set()

    @settings(max_examples=1000, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        drawn.add(number)

    draw()
    assert len(drawn) > 100
    assert NUMBER not in drawn
