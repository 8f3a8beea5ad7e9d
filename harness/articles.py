"""The indefinite article before the name of a class: ``a ValueError``, ``an OSError``."""

from __future__ import annotations

_SPELLED_WITH_A_VOWEL = "AEFHILMNORSX"  # letters whose own names begin with a vowel: an HTTPError
_SPOKEN_WITH_A_CONSONANT = ("uni", "use", "uti", "eu", "one")  # a UnicodeError, a UserError


def with_article(name: str) -> str:
    """A name with its article.

    >>> [with_article(name) for name in ("ValueError", "OSError", "UnicodeError", "ArrowInvalid", "SSLError", "int")]
    ['a ValueError', 'an OSError', 'a UnicodeError', 'an ArrowInvalid', 'an SSLError', 'an int']
    """
    spelled = name[:2].isupper() and len(name) > 1
    vowel = name[:1] in _SPELLED_WITH_A_VOWEL if spelled else name[:1].lower() in "aeiou"
    if not spelled and name.lower().startswith(_SPOKEN_WITH_A_CONSONANT):
        vowel = False
    return f"{'an' if vowel else 'a'} {name}"
