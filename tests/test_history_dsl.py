"""A story has the same records as a real consumer of a loader that performs the story."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import history_dsl
import pytest
import trials
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import TrialSpec
from history_dsl import history_of
from stories import NOT_ACTED, STORIES

LOADER = "tests.rogues.acting:act"
_WORDS_OF_OUR_OWN = (Kind.UNREADABLE, Kind.WAITED)  # their texts come from the harness or from gloo, and no story contains them
_TEXT_IN = {
    Kind.RAISED: "aux", Kind.READ_DONE: "aux", Kind.SKIPPED: "aux", Kind.LEFTOVER: "aux", Kind.KEPT: "aux",
    Kind.UNREADABLE: "aux", Kind.WAITED: "sample",
}


def told(number: int) -> History:
    """The history that the story describes."""
    story, settings = STORIES[number]
    return history_of(story, **settings)


def asked(number: int) -> TrialSpec:
    """The trial in which the story is acted."""
    return dataclasses.replace(told(number).spec, loader=LOADER, directory=str(trials.ROOT), seed=number)


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> dict[int, History]:
    """The recorded history of each story; those that wait longest come first."""
    order = sorted(range(len(STORIES)), key=lambda number: not re.search("stalled|deadline|left|waited", STORIES[number][0]))
    judged = trials.put([asked(number) for number in order], tmp_path_factory.mktemp("acted"))
    return {spec.seed: found.history for spec, found in judged.items()}


def lines(history: History) -> list[dict[str, Any]]:
    """The events without times, pids and threads, with texts in place of their numbers."""
    found = []
    for event in history.events:
        kind = Kind(int(event["kind"]))
        if kind is Kind.DELAY:  # how long a thread waited for a processor: a story has no processors
            continue
        line: dict[str, Any] = {"kind": kind.name}
        line |= {name: int(event[name]) for name in ("sample", "aux", "worker", "phase", "epoch", "flags", "rank", "actor")}
        if kind is Kind.READ:
            line["aux"] = 0  # the number of the thread, which is as arbitrary as that of the process
        if kind in _TEXT_IN and event[_TEXT_IN[kind]]:
            text = history.texts[int(event["pid"]), int(event[_TEXT_IN[kind]])]
            line[_TEXT_IN[kind]] = "" if kind in _WORDS_OF_OUR_OWN else (text["type"], text.get("bases"), text["message"])
        found.append(line)
    return found


def processes(history: History) -> int:
    """How many processes recorded something."""
    return len(set(history.events["pid"].tolist()))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", range(len(STORIES)), ids=lambda number: STORIES[number][0].replace(" ", "_"))
def test_a_story_is_what_a_consumer_records(number: int, acted: dict[int, History]) -> None:
    """Event for event, text for text, and in how the trial ended; but for times, pids and threads."""
    by_story, by_consumer = told(number), acted[number]
    assert lines(by_consumer) == lines(by_story), by_consumer.output
    assert (by_consumer.ended.cut, by_consumer.ended.ranks) == (by_story.ended.cut, by_story.ended.ranks)
    assert processes(by_consumer) == processes(by_story)


def test_every_word_of_the_language_is_acted_or_cannot_be() -> None:
    """The words in the language's docstring occur in a story here, or are listed with a reason among those that cannot."""
    listed = {word for row in re.findall(r"^(``.*?)  ", history_dsl.__doc__ or "", re.MULTILINE) for word in re.findall("``(.+?)``", row)}
    kinds = {re.sub(r"[\d,?:-].*|@.*", "", word) for word in listed} - {""}
    spoken = {re.sub(r"[\d,?:-].*|@.*", "", re.sub(r"^(r\d)?\.?(w\d)?:", "", word)) for story, _ in STORIES for word in story.split()}
    assert {"raise", "end", "epoch", "left", "fault"} <= kinds
    assert kinds - spoken == set(NOT_ACTED) & kinds
