"""From a history to verdicts: expectation, ledger, probe, verdict. Pure functions."""
