"""One file for each source, with an instance named ``SOURCE``: the file's name is the source's name."""
