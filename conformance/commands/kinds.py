"""The kinds of names that ``badbatch list`` shows and ``badbatch explain`` explains. Imports nothing."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "checks": "promises that a loader must keep",
    "scenarios": "faults, the samples that have them, and settings of the job",
    "faults": "what can go wrong when a sample is read or stored",
    "diagnoses": "likely causes of failures",
    "sources": "what a loader is offered",
    "formats": "files that a report is written to",
    "words": "words of the reports",
}
"""From the name of a kind to what its names mean."""
