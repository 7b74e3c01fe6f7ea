"""Folded host names, read and printed."""

import re

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.RangeSet import RangeSetException
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_sched.topology import hostlist
from hpc_sched.topology.fabric_order import natural_key

# Names as sites have them: a prefix, numbers padded or not, perhaps racks and a domain.
NAMES = st.builds(
    lambda prefix, rack, number, width, domain: f"{prefix}{rack}n{number:0{width}}{domain}",
    prefix=st.sampled_from(["cn", "gpu-", "r"]),
    rack=st.integers(0, 3),
    number=st.integers(0, 120),
    width=st.integers(1, 3),
    domain=st.sampled_from(["", "-ib", ".example.org"]),
)


@st.composite
def folded(draw: st.DrawFn) -> str:
    """Draw a folded text, such as ``cn[08-12,3]x[1-2],login1``."""
    parts = []
    for prefix in draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)):
        low = draw(st.integers(0, 50))
        high = low + draw(st.integers(0, 30))
        width = draw(st.sampled_from([1, 3]))
        tail = draw(st.sampled_from(["", "x[1-2]", "-ib"]))
        parts.append(f"{prefix}[{low:0{width}}-{high:0{width}}]{tail}" if width > 1 else prefix)
    return ",".join(parts)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("login", ["login"], id="a name without a range is itself"),
        pytest.param("0123", ["0123"], id="a number keeps its zeros"),
        pytest.param("n[1-3]", ["n1", "n2", "n3"], id="a range"),
        pytest.param("n[08-11]", ["n08", "n09", "n10", "n11"], id="a padded range"),
        pytest.param("n[9-10]", ["n9", "n10"], id="natural order, not that of letters"),
        pytest.param("n[5,1-2]", ["n1", "n2", "n5"], id="a list in a range, sorted"),
        pytest.param("n[2,01]", ["n01", "n2"], id="a list of numbers of several widths, sorted"),
        pytest.param("a[1,10][5,100]", ["a15", "a105", "a1100", "a10100"], id="two lists, sorted"),
        pytest.param("a[1,11][1,11]", ["a11", "a111", "a1111"], id="a name made twice is once"),
        pytest.param("n[1, 3]", ["n1", "n3"], id="a blank after a comma in a range"),
        pytest.param("n[1-10/3]", ["n1", "n4", "n7", "n10"], id="a range with a step"),
        pytest.param("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"], id="racks of nodes"),
        pytest.param("n[1-2].x.org", ["n1.x.org", "n2.x.org"], id="a domain behind the range"),
        pytest.param(" b, a ", ["a", "b"], id="blanks around names"),
        pytest.param("n1,n[1-2],n2", ["n1", "n2"], id="a name is listed once"),
        pytest.param("[1-3]", ["1", "2", "3"], id="a range without a prefix"),
        pytest.param("n1[9-10]", ["n19", "n110"], id="a digit in front of a range"),
        pytest.param("n[9-10]1", ["n91", "n101"], id="a digit behind a range"),
        pytest.param("[0-1][0-1]", ["00", "01", "10", "11"], id="two ranges together"),
        pytest.param("[00,1]", ["00", "1"], id="numbers padded differently, in natural order"),
    ],
)
def test_a_folded_text_stands_for_its_names(text: str, names: list[str]):
    assert hostlist.expand(text) == names


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", "an empty host name", id="nothing"),
        pytest.param(" \t", "an empty host name", id="blanks"),
        pytest.param("a b", "character ' ' in host name 'a b'", id="two words"),
        pytest.param("a,,b", "bad range in 'a,,b'", id="a comma too many"),
        pytest.param("a,", "bad range in 'a,'", id="a comma at the end"),
        pytest.param("@all", "character '@'", id="a node group, which may run a command"),
        pytest.param("n[1-9]!n3", "character '!'", id="a difference"),
        pytest.param("n[1-9]&n3", "character '&'", id="an intersection"),
        pytest.param("n[1-9]^n3", r"character '\^'", id="a symmetric difference"),
        pytest.param("n*", r"character '\*'", id="a wildcard"),
        pytest.param("n%d", "character '%'", id="a format"),
        pytest.param("n\x001", r"character '\\x00'", id="an invisible character"),
        pytest.param("n[3-1]", "bad range '3-1' .* ends before it begins", id="backwards"),
        pytest.param("n[]", "bad range '' in", id="an empty range"),
        pytest.param("n[1,,2]", "bad range '' in", id="a comma too many in a range"),
        pytest.param("n[a-c]", "bad range 'a-c' in .* expected numbers", id="letters"),
        pytest.param("n[-1-3]", "bad range '-1-3'", id="a negative number"),
        pytest.param("n[1-4/0]", "a step of 0", id="a step of 0"),
        pytest.param("n[01-010]", "bad range in", id="ends padded differently"),
        pytest.param("n[1-4", "bad range in", id="a range that is not closed"),
        pytest.param("n1-4]", "a bracket without its partner", id="a range that is not opened"),
        pytest.param("n[[1-2]]", "a bracket without its partner", id="a range in a range"),
        pytest.param("a" + "[" * 50_000 + "b", "bad range in", id="fifty thousand open brackets"),
    ],
)
def test_what_is_no_list_of_host_names_is_refused(text: str, error: str):
    with pytest.raises(ValueError, match=error):
        hostlist.expand(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("n[0-1000000]", id="one more than allowed"),
        pytest.param("n[1-99999999999999]", id="more than memory holds"),
        pytest.param("n[1-9]" + "[1-9]" * 20, id="many small ranges multiplied"),
        pytest.param("a[1-600000],b[1-600000]", id="two large ranges added"),
    ],
)
def test_a_huge_range_is_refused_before_it_is_unfolded(text: str):
    with pytest.raises(ValueError, match="host names; at most 1000000"):
        hostlist.expand(text)


def test_the_texts_of_one_expansion_have_one_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hostlist, "MAX_NAMES", 10)
    expansion = hostlist.Expansion()
    expansion.expand("a[1-6]")
    expansion.expand("a[1-4]")
    for text, number, total in (
        ("b", "1 host name", 11),
        ("b[1-5]", "5 host names", 15),
        ("b[1-5],c", "at least 2 host names", 12),
    ):
        with pytest.raises(hostlist.TooManyNamesError) as raised:
            expansion.expand(text)
        assert str(raised.value) == (
            f"{text!r} expands to {number}, together with those before {total}; at most 10"
        )


def test_a_range_of_names_longer_than_nova_stores_is_refused():
    assert len(hostlist.expand("a" * 254 + "[1-9]")) == 9
    with pytest.raises(ValueError, match="names of at most 255 characters, found 256 in 'aaa"):
        hostlist.expand("a" * 254 + "[1-10]")


def test_ranges_after_a_comma_are_added_and_not_multiplied():
    assert len(hostlist.expand("a[1-1000],b[1-1000],c[1-1000]")) == 3000


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param(["b", "a"], "a,b", id="names without numbers, sorted"),
        pytest.param(["n3", "n1", "n2", "n9"], "n[1-3,9]", id="a range and a single number"),
        pytest.param(["n08", "n09", "n10"], "n[08-10]", id="a padded range"),
        pytest.param(["r1n1", "r1n2", "r2n1", "r2n2"], "r[1-2]n[1-2]", id="racks of nodes"),
        pytest.param(["n1", "n1"], "n1", id="a name given twice"),
    ],
)
def test_names_are_printed_folded(names: list[str], text: str):
    assert hostlist.fold(names) == text


@given(st.lists(NAMES, min_size=1, max_size=30))
def test_unfolding_folded_names_gives_the_same_names(names: list[str]):
    again = hostlist.expand(hostlist.fold(names))
    assert sorted(again) == sorted(set(names))


@given(folded())
def test_folding_an_unfolded_text_stands_for_the_same_names(text: str):
    names = hostlist.expand(text)
    once = hostlist.fold(names)
    assert hostlist.expand(once) == names
    assert hostlist.fold(hostlist.expand(once)) == once


DIGITS = st.text("0129", min_size=1, max_size=2)
RANGES = st.builds("{}-{}{}".format, DIGITS, DIGITS, st.sampled_from(["", "/2"])) | DIGITS
BRACKETS = st.lists(RANGES, min_size=1, max_size=2).map(lambda parts: f"[{','.join(parts)}]")
# No digit is next to a bracket: NodeSet reads n1[9-10] as n[19-110], which are 92 names.
LITERALS = st.from_regex(r"[a_.-]([0-2]*[a_.-])?", fullmatch=True)


@settings(deadline=None)
@given(st.lists(BRACKETS, min_size=1, max_size=2), st.data())
def test_ranges_have_the_names_that_nodeset_gives_them(brackets: list[str], data: st.DataObject):
    edge = LITERALS | st.just("")
    text = data.draw(edge) + data.draw(LITERALS).join(brackets) + data.draw(edge)
    expansion = hostlist.Expansion()
    try:
        names = expansion.expand(text)
    except ValueError:
        with pytest.raises((NodeSetException, RangeSetException)):
            NodeSet(text, resolver=RESOLVER_NOGROUP)
    else:
        # Its order is another where widths differ: [00-00,1] is 1, 00.
        assert names == sorted(map(str, NodeSet(text, resolver=RESOLVER_NOGROUP)), key=natural_key)
        assert len(names) <= expansion.found


def test_parts_are_read_without_nodeset(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hostlist, "NodeSet", None)  # it takes 30 us a part
    assert hostlist.expand("n[3],r1n[09-10].x,[0-1]") == ["0", "1", "n3", "r1n09.x", "r1n10.x"]


@pytest.mark.parametrize(
    "text", ["[{}]", "n[1-{}]", "n[1,{}]", "n[1-2/{}]", "n[{}]x[1-2]", "n{}[1]", "n[1]{}"]
)
def test_a_number_that_python_does_not_read_is_refused_by_the_name_of_its_host(text: str):
    text = text.format("9" * 5001)
    with pytest.raises(ValueError, match=r"^expected n[a-z]+ of at most 255 [cd].* in '"):
        hostlist.expand(text)


@given(st.lists(NAMES, max_size=20), st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_change_what_is_printed(names: list[str], random):
    turned = list(names)
    random.shuffle(turned)
    assert hostlist.fold(turned) == hostlist.fold(names)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["a&b", "n1", "n2"], "n[1-2],a&b"),
        (["cluster[prod]"], "cluster[prod]"),
        (["domain-c7(Prod & Dev)", "x^y"], "domain-c7(Prod & Dev),x^y"),
        ([], ""),
    ],
    ids=[
        "an operator of NodeSet in a name",
        "brackets that are no range",
        "names that are nothing but odd",
        "no names",
    ],
)
def test_a_name_that_nodeset_would_misread_is_printed_unfolded(names, folded):
    assert hostlist.fold(names) == folded


def test_thousands_of_names_with_several_numbers_are_folded_and_unfolded_at_once():
    # NodeSet takes the square of their number: 3 s for 2,000 of them, 80 s for 10,000.
    names = {f"a{i * 7 % 100}b{i * 31 % 101}c{i * 17 % 103}" for i in range(10_000)}
    assert set(hostlist.expand(hostlist.fold(names))) == names


@given(st.lists(NAMES, min_size=1, max_size=40, unique=True))
def test_more_names_than_are_folded_together_stay_the_same(names: list[str]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostlist, "MANY", 4)
        assert sorted(hostlist.expand(hostlist.fold(names))) == sorted(names)


@given(st.lists(NAMES, min_size=1, max_size=40, unique=True))
def test_names_folded_by_their_endings_have_one_bracket_and_nothing_after_it(names: list[str]):
    text = hostlist.fold_endings(names)
    assert sorted(hostlist.expand(text)) == sorted(names)
    assert re.fullmatch(r"([\w.-]+|[\w.-]+\[[\d,-]+\])(,([\w.-]+|[\w.-]+\[[\d,-]+\]))*", text)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=5, unique=True))
def test_what_is_written_is_read_back_or_refused(names: list[str]):
    try:
        texts = hostlist.written(names)
    except ValueError:
        assert any(not alone(name) for name in names)
    else:
        assert sorted(name for text in texts for name in hostlist.expand(text)) == sorted(names)


def alone(name: str) -> bool:
    """True if a name is read as itself."""
    try:
        return hostlist.expand(name) == [name]
    except ValueError:
        return False
