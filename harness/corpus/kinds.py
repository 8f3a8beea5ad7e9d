"""The kinds of corpora, each a module of this package. Imports nothing."""

from __future__ import annotations

KINDS = ("imagefolder", "parquet", "windows", "webdataset", "jsonl")
