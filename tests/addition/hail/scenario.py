"""A scenario with that fault."""

from __future__ import annotations

from badbatch.conformance.scenarios.base import Scenario

from .fault import Hail

HAIL = Scenario("hail", "A station on a hill, in summer.", Hail(), "one")
