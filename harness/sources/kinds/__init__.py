"""One file a source, with an instance named ``SOURCE``: the file's name is the source's name."""
