"""A program that supervises hung trials until it is interrupted. The tests of the supervisor start it, and kill it.

Arguments: the loader, the folder for the trials, and what it does when all of them hang: ``wait``, or ``close``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from badbatch.harness.faults import Hang
from badbatch.harness.plan import FaultPlan
from badbatch.harness.processes.supervisor import Supervisor
from badbatch.harness.trial.event_log import Kind
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec


def say(word: str) -> None:
    """Report the current step to the test."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main() -> None:
    """Start, hang, wait."""
    loader, folder, then = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    here = str(Path(__file__).parent)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    say("starting")
    with Supervisor(loader, here, scratch=scratch) as supervisor:
        plain = TrialSpec(loader, here, "hung", "map", Topology(workers=2), FaultPlan({5: Hang()}), deadline_s=100.0)
        ranks = TrialSpec(loader, here, "hung", "map", Topology(ranks=2), FaultPlan({5: Hang()}), deadline_s=100.0)
        daemons = TrialSpec(
            "rogue_loaders:leaves_daemons_and_stalls", here, "rogue", "map", Topology(), FaultPlan(), deadline_s=100.0
        )
        for number, spec in enumerate((plain, ranks, daemons)):
            supervisor.start(spec, folder / str(number))
        while not all(
            len(History.load(folder / str(number)).of(kind))
            for number, kind in enumerate((Kind.FAULT, Kind.FAULT, Kind.GOT))
        ):
            time.sleep(0.02)
        say("hung")
        while then == "wait":
            for _ in supervisor.finished(1.0):
                raise SystemExit("a trial ended that should hang")
    say("closed")


if __name__ == "__main__":
    main()
