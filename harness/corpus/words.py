"""Words for names and texts, from Faker. They are drawn once for a corpus, then combined, since Faker is slow."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ..errors import UserError
from .draws import number

CLASSES = 10
_PROVIDERS = [f"faker.providers.{name}" for name in ("person", "lorem", "address", "company")]  # other providers only cost time
_LOCALES = ("de_DE", "el_GR", "fa_IR", "ja_JP", "ru_RU")


@dataclass(frozen=True)
class Vocabulary:
    """The words of a corpus, all drawn from its seed."""

    words: tuple[str, ...]
    """English, lower case, letters only; suitable for file names."""
    foreign: tuple[str, ...]
    """Words with letters beyond ASCII, of several scripts, without spaces or separators."""
    lines: tuple[str, ...]
    """Short English texts to be drawn into pictures."""
    classes: tuple[str, ...]
    """Folder names of the classes, all different."""


@functools.lru_cache(4)
def vocabulary(seed: int) -> Vocabulary:
    """The vocabulary of a seed. The first call takes about a fifth of a second.

    Raises:
        UserError: Faker is not installed.
    """
    try:
        from faker import Faker
    except ImportError as error:
        raise UserError("making a corpus needs Faker: pip install 'badbatch[corpus]'") from error
    english = Faker("en_US", _PROVIDERS, use_weighting=False)
    english.seed_instance(seed)
    words = tuple(
        dict.fromkeys(word for word in (english.word() for _ in range(600)) if re.fullmatch("[a-z]{3,12}", word))
    )
    lines = tuple(
        make() for _ in range(40) for make in (english.city, english.name, english.company, lambda: english.sentence(4))
    )
    foreign: list[str] = []
    for locale in _LOCALES:
        faker = Faker(locale, _PROVIDERS[:1], use_weighting=False)
        faker.seed_instance(seed)
        found = (word for name in (faker.name() for _ in range(60)) for word in name.split())
        foreign += [word for word in dict.fromkeys(found) if not word.isascii() and word.isalpha()][:40]
    first = number(seed, 0, "classes")
    classes = sorted({words[(first + 7 * i) % len(words)] for i in range(CLASSES)})
    return Vocabulary(words, tuple(foreign), lines, tuple(classes))


def file_stem(seed: int, sample: int, words: Vocabulary) -> str:
    """A file name without its extension, like those of cameras, phones and people; the id in it makes it unique."""
    draw = number(seed, sample, "name")
    style, draw = draw % 4, draw // 4
    first, draw = words.words[draw % len(words.words)], draw // len(words.words)
    second, draw = words.words[draw % len(words.words)], draw // len(words.words)
    if style == 0:
        return f"IMG_20{draw % 25:02d}{draw // 25 % 12 + 1:02d}{draw // 300 % 28 + 1:02d}_{sample:07d}"
    if style == 1:
        return f"DSC{sample:08d}"
    return f"{first}-{second}-{sample}" if style == 2 else f"{first}_{second}_{sample:06d}"
