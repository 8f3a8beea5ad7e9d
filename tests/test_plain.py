"""Values go through JSON and back, and damaged data are refused in one line that says where."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from badbatch.conformance.judging.observed import Observed
from badbatch.conformance.judging.verdict import Diagnosis, Mark, Verdict
from badbatch.conformance.judging.verdict import Entry as VerdictEntry
from badbatch.conformance.report.observations import Fact
from badbatch.conformance.report.result import Entry as TrialEntry
from badbatch.conformance.report.result import TrialResult
from badbatch.conformance.report.run import Run
from badbatch.harness.contract.choices import PROMISES
from badbatch.harness.contract.job import Contract
from badbatch.harness.corpus.base import FileRecord, Recipe, SampleRecord
from badbatch.harness.corpus.stored import Stored
from badbatch.harness.errors import UserError
from badbatch.harness.plain import Plain, from_plain, to_plain
from badbatch.harness.trial.history import Ended
from badbatch.harness.trial.phases import Topology
from hypothesis import given
from hypothesis import strategies as st

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
TYPES: list[type[Any]] = [
    Contract, Topology, Stored, Recipe, SampleRecord, FileRecord, Ended, Observed, Run, Fact, Diagnosis, VerdictEntry, TrialEntry,
]  # fmt: skip


def through_json(data: Any) -> Any:
    """What a file gives back."""
    return json.loads(json.dumps(data))


def values(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Values of a type, by its fields."""
    free = {"fault", "oddity", "extra"} & set(cls.__dataclass_fields__)
    choice = {"faults", "odd_faults"} & set(cls.__dataclass_fields__) if cls is Recipe else set()
    return st.builds(
        cls,
        **dict.fromkeys(free, st.dictionaries(st.text(max_size=3), PLAIN, max_size=2)),
        **dict.fromkeys(choice, st.just(())),
        **({"evidence": st.just(({"pid": 3, "waits_in": None},))} if cls is Ended else {}),
    )


@pytest.mark.parametrize("cls", TYPES)
@given(data=st.data())
def test_values_go_through_json(cls: type[Any], data: st.DataObject) -> None:
    """What is written is read back as the same value, for every value of every type."""
    value = data.draw(values(cls))
    assert from_plain(cls, through_json(to_plain(value))) == value
    if issubclass(cls, Plain):
        assert cls.from_json(through_json(value.to_json())) == value


@given(entry=values(VerdictEntry))
def test_verdicts_go_through_json(entry: VerdictEntry) -> None:
    """So do verdicts and results of trials, whose entries in the report have other fields than they."""
    verdict = Verdict.of("mine:make", entry)
    assert Verdict.from_json("mine:make", through_json(verdict.to_json())) == verdict


@given(entry=values(TrialEntry))
def test_results_go_through_json(entry: TrialEntry) -> None:
    """The result of a trial is the same, apart from seconds that are rounded."""
    result = TrialResult.of("mine:make", entry)
    again = TrialResult.from_json("mine:make", through_json(result.to_json()))
    assert again.to_json() == result.to_json()
    assert again.place == result.place


VERDICT = Verdict("mine:make", "one-bad", "map", Topology(2), "no-lost-batches", Mark.FAIL, lost=(1,)).to_json()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"verdict": "maybe"}, "Invalid enum value 'maybe' at `verdict`"),
        ({"lost": [1, "2"]}, "Expected `int`, got `str` at `lost[1]`"),
        ({"topology": {"workers": "2"}}, "Expected `int`, got `str` at `topology.workers`"),
        ({"files": {"one": "a.jpg"}}, "Expected `int`, got `str` at `key` in `files`"),
        ({"promise": ""}, "unknown field 'promise'; did you mean 'promised'?"),
    ],
)
def test_damaged_data_are_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    """The line says what is expected, what is there instead, and where."""
    with pytest.raises(UserError) as refused:
        Verdict.from_json("mine:make", {**VERDICT, **change})
    assert str(refused.value) == said


def test_what_is_missing_is_named() -> None:
    """A field without a default must be there."""
    with pytest.raises(UserError, match="Object missing required field `check`"):
        Verdict.from_json("mine:make", {name: value for name, value in VERDICT.items() if name != "check"})


@pytest.mark.parametrize(("promise", "words"), PROMISES.items())
def test_contracts_hold_known_words(promise: str, words: tuple[str, ...]) -> None:
    """A stored contract has no other words than a declared one."""
    for word in words:
        assert getattr(Contract.from_json({promise: word}), promise) == word
    with pytest.raises(UserError, match=f"at `{promise}`"):
        Contract.from_json({promise: "often"})


def test_the_library_is_imported_where_it_is_used() -> None:
    """A factory's module that declares a contract, and the command's help, do not import it."""
    code = "import sys, badbatch.harness.contract.job, badbatch.conformance.commands.cli; print('msgspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
