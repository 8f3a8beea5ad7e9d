"""What another package may add, one module each: a fault, a scenario, a check, a diagnosis and a loader."""
