"""One trial: what it is, how its loader is consumed, and the record of what happened."""
