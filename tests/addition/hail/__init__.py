"""What another package may add, one module each: a fault, a scenario, a check and a loader."""
