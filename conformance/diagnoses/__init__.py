"""One file a family of diagnoses. They are put in order in :mod:`..diagnosis`."""
