"""``@loader(formats=…)``: what is required for pictures in formats that a loader does not accept, and without a declaration."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.judging.expectation import Owed, expect
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.contract.job import Contract, declared, loader
from badbatch.harness.corpus.damage.oddities.gif_format import Gif
from badbatch.harness.corpus.damage.oddities.one_pixel import OnePixel
from badbatch.harness.corpus.damage.oddities.tiff_format import Tiff
from badbatch.harness.corpus.stored import Stored
from badbatch.harness.errors import UserError
from history_dsl import RAISES, broken, diagnosed, history_of

FILES = tuple((f"a/{sample}.{ {3: 'gif', 5: 'TIF', 7: 'JPG'}.get(sample, 'jpg') }", sample, 1) for sample in range(12))
ODD = {3: Gif(), 5: Tiff()}
STORED = Stored("{}", ((3, "odd"), (5, "odd")), FILES, nameless=())
JPEG = dataclasses.replace(RAISES, formats=("jpg",))
NOT_LISTED = "0,1,2,4 6,7,8,9 10,11 end"


def story(told: str, contract: Contract = RAISES, **settings: Any) -> Any:
    """A trial over twelve files, of which one is a GIF, one a TIFF, and one a JPEG with an ending in upper case."""
    return history_of(told, source="imagefolder", plan=ODD, stored=STORED, contract=contract, scenario="oddities", **settings)


def test_formats_are_declared() -> None:
    """Extensions are accepted with or without their dot, one or several; they can be written as JSON and read back."""
    for value in (".jpg", ("jpg",), ["JPG"]):
        assert declared(loader(formats=value)(lambda job: None)).formats == ("jpg",)
    contract = Contract(formats=("jpg", "png"))
    assert Contract.from_json(contract.to_json()) == contract


@pytest.mark.parametrize(
    ("value", "said"),
    [(("jpg", "pgn"), "did you mean 'png'"), (("png",), "must name 'jpg'"), ((), "is empty"), (5, "unknown ending")],
)
def test_wrong_formats_are_refused(value: Any, said: str) -> None:
    """A misspelt ending would leave nothing to test."""
    with pytest.raises(UserError, match=said):
        loader(formats=value)


def test_nothing_is_required_for_other_formats() -> None:
    """They may be missing, arrive, be reported or be raised; an ending in upper case, or of the same format, is taken."""
    owed = expect(story("0-3 end").spec, JPEG).owed
    assert np.flatnonzero(owed == Owed.OPTIONAL).tolist() == [3, 5]
    both = dataclasses.replace(JPEG, formats=("jpeg", "tiff"))
    assert np.flatnonzero(expect(story("0-3 end").spec, both).owed == Owed.OPTIONAL).tolist() == [3]
    skips = dataclasses.replace(JPEG, on_damage="skip", batches="short")
    for contract, told in (
        (JPEG, NOT_LISTED), (JPEG, "0-3 4-7 8-11 end"), (JPEG, "raise 4-7 8-11 end"), (skips, NOT_LISTED),
        (skips, "0,1,2 skip3 4,6,7 skip5 8-11 end"), (skips, "0-2 4-7 skip3 8-11 end"),
    ):  # fmt: skip
        failed = [verdict.check for verdict in judge(story(told, contract)) if verdict.mark is Mark.FAIL]
        assert failed == [], (told, contract)
    assert broken("no-lost-batches", story("0,1,2,4 6,8,9,10 11 end", JPEG))[0].lost == (7,)


def test_a_trial_with_only_other_formats_is_not_applicable() -> None:
    """Where all that is odd or damaged has such a format, the reason is given."""
    (reason,) = {(verdict.mark, verdict.reason) for verdict in judge(story(NOT_LISTED, JPEG)) if verdict.check == "oddities-kept"}
    assert reason[0] is Mark.NA
    assert reason[1].startswith("the loader declares formats=jpg: it accepts none of the files")


def test_a_loader_that_lists_few_extensions_gets_that_diagnosis() -> None:
    """The cause is named, and no comparison with None is recommended for a picture."""
    history = story(NOT_LISTED)
    assert broken("oddities-kept", history)[0].lost == (3, 5)
    assert diagnosed("oddities-kept", history) == "unlisted-endings"
    assert diagnosed("oddities-kept", story("0,1,2,3 4,6,7,8 9,10,11 end")) == "unlisted-endings"
    plain = dataclasses.replace(STORED, files=tuple((f"a/{sample}.jpg", sample, 1) for sample in range(12)))
    other = history_of(NOT_LISTED, source="imagefolder", plan=ODD, stored=plain, scenario="oddities")
    assert diagnosed("oddities-kept", other) is None


def test_the_padding_of_a_smaller_set_follows_from_it() -> None:
    """Eleven files on two ranks make one repetition: it is listed under the lost file.

    More repetitions are a separate failure.
    """
    (padded,) = [v for v in judge(story("r0:0-2 r0:4-6 r0:end r1:7-10 r1:11,0 r1:end", ranks=2)) if v.check == "no-duplicates"]
    assert (padded.mark, padded.cause) == (Mark.FAIL, "oddities-kept")
    (more,) = [v for v in judge(story("r0:0-2 r0:4-6 r0:end r1:7-10 r1:11,0,1 r1:end", ranks=2)) if v.check == "no-duplicates"]
    assert (more.mark, more.cause) == (Mark.FAIL, "")


def test_which_of_several_nameless_pictures_is_missing_is_not_guessed() -> None:
    """One of two pictures without a mark arrived: the report says how many are missing, and which ones they may be."""
    stored = Stored("{}", ((3, "odd"), (5, "odd"), (8, "odd")), FILES, nameless=(3, 5))
    plan = {3: OnePixel(), 5: OnePixel(), 8: Gif()}
    told = "0,1,2,. 4,6,7,9 10,11 end"
    (violation,) = broken("oddities-kept", history_of(told, source="imagefolder", plan=plan, stored=stored, scenario="oddities"))
    assert violation.happened == "2 odd samples did not: lost; 1 of them among 3, 5, of which 1 arrived without a path, a key or an id mark"
    assert violation.lost == (8,)
    assert violation.witnesses == (3, 5)
    both = history_of("0,1,2,. 4,.,6,7 8-11 end", source="imagefolder", plan=plan, stored=stored, scenario="oddities")
    assert broken("oddities-kept", both) == []
    (third,) = broken("content-intact", history_of("0,1,2,. 4,.,.,7 6,8-11 end", source="imagefolder", plan=plan, stored=stored))
    assert "1 picture arrived without a readable id" in third.happened


def test_pictures_that_nobody_can_read_are_no_proven_loss() -> None:
    """As many samples may be among them: only what is missing beyond that was lost for certain."""
    assert broken("no-lost-batches", story("0,1,2,~ 4,5,6,7 3,8,9,11 end")) == []
    (read,) = broken("content-intact", story("0,1,2,~ 4,5,6,7 3,8,9,11 end"))
    assert read.happened == "1 picture arrived without a readable id; they may be any of the samples that did not arrive: 10"
    assert broken("oddities-kept", story("0,1,2,~ 4,5,6,7 8-11 end")) == []
    (lost,) = broken("no-lost-batches", story("0,1,2,~ 4,5,6,7 3,8,9 end"))
    assert "at least 1 of the 2 never arrived" in lost.happened
