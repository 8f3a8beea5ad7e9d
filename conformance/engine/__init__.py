"""Runs many trials: the suite, the state of each trial, calibration, artifacts and claims."""
