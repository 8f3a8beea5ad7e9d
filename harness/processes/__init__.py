"""Owns the processes of a trial: the supervisor, the zygote, the trial supervisor, the ranks, and what they leave behind."""
