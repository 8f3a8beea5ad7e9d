"""Reports: they read verdicts and return text, and decide nothing."""
