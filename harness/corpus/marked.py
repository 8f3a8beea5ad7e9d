"""The format of marked files: a good picture after a mark that names an effect on the decoder.

A marked file is :data:`MAGIC`, the name of the effect, a newline, and the undamaged picture's bytes.
:mod:`badbatch.harness.instrumentation.decoder` produces the effect on decoding.
"""

from __future__ import annotations

MAGIC = b"\x89badbatch\r\n\x1a\n"
_LONGEST_NAME = 40


def marked(effect: str, picture: bytes) -> bytes:
    """The marked file in place of a picture.

    Args:
        effect: a key of :data:`badbatch.harness.instrumentation.decoder.EFFECTS`.
    """
    return MAGIC + effect.encode("ascii") + b"\n" + picture


def effect_of(data: bytes) -> str | None:
    """The effect that a file names; None: it is not marked."""
    if not data.startswith(MAGIC):
        return None
    return data[len(MAGIC) : len(MAGIC) + _LONGEST_NAME].partition(b"\n")[0].decode("ascii", "replace")


def picture_in(data: bytes) -> bytes:
    """The undamaged picture in a marked file."""
    return data[len(MAGIC) + len(effect_of(data) or "") + 1 :]
