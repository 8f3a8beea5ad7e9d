"""The loaders of docs/loaders.md for each kind of corpus run as they are, and keep their promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options

pytest.importorskip("PIL")
pytest.importorskip("faker")

PAGE = (Path(__file__).parents[1] / "docs" / "loaders.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- format: (\w+), .*?-->\n```python\n(.*?)```", PAGE, re.DOTALL))
FACTORIES = {"jsonl": "lines", "parquet": "tables", "windows": "windows", "webdataset": "shards"}
SCENARIOS = ("clean", "oddities", "one-bad", "damage-cut", "lost-shard")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the blocks of the page as one module."""
    pytest.importorskip("pyarrow")
    home = tmp_path_factory.mktemp("formats")
    (home / "formats_of_the_page.py").write_text("\n".join(BLOCKS.values()), encoding="utf-8")
    return home


def put(folder: Path, name: str, *scenarios: str) -> object:
    """The suite over one of the page's loaders, on one rank and on two."""
    options = Options(workers=(0,), scenarios=scenarios)
    with Suite(f"formats_of_the_page:{name}", options, str(folder)) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


def test_every_kind_has_its_block() -> None:
    """The page has a loader for each kind of corpus but pictures, and names the scenarios in which it is run here."""
    assert list(BLOCKS) == ["shared", *FACTORIES]
    for scenario in SCENARIOS:
        assert f"`{scenario}`" in PAGE
    assert "torch" not in "".join(BLOCKS.values())  # as the page says


@pytest.mark.parametrize("kind", FACTORIES)
def test_the_loaders_of_the_page_keep_their_promises(kind: str, folder: Path) -> None:
    """Each passes every check in the scenarios that the page names."""
    report = put(folder, FACTORIES[kind], *SCENARIOS)
    assert report.ok, report  # type: ignore[attr-defined]
    assert report.summary["pass"] > 30  # type: ignore[attr-defined]


def test_what_the_page_says_of_headers(folder: Path) -> None:
    """Samples after a damaged header of a shard are lost silently, as the page says."""
    report = put(folder, "shards", "damage-header")
    assert "no-lost-batches" in {verdict.check for verdict in report.verdicts if verdict.mark.value == "fail"}  # type: ignore[attr-defined]
