"""What badbatch costs, as ratios that are measured in one run: ``python -m benchmarks``."""
