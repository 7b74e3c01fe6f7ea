"""JSON texts of fabrics: documents one after the other, errors with line and column, bounds."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.topology import hostlist
from hpc_sched.topology.readers import json_text

DOCUMENTS = st.lists(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
        max_leaves=8,
    ),
    min_size=1,
    max_size=4,
)


@given(DOCUMENTS, st.sampled_from([" ", "\n", "\r\n\t"]), st.sampled_from([None, 2]))
def test_documents_one_after_the_other_are_all_read(given, blank, indent):
    text = blank.join(json.dumps(one, indent=indent, ensure_ascii=False) for one in given)
    assert json_text.documents((text + blank).encode(), "a") == given


def test_a_byte_order_mark_is_no_part_of_the_text_and_objects_need_no_blank_between_them():
    assert json_text.documents(b'\xef\xbb\xbf{"a":1}{"b":[]}{}', "a") == [{"a": 1}, {"b": []}, {}]


def test_only_the_fields_of_a_structure_are_kept():
    class Named(msgspec.Struct):
        name: str

    found = json_text.documents_of(Named, b'{"name":"x","more":[[{}]]}{"name":"y"}', "a")
    assert found == [Named("x"), Named("y")]
    with pytest.raises(exceptions.TopologyError, match=r"^a: Expected `str`, got `int` - at"):
        json_text.documents_of(Named, b'{"name":1}', "a")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(b"", "a: expected JSON, found an empty text", id="nothing"),
        pytest.param(b" \n", "a: expected JSON, found an empty text", id="blanks alone"),
        pytest.param(
            b'{"a":\n [1,]}',
            "a:2:5: not JSON: JSON is malformed: trailing comma in array",
            id="line and column of a wrong character",
        ),
        pytest.param(
            b'{}\n{"a" 1}',
            "a:2:6: not JSON: JSON is malformed: expected ':'",
            id="the same in the second document",
        ),
        pytest.param(b"{}\n}", "a:2:1: not JSON: JSON is malformed: invalid character", id="rest"),
        pytest.param(
            b'[1,\n"b', "a:2:3: not JSON: Input data was truncated", id="a text without its end"
        ),
        pytest.param(b'["\xff"]', "a: expected UTF-8, found byte 0xff", id="no UTF-8"),
        pytest.param(b"9" * 5000, "a: Integer value out of range", id="a long number"),
        pytest.param(b"[" * 50_000, "a: nested too deeply", id="more brackets than the stack"),
        pytest.param(
            b"[" * 65 + b"]" * 65,
            "a: expected lists and objects nested at most 64 deep, found deeper ones",
            id="more brackets than the limit",
        ),
    ],
)
def test_an_error_names_the_place_and_what_was_expected(text: bytes, error: str):
    with pytest.raises(exceptions.TopologyError) as caught:
        json_text.documents(text, "a")
    assert str(caught.value) == error


def test_as_many_brackets_as_the_limit_are_read():
    assert json_text.documents(b"[" * 64 + b"]" * 64, "a")


def test_values_and_documents_are_limited(monkeypatch):
    monkeypatch.setattr(json_text, "MAX_VALUES", 3)
    with pytest.raises(exceptions.TopologyError, match=r"^a: expected at most 3 JSON values"):
        json_text.documents(b"[1,2,3]", "a")
    monkeypatch.setattr(hostlist, "MAX_NAMES", 2)
    with pytest.raises(exceptions.TopologyError, match=r"^a: expected at most 2 JSON documents"):
        json_text.documents(b"1 2 3", "a")
