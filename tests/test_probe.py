"""The probe: which loaders are refused, with which words, and what is inferred of the others."""

from __future__ import annotations

import pytest
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options
from badbatch.harness.errors import LoaderError
from trials import ROOT


def refused(name: str) -> str:
    """The line with which a loader is refused."""
    with Suite(f"tests.rogues.undeclared:{name}", Options(workers=(0,), ranks=(1,)), ROOT) as suite:
        suite.start()
        with pytest.raises(LoaderError) as caught:
            suite.prepare()
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("name", ["of_files", "lazily"])
def test_a_loader_of_files_without_sources_is_told_to_declare_them(name: str) -> None:
    """The line says that job.root is None with this source, and what to declare."""
    line = refused(name)
    assert "NoneType" in line
    assert "job.root is None with source 'map'" in line
    assert '@loader(sources=("imagefolder",))' in line


def test_a_loader_of_a_data_set_that_declares_files_is_told_so() -> None:
    """The same the other way round."""
    line = refused("of_a_dataset")
    assert "job.dataset is None with source 'jsonl'" in line
    assert '@loader(sources=("map",))' in line


def test_a_class_that_takes_a_folder_is_told_that_it_gets_a_job() -> None:
    """A class whose only parameter is not called dataset is called with the job."""
    assert "it is called with one argument, the job: its files are in job.root" in refused("OfRoot")
