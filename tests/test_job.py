"""What a factory declares, and how a wrong declaration is reported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from badbatch.harness.contract.choices import PROMISES
from badbatch.harness.contract.job import Contract, declared, loader
from badbatch.harness.contract.source_names import SOURCES
from badbatch.harness.errors import UserError
from hypothesis import given
from hypothesis import strategies as st


def test_a_declaration_is_stored_on_the_factory() -> None:
    """The decorator returns the factory itself, with what was declared and nothing else."""

    def factory(job: Any) -> list[Any]:
        return [job]

    decorated = loader(on_damage="skip", batches="short", tail="pad", sources=("map", "stream"))(factory)
    assert decorated is factory
    assert [7] == decorated(7)
    assert Contract(on_damage="skip", batches="short", tail="pad", sources=("map", "stream")) == declared(decorated)


def test_what_is_not_declared_is_left_open() -> None:
    """Without a decorator, and by an empty one, everything is left to be inferred."""
    assert Contract() == declared(len)
    assert Contract() == declared(loader()(lambda job: job))
    assert declared(loader()(lambda job: job)).on_damage is None


def test_the_ids_function_travels_with_the_factory() -> None:
    """The function in ``ids=`` is kept for the reader of batches."""

    def ids(batch: Any) -> Any:
        return batch[1]

    factory = loader(ids=ids)(lambda job: job)
    assert factory.__badbatch_ids__ is ids  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"sources": "map"}, ("map",)),
        ({"sources": ["map", "stream"]}, ("map", "stream")),
        ({"workers": 0}, (0,)),
        ({"workers": range(3)}, (0, 1, 2)),
        ({"ranks": [1]}, (1,)),
    ],
)
def test_one_or_several_values_become_a_tuple(given: dict[str, Any], kept: tuple[Any, ...]) -> None:
    """A single source or number may be given without brackets."""
    contract = declared(loader(**given)(lambda job: job))
    assert kept == getattr(contract, next(iter(given)))


@pytest.mark.parametrize("name", ["on_damage", "sources", "workers"])
def test_none_leaves_a_promise_open(name: str) -> None:
    """To declare None is to declare nothing."""
    assert Contract() == declared(loader(**{name: None})(lambda job: job))


@pytest.mark.parametrize(
    ("promises", "says"),
    [
        ({"on_damge": "skip"}, "@loader knows no promise 'on_damge'; did you mean 'on_damage'?"),
        ({"colour": "red"}, "@loader knows no promise 'colour'; known are after_error, "),
        ({"inferred": ("tail",)}, "@loader knows no promise 'inferred'"),
        ({"on_damage": "ignore"}, "@loader(on_damage='ignore'): must be one of 'raise', 'skip', 'substitute', 'mark'"),
        ({"after_error": True}, "@loader(after_error=True): must be one of 'continue', 'stop'"),
        ({"batches": ["short"]}, "@loader(batches=['short']): must be one of 'short', 'full'"),
        ({"tail": ""}, "@loader(tail=''): must be one of 'exact', 'pad', 'drop'"),
        ({"timeout": "no"}, "@loader(timeout='no'): must be True or False"),
        ({"uneven_ranks": 1}, "@loader(uneven_ranks=1): must be True or False"),
        ({"sources": ()}, "@loader(sources=…) is empty: nothing would be left to test"),
        ({"sources": "maps"}, "@loader(sources=…): unknown source 'maps'; did you mean 'map'?"),
        ({"sources": ["map", 3]}, "@loader(sources=…): unknown source 3; known are map, imagefolder, "),
        ({"workers": 2.0}, "@loader(workers=(2.0,)): must be whole numbers from 0 on"),
        ({"workers": (0, -1)}, "@loader(workers=(0, -1)): must be whole numbers from 0 on"),
        ({"ranks": 0}, "@loader(ranks=(0,)): must be whole numbers from 1 on"),
        ({"ranks": True}, "@loader(ranks=(True,)): must be whole numbers from 1 on"),
        ({"workers": "2"}, "@loader(workers=('2',)): must be whole numbers from 0 on"),
        ({"ids": "id"}, "@loader(ids='id'): must be a function from a batch to its sample ids"),
    ],
)
def test_a_wrong_declaration_is_reported_in_one_line(promises: dict[str, Any], says: str) -> None:
    """The line names the promise, the value and what would do; it comes when the module is imported."""
    with pytest.raises(UserError) as caught:
        loader(**promises)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


@given(
    st.builds(
        Contract,
        on_damage=st.sampled_from([None, "raise", "skip", "substitute", "mark"]),
        after_error=st.sampled_from([None, "continue", "stop"]),
        batches=st.sampled_from([None, "short", "full"]),
        tail=st.sampled_from([None, "exact", "pad", "drop"]),
        sources=st.none() | st.lists(st.sampled_from(SOURCES), min_size=1).map(tuple),
        workers=st.none() | st.lists(st.integers(0, 64), min_size=1).map(tuple),
        ranks=st.none() | st.lists(st.integers(1, 64), min_size=1).map(tuple),
        timeout=st.booleans(),
        uneven_ranks=st.booleans(),
        inferred=st.lists(st.sampled_from(["on_damage", "tail"])).map(tuple),
    )
)
def test_a_contract_survives_json(contract: Contract) -> None:
    """What is stored with a trial is the same promise when it is read again."""
    assert contract == Contract.from_json(json.loads(json.dumps(contract.to_json())))


def test_promises_may_differ_by_source() -> None:
    """What by_source declares for a source has priority over what is declared for all; the rest stays."""
    factory = loader(on_damage="raise", tail="pad", by_source={"stream": {"tail": "exact", "uneven_ranks": True}})(lambda job: job)
    assert Contract(on_damage="raise", tail="pad") == declared(factory)
    assert Contract(on_damage="raise", tail="pad") == declared(factory, "map")
    assert Contract(on_damage="raise", tail="exact", uneven_ranks=True) == declared(factory, "stream")


@pytest.mark.parametrize(
    ("by_source", "words"),
    [
        ({"strem": {"tail": "exact"}}, "did you mean 'stream'"),
        ({"stream": {"tial": "exact"}}, "did you mean 'tail'"),
        ({"stream": {"tail": "none"}}, "must be one of 'exact', 'pad', 'drop', 'pad-batch'"),
        ({"stream": {"sources": ("map",)}}, "sources are declared once"),
    ],
)
def test_promises_by_source_are_checked(by_source: Any, words: str) -> None:
    """An unknown source or promise is refused like any other."""
    with pytest.raises(UserError, match=words):
        loader(by_source=by_source)


@pytest.mark.parametrize("promise", PROMISES)
def test_choices_are_documented(promise: str) -> None:
    """Each page that lists the words of a promise lists all of them, in their order."""
    docs = Path(__file__).resolve().parents[1] / "docs"
    words = PROMISES[promise]
    example = re.search(rf"^    {promise}=\"[a-z-]+\", +# (.*)$", (docs / "loaders.md").read_text("utf-8"), re.MULTILINE)
    assert example is not None and example[1].startswith(" | ".join(words))
    (row,) = (line for line in (docs / "report-schema.md").read_text("utf-8").splitlines() if line.startswith(f"| `{promise}` |"))
    assert re.findall(r"`([a-z-]+)`", row.split("|")[2]) == list(words)
