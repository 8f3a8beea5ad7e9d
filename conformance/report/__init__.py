"""Reports: they read verdicts and return text. They decide nothing."""
