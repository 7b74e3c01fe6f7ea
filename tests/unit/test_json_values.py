"""The values of a JSON text are counted as a parser would find them, however it is cut up."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.json_values import ValueCounter

TEXTS = st.text(st.sampled_from('a"\\[{,]}é\n'), max_size=6)
DOCUMENTS = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=20,
)


def values_in(document: Any) -> int:
    """Return the number of values, keys apart; an empty list or object counts twice."""
    if not isinstance(document, list | dict):
        return 1
    items = document.values() if isinstance(document, dict) else document
    return 1 + (sum(map(values_in, items)) or 1)


@given(DOCUMENTS, st.integers(1, 7), st.booleans())
def test_commas_and_brackets_in_strings_do_not_count(document: Any, size: int, is_ascii: bool):
    text = json.dumps(document, ensure_ascii=is_ascii).encode()
    count = ValueCounter("a", 10**9)
    for start in range(0, len(text), size):
        count.add(text[start : start + size])
    assert values_in(document) // 2 <= count.found <= values_in(document)


def test_a_text_at_the_limit_passes_and_one_above_is_named():
    ValueCounter("a", 4).add(b"[1,2,3]")
    with pytest.raises(exceptions.SnapshotError, match=r"^a: expected at most 3 JSON values"):
        ValueCounter("a", 3).add(b"[1,2,3]")


def test_a_string_that_does_not_end_hides_nothing_of_the_next_text():
    count = ValueCounter("a", 10)
    count.add(b'["\\')
    count.end()
    count.add(b"[[")
    assert count.found == 4
