"""The libraries that a loader is made of: the distributions that its module and the other modules of its project import."""

from __future__ import annotations

import ast
import collections
import functools
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_OWN = "badbatch"
_INSTALLED = ("site-packages", "dist-packages")
_MOST_MODULES = 200  # of one project: reading more takes too long


def library_versions(module: str, directory: str) -> dict[str, str]:
    """The name and version of each distribution that a loader's module imports, sorted by name.

    The imports are read from the source, so those inside functions count too. The imports of modules of the same project
    count as well: those of the same top-level package, and those below ``directory``; where the loader is part of an installed
    library, only those of the same package. The standard library and badbatch are left out, and so is what is not installed.

    Args:
        module: the name of the module, which is imported.
        directory: the folder that is importable, in addition to what is installed.
    """
    top = module.partition(".")[0]
    project = f"{top if _is_own(top, directory) else _package(module)}."
    libraries = {top}
    todo, seen = collections.deque([module]), set[str]()
    while todo and len(seen) < _MOST_MODULES:
        name = todo.popleft()
        path = None if name in seen else _source_of(name)
        seen.add(name)
        for found in () if path is None else _imports(path, name):
            root = found.partition(".")[0]
            libraries.add(root)
            if f"{found}.".startswith(project) or _is_own(root, directory):
                todo.append(found)
    found_versions: dict[str, str] = {}
    for root in libraries - {_OWN} - sys.stdlib_module_names:
        found_versions.update(_distributions_of(root, _is_own(root, directory)))
    return dict(sorted(found_versions.items(), key=lambda item: item[0].lower()))


def _distributions_of(root: str, own: bool) -> dict[str, str]:
    """The distributions that contain a module, with their versions: usually one, of the same name.

    Args:
        own: it is in the user's folder, so a distribution of the same name is another one, unless it was installed from a folder.
    """
    try:
        found = importlib.metadata.distribution(root)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {} if own else {name: importlib.metadata.version(name) for name in _installed().get(root, ())}
    return {} if own and found.read_text("direct_url.json") is None else {found.name: found.version}


@functools.cache
def _installed() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()  # takes long: it reads the metadata of everything that is installed


@functools.cache
def _is_own(root: str, directory: str) -> bool:
    """Whether a top-level module is in the folder from which the loader is imported, and not installed."""
    origin, folders = _where(root)
    paths = [Path(place) for place in (origin, *folders) if place]
    return any(path.is_relative_to(directory) and not set(_INSTALLED) & set(path.parts) for path in paths)


def _package(name: str) -> str:
    return name if _where(name)[1] else name.rpartition(".")[0] or name


def _source_of(name: str) -> Path | None:
    """The file of a module, if it is written in Python."""
    origin, _ = _where(name)
    return Path(origin) if origin and origin.endswith(".py") else None


def _where(name: str) -> tuple[str | None, list[str]]:
    """The file of a module, and the folders of a package; imports nothing."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None), list(getattr(module, "__path__", ()))
    if "." in name and name.rpartition(".")[0] not in sys.modules:  # looking for it would import the package
        return None, []
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None, []
    return (None, []) if spec is None else (spec.origin, list(spec.submodule_search_locations or ()))


def _imports(path: Path, name: str) -> Iterator[str]:
    """The modules that a file names in its imports; of ``from a import b`` both ``a`` and ``a.b``."""
    try:
        todo: list[ast.AST] = [ast.parse(path.read_bytes())]
    except (OSError, SyntaxError, ValueError):
        return
    parents = (name if path.name == "__init__.py" else name.rpartition(".")[0]).split(".")
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):  # not imported when the loader runs
            todo += node.orelse
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
        else:
            todo += ast.iter_child_nodes(node)
