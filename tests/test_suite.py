"""What the engine makes of its trials: whether a cell is clean, and one verdict of several runs."""

from __future__ import annotations

import dataclasses

import pytest
from badbatch.conformance.course import merge, not_clean
from badbatch.conformance.keeping import slug
from badbatch.conformance.suite import name_of
from badbatch.conformance.verdict import Mark, judge
from badbatch.harness.errors import UserError
from told import RAISES, told

DROPS = dataclasses.replace(RAISES, tail="drop")
PADS = dataclasses.replace(RAISES, tail="pad")


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ("0-3 4-7 8-11 end", ""),
        ("0-3 8-11 end", "loses samples"),
        ("0-3 4-7 4-7 8-11 end", "doubles samples"),
        ("0-3 4-7 ask stalled", "never ends"),
    ],
)
def test_what_spoils_a_cell(story: str, words: str) -> None:
    """Samples that are lost or doubled, or an epoch that never ends, spoil the faulted trials; nothing else does."""
    found = not_clean(told(story))
    assert words in found
    assert bool(words) == bool(found)


def test_what_the_contract_allows_spoils_nothing() -> None:
    """A remainder that is dropped or padded as promised is no reason to doubt the loader's other trials."""
    dropped = told("r0:0,2 r0:end r1:1,3 r1:end", samples=5, batch=2, ranks=2, contract=DROPS)
    padded = told("r0:0,2 r0:4 r0:end r1:1,3 r1:0 r1:end", samples=5, batch=2, ranks=2, contract=PADS)
    assert not_clean(dropped) == ""
    assert not_clean(padded) == ""


def test_the_worst_of_several_runs_stands_with_its_rate() -> None:
    """A verdict that is not the same each time is the worst of them, and says how often it failed."""
    good, bad = judge(told("0-3 4-7 8-11 end")), judge(told("0-3 8-11 end"))
    [lost] = [verdict for verdict in merge([good, bad, good]) if verdict.check == "no-lost-batches"]
    [content] = [verdict for verdict in merge([good, bad, good]) if verdict.check == "content-intact"]
    assert (lost.mark, lost.steady) == (Mark.FAIL, (1, 3))
    assert (content.mark, content.steady) == (Mark.PASS, None)


def test_names_of_folders_are_short_and_of_loaders_importable() -> None:
    """A trial's id becomes a path; a factory without a name of its own is refused."""
    assert slug("one-bad[workers=2,ranks=2,source=stream]") == "one-bad-w2-r2-stream"
    assert name_of(dataclasses.replace) == "dataclasses:replace"
    with pytest.raises(UserError, match="cannot be imported by a name"):
        name_of(lambda job: [])
