"""What users report of groups that move, come back and change: histories to read."""

import pytest

HISTORIES = {
    "two groups of one VM on dead hosts, and room for one under the tightest leaf": """
        fabric one a=1,1 b=1 c=1,1
        group w soft-affinity require=leaf
        group x soft-affinity require=leaf
        placed w1=a1
        placed x2=a2
        down a1 forced
        down a2 forced
        together 1: evacuate w1; evacuate x2
    """,
    "the same on islands without a constraint": """
        fabric islands a=1,1 c=1 d=1,1
        group w soft-affinity
        group x soft-affinity
        placed w1=a1
        placed x2=a2
        down a1 dead
        down a2 dead
        together 1: evacuate w1; evacuate x2
    """,
    "a dead leaf with two groups of two": """
        fabric one a=2,2 b=1,1 c=1,1
        group w soft-affinity require=leaf
        group x soft-affinity require=leaf
        placed w1=a1,w2=a2
        placed x3=a1,x4=a2
        down a1 forced
        down a2 forced
        together 2: evacuate w1; evacuate x3; evacuate w2; evacuate x4
    """,
    "a group that is shelved whole comes back VM by VM": """
        fabric one a=1 b=1,1
        group w soft-affinity require=leaf group_size=2
        placed w1=b1,w2=b2
        shelve w1
        shelve w2
        unshelve w1
        unshelve w2
    """,
    "all VMs are deleted, to be reclaimed later, and created anew": """
        fabric one a=1,1,1 b=1,1,1
        group w soft-affinity require=leaf
        placed w1=a1,w2=a2,w3=a3
        soft_delete w1
        soft_delete w2
        soft_delete w3
        create w4,w5,w6
    """,
    "the server group is deleted while its VMs live": """
        fabric one a=2,1 b=2
        group w soft-affinity require=leaf
        placed w1=a1,w2=a1
        ungroup w
        migrate w1
    """,
    "where the final size fits is known anew once another VM has come": """
        fabric islands b=2,2 c=0,0,1 d=2,2
        group w soft-affinity max_leaves=2 group_size=3
        group x soft-affinity require=leaf
        placed x1=b1,x2=b2
        create w3
        shelve x2
        shelve w3
        together 447: unshelve x2; unshelve w3
    """,
    "a host dies once a VM has come there": """
        fabric one c=1,1 d=1,2
        group w soft-anti-affinity require=leaf
        placed w1=d2
        create w2
        down d1 dead
        together 163: evacuate w2; down d2 dead; evacuate w1
    """,
    "hosts of a leaf die one after the other": """
        fabric one a=1,1 b=1,1 c=1
        group w soft-affinity require=leaf
        placed w1=a1,w2=a2
        down a1 forced
        together 3: evacuate w1; time 10; down a2 forced; time 10; evacuate w2
    """,
}


def commands_in(text: str) -> list[str]:
    """Return the commands of a history."""
    return [line.strip() for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize("history", HISTORIES)
def test_it_is_as_it_must_be(histories, history):
    failure = histories.replayed(commands_in(HISTORIES[history]))
    assert failure is None, str(failure)


def test_a_hold_that_lasts_is_not_written_again(histories):
    history = """
        fabric one a=2,2 c=2,2
        group w soft-affinity require=leaf
        placed w1=a1,w2=a1,w3=a2,w4=a2
        down a1 forced
        down a2 forced
        evacuate w1
        time 60
        evacuate w2
        time 60
        evacuate w3
    """
    lines = histories.lines_of(commands_in(history))
    sent = [line.partition(": POST ")[2].removesuffix(" 204").split(", ") for line in lines]
    written = [sorted(one for one in some if one.startswith("hold of")) for some in sent]
    assert [some for some in written if some] == [
        ["hold of w1: c1 (moving)", "hold of w2: c1", "hold of w3: c2", "hold of w4: c2"],
        ["hold of w2: c1 (moving)"],
        # Less than three quarters of the time of w4's are left.
        ["hold of w3: c2 (moving)", "hold of w4: c2"],
    ]


def test_a_refusal_says_that_places_are_held_for_others(histories):
    """b2 is free, and held for w2, which follows w1."""
    lines = histories.lines_of(
        [
            "fabric one a=1,1,1 b=1,1",
            "group w soft-affinity require=leaf",
            "group x soft-affinity require=leaf",
            "placed w1=a1,w2=a2",
            "placed x3=a3",
            *(f"down a{number} forced" for number in (1, 2, 3)),
            "evacuate w1",
            "create x4",
        ]
    )
    assert lines[-1].endswith(
        "group of 1 needs one leaf: no room; places held for some minutes for VMs that follow "
        "others of their group, try again in some minutes"
    )
