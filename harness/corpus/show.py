"""A contact sheet: each fault of a corpus with its picture as decoders show it, its truth, and its reason."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import tarfiles
from .base import CorpusKind, Recipe, SampleRecord
from .folders import Folder, folder
from .manifest import read_corpus, read_recipe, read_samples
from .oracles import WHOLE
from .recipe import kind_of

if TYPE_CHECKING:
    from PIL import Image

_THUMB = 128  # pixels, the longer side
_GREEN, _RED, _AMBER = "#2e7d32", "#c62828", "#b26a00"
COLOURS = {"good": _GREEN, "damaged": _RED, "missing": _RED, "hangs": _RED, "contested": _AMBER, "slow": _AMBER}


@dataclass(frozen=True)
class View:
    """One column of one row: what one reader shows."""

    title: str
    picture: Image.Image | None
    words: str = ""


@dataclass
class Row:
    """One fault (or oddity) in one state: an example, and how many there are."""

    name: str
    parameters: str
    odd: bool
    record: SampleRecord
    count: int = 1
    views: list[View] = field(default_factory=list)

    @property
    def why(self) -> str:
        """The reason of the state in words."""
        if self.record.why:
            return self.record.why
        return f"whole, says {' and '.join(self.record.said)}" if self.record.said else ""


def examples(where: Folder) -> list[Row]:
    """A row for each fault and oddity in each state it came to: the first such sample, without its views.

    Raises:
        UserError: there is no manifest, or a line of it cannot be read.
    """
    found: dict[tuple[bool, str, str], Row] = {}
    for record in read_samples(where):
        struck = record.fault or record.oddity
        if struck is None:
            continue
        key = (record.fault is None, struck["fault"], record.state.value)
        if key in found:
            found[key].count += 1
        else:
            parameters = ", ".join(f"{name}={value}" for name, value in struck.items() if name != "fault")
            found[key] = Row(struck["fault"], parameters, record.fault is None, record)
    return [row for _, row in sorted(found.items(), key=lambda item: item[0])]


def rows(address: str) -> tuple[dict[str, Any], list[Row]]:
    """What ``corpus.json`` says, and the :func:`examples` with what each reader shows of them.

    Raises:
        UserError: there is no corpus, or it was edited and cannot be read.
    """
    where = folder(address)
    recipe = read_recipe(where)
    kind = kind_of(recipe.kind)
    out = examples(where)
    for row in out:
        row.views = list(_views(where, kind, recipe, row.record))
    return read_corpus(where), out


def _views(where: Folder, kind: CorpusKind, recipe: Recipe, record: SampleRecord) -> Iterator[View]:
    if not kind.one_file_a_sample:
        picture = _member(where, record)
        if picture is not None:
            yield _view("as it lies in its shard", picture, strict=True)
        for reader, words in record.said.items():
            yield View(reader, None, words)
        return
    undamaged = kind.undamaged(recipe, record.id)
    yield _view("undamaged", undamaged, strict=True)
    _, data = where.look(record.path)
    if data is None:
        return
    yield _view("Pillow", data, strict=True)
    if record.said.get("pillow", "whole") != "whole":
        yield _view("Pillow, lenient", data, strict=False)
    if "opencv" in record.said:
        yield _opencv_view(data)


def _member(where: Folder, record: SampleRecord) -> bytes | None:
    """The picture among the sample's members in a tar shard, by the reader that gives up last."""
    _, data = where.look(record.path)
    if not record.members or data is None:
        return None
    given = tarfiles.READERS["tarfile-resync"](data, record.path.endswith(".gz"))
    keys = {tarfiles.split(member)[0] for member in record.members}
    pictures = [
        content
        for key, members in given.groups
        if key in keys
        for field, content in members
        if field in ("jpg", "png")
    ]
    return pictures[0] if pictures else None


def _view(title: str, data: bytes, strict: bool) -> View:
    from PIL import Image, ImageFile

    from .truth import refusal

    before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, not strict
    try:
        with Image.open(io.BytesIO(data)) as picture:
            return View(title, _thumb(picture), f"{picture.width} × {picture.height}")
    except Exception as error:  # noqa: BLE001 - the decoder's refusal is what is shown
        return View(title, None, refusal(error))
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def _opencv_view(data: bytes) -> View:
    from PIL import Image

    from .truth import refusal, with_opencv

    try:
        pixels = with_opencv(data)
    except ImportError:
        return View("OpenCV", None, "not installed here")
    except Exception as error:  # noqa: BLE001 - the decoder's refusal is what is shown
        return View("OpenCV", None, refusal(error))
    if pixels.ndim == 3:
        pixels = pixels[..., [2, 1, 0, 3][: pixels.shape[2]]].copy()
    picture = Image.fromarray(pixels)
    return View("OpenCV", _thumb(picture), f"{picture.width} × {picture.height}")


def _thumb(picture: Image.Image) -> Image.Image:
    from PIL import Image

    if picture.mode.startswith("I"):
        picture = picture.point(lambda level: level / 256).convert("L")
    scale = _THUMB / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture.convert("RGB").resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.NEAREST)


def png(address: str) -> bytes:
    """The sheet as a PNG picture."""
    from PIL import Image, ImageDraw, ImageFont

    corpus, found = rows(address)
    wide, high, text = 4 * (_THUMB + 12), _THUMB + 36, 430
    sheet = Image.new("RGB", (text + wide, 48 + high * max(1, len(found))), "white")
    pen = ImageDraw.Draw(sheet)
    font, bold = ImageFont.load_default(12), ImageFont.load_default(15)
    pen.text((10, 14), headline(address, corpus), fill="black", font=bold)
    for index, row in enumerate(found):
        top = 48 + index * high
        pen.line((0, top, sheet.width, top), fill="#dddddd")
        pen.text((10, top + 8), row.name, fill="black", font=bold)
        pen.text(
            (10, top + 30), f"{row.record.state.value} ({row.count})", fill=COLOURS[row.record.state.value], font=bold
        )
        for line, words in enumerate(_wrapped([row.parameters, row.why, row.record.path], 64)[:6]):
            pen.text((10, top + 54 + 16 * line), words, fill="#444444", font=font)
        for column, view in enumerate(row.views[:4]):
            left = text + column * (_THUMB + 12)
            pen.text((left, top + 6), view.title, fill="#444444", font=font)
            if view.picture is not None:
                sheet.paste(view.picture, (left, top + 24))
            else:
                for line, words in enumerate(_wrapped([view.words], 20)[:7]):
                    pen.text((left, top + 26 + 16 * line), words, fill=_GREEN if view.words == WHOLE else _RED, font=font)
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


def _wrapped(texts: list[str], width: int) -> list[str]:
    import textwrap

    # The built-in font knows Latin letters alone.
    return [
        line.encode("latin-1", "replace").decode("latin-1") for text in texts for line in textwrap.wrap(text, width)
    ]


def headline(address: str, corpus: dict[str, Any]) -> str:
    """Address, samples by state, and seed, in one line."""
    counts = corpus["counts"]
    states = ", ".join(f"{count} {state}" for state, count in counts["state"].items())
    return f"{address}: {counts['samples']} samples ({states}), seed {corpus['seed']}"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{ headline }}</title>
<style>
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
article { display: flex; gap: 1rem; flex-wrap: wrap; border-top: 1px solid #8885; padding: .8rem 0; }
.what { flex: 1 1 20rem; min-width: 16rem; } .what p { margin: .2rem 0; overflow-wrap: anywhere; }
.state { font-weight: 600; border-left: .5rem solid; padding-left: .4rem; }
figure { margin: 0; width: 8.2rem; } figcaption { font-size: .8rem; overflow-wrap: anywhere; }
img { max-width: 100%; display: block; border: 1px solid #8885; } code { font-size: .85rem; }
.had { border: 1px dashed #2e7d32; min-height: 5rem; padding: .3rem; font-size: .75rem; }
.refused { border: 1px dashed #c62828; min-height: 5rem; padding: .3rem; font-size: .75rem; overflow-wrap: anywhere; }
</style></head><body>
<h1>{{ headline }}</h1>
<p>Each fault in each state it came to, with one example. <em>Good</em> must be delivered, <em>damaged</em> must not;
<em>contested</em>: decoders disagree, or are content though content was lost.</p>
{% for title, part in parts if part %}
<h2>{{ title }}</h2>
{% for row in part %}
<article>
<div class="what">
<p><strong>{{ row.name }}</strong>{% if row.parameters %} <code>{{ row.parameters }}</code>{% endif %}</p>
<p class="state" style="border-color: {{ colours[row.record.state.value] }}">{{ row.record.state.value }} · {{ row.count }}</p>
{% if row.why %}<p>{{ row.why }}</p>{% endif %}
<p><code>{{ row.record.path }}</code></p>
</div>
{% for view in row.views %}
<figure><figcaption>{{ view.title }}</figcaption>
{% if view.picture %}<img src="data:image/png;base64,{{ view.picture | base64 }}" alt="{{ row.name }} as {{ view.title }} shows it">
{% else %}<div class="{{ "had" if view.words == "whole" else "refused" }}">{{ view.words }}</div>{% endif %}
</figure>
{% endfor %}
</article>
{% endfor %}
{% endfor %}
<details><summary>How it was made</summary><pre>{{ corpus }}</pre></details>
</body></html>
"""


def html(address: str) -> str:
    """The sheet as one HTML page that needs nothing else."""
    import jinja2

    corpus, found = rows(address)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["base64"] = _base64
    parts = [("Damage", [row for row in found if not row.odd]), ("Legal oddities", [row for row in found if row.odd])]
    return environment.from_string(_PAGE).render(
        headline=headline(address, corpus), parts=parts, colours=COLOURS, corpus=json.dumps(corpus, indent=1)
    )


def _base64(picture: Image.Image) -> str:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")
