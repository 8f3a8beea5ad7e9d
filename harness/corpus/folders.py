"""The place of a corpus: a local folder, or any address that fsspec understands."""

from __future__ import annotations

import abc
import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..errors import UserError
from .base import MadeFile, Special


class Folder(abc.ABC):
    """A root folder; files below it are written and read by relative paths with ``/``."""

    local: bool
    address: str

    @abc.abstractmethod
    def write(self, made: MadeFile) -> None:
        """Write one generated file, or what replaces it, at its path."""

    @abc.abstractmethod
    def open(self, path: str, mode: str) -> IO[bytes]:
        """Open one of the corpus's own files (a manifest); ``mode`` is ``rb`` or ``wb``."""

    @abc.abstractmethod
    def holds(self, path: str) -> bool:
        """Whether there is a file at the path."""

    @abc.abstractmethod
    def look(self, path: str) -> tuple[Special | None, bytes | None]:
        """What is at the path, and the bytes of an ordinary readable file. Never blocks."""

    @abc.abstractmethod
    def paths(self) -> Iterator[str]:
        """Every path below the root, except folders that contain something."""

    @abc.abstractmethod
    def exists(self) -> bool:
        """Whether there is anything at the address other than an empty folder."""

    @abc.abstractmethod
    def beside(self, mark: str) -> Folder:
        """A hidden sibling of this folder, on the same disk."""

    @abc.abstractmethod
    def create(self) -> None:
        """Make the folder and all its parents."""

    @abc.abstractmethod
    def remove(self) -> None:
        """Delete the folder and everything in it, if it exists."""

    @abc.abstractmethod
    def rename(self, target: Folder) -> None:
        """Rename this folder to ``target``, which does not exist or is an empty folder."""


def folder(address: str) -> Folder:
    """The folder of an address: ``DIR``, ``file://…``, ``memory://…``, or anything else that fsspec knows.

    Raises:
        UserError: fsspec is not installed, or knows no such protocol.
    """
    if "://" not in address:
        return LocalFolder(address)
    if address.startswith("file://"):
        return LocalFolder(address.removeprefix("file://"))
    try:
        import fsspec
    except ImportError as error:
        raise UserError(f"{address} needs fsspec: pip install fsspec") from error
    try:
        system, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as error:
        raise UserError(f"{address}: {error}") from error
    return RemoteFolder(address, system, path)


class LocalFolder(Folder):
    """A folder on this machine."""

    local = True

    def __init__(self, address: str) -> None:
        self.address = os.path.abspath(address)
        self._made: set[str] = set()

    def _at(self, path: str) -> str:
        return f"{self.address}/{path}"

    def write(self, made: MadeFile) -> None:
        path = self._at(made.path)
        above = path.rpartition("/")[0]
        if above not in self._made:
            os.makedirs(above, exist_ok=True)
            self._made.add(above)
        if made.special == "dangling-link":
            os.symlink(f"{made.path.rpartition('/')[2]}.gone", path)
        elif made.special == "directory":
            os.mkdir(path)
        elif made.special == "fifo":
            os.mkfifo(path)
        if made.data is None:
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            done = os.write(descriptor, made.data)
            while done < len(made.data):  # a large file, or a disk that is nearly full: the next write raises the error
                done += os.write(descriptor, memoryview(made.data)[done:])
            if made.special == "no-permission":
                os.fchmod(descriptor, 0)
        finally:
            os.close(descriptor)

    def open(self, path: str, mode: str) -> IO[bytes]:
        return open(self._at(path), mode)

    def holds(self, path: str) -> bool:
        return os.path.isfile(self._at(path))

    def look(self, path: str) -> tuple[Special | None, bytes | None]:
        try:
            # Non-blocking: opening a pipe returns at once. A link is not followed.
            descriptor = os.open(self._at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return "missing", None
        except PermissionError:
            return "no-permission", None
        except OSError:  # ELOOP: a link
            return self._look_at_link(path)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                data = os.read(descriptor, status.st_size + 1)
                while len(data) < status.st_size and (more := os.read(descriptor, status.st_size + 1 - len(data))):
                    data += more
                return ("no-permission" if not status.st_mode & 0o444 else None), data
            return ("directory" if stat.S_ISDIR(status.st_mode) else "fifo"), None
        finally:
            os.close(descriptor)

    def _look_at_link(self, path: str) -> tuple[Special | None, bytes | None]:
        if not os.path.exists(self._at(path)):
            return "dangling-link", None
        return None, Path(self._at(path)).read_bytes() if os.path.isfile(self._at(path)) else None

    def paths(self) -> Iterator[str]:
        for above, folders, files in os.walk(self.address):
            within = os.path.relpath(above, self.address)
            prefix = "" if within == "." else f"{within}/"
            for name in files:
                yield prefix + name
            links = [name for name in folders if os.path.islink(os.path.join(above, name))]
            for name in links:
                yield prefix + name
            if not folders and not files and prefix:
                yield prefix[:-1]

    def exists(self) -> bool:
        if os.path.isdir(self.address):
            with os.scandir(self.address) as entries:
                return next(entries, None) is not None
        return os.path.lexists(self.address)

    def beside(self, mark: str) -> LocalFolder:
        above, name = os.path.split(self.address)
        return LocalFolder(os.path.join(above, f".{name}.{mark}-{os.getpid()}"))

    def remove_abandoned(self, mark: str) -> None:
        """Delete the folders that :meth:`beside` gave to processes that were killed since."""
        above, name = os.path.split(self.address)
        import psutil

        prefix = f".{name}.{mark}-"
        with contextlib.suppress(FileNotFoundError), os.scandir(above) as entries:
            for entry in entries:
                number = entry.name.removeprefix(prefix)
                if entry.name.startswith(prefix) and number.isdecimal() and not psutil.pid_exists(int(number)):
                    shutil.rmtree(entry.path, ignore_errors=True)

    def create(self) -> None:
        try:
            os.makedirs(self.address)
        except OSError as error:
            raise UserError(f"cannot make {self.address}: {error.strerror}") from error

    def remove(self) -> None:
        shutil.rmtree(self.address, ignore_errors=True)

    def rename(self, target: Folder) -> None:
        os.rename(self.address, target.address)

    def free_bytes(self) -> int:
        """How many bytes an unprivileged user can still write on this folder's disk."""
        return shutil.disk_usage(self.address).free


class RemoteFolder(Folder):
    """A folder on any file system that fsspec knows. It can contain only ordinary files."""

    local = False

    def __init__(self, address: str, system: Any, path: str) -> None:
        self.address = address
        self._system = system
        self._path = path.rstrip("/")

    def _at(self, path: str) -> str:
        return f"{self._path}/{path}"

    def write(self, made: MadeFile) -> None:
        if made.special not in (None, "missing"):
            raise UserError(f"{self.address} cannot contain a {made.special}: that needs a local folder")
        if made.data is not None:
            self._system.makedirs(self._at(made.path).rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(self._at(made.path), made.data)

    def open(self, path: str, mode: str) -> IO[bytes]:
        opened: IO[bytes] = self._system.open(self._at(path), mode)
        return opened

    def holds(self, path: str) -> bool:
        return bool(self._system.isfile(self._at(path)))

    def look(self, path: str) -> tuple[Special | None, bytes | None]:
        try:
            return None, self._system.cat_file(self._at(path))
        except FileNotFoundError:
            return "missing", None

    def paths(self) -> Iterator[str]:
        for found in self._system.find(self._path):
            yield found[len(self._path) :].lstrip("/")

    def exists(self) -> bool:
        return self._system.exists(self._path) and (
            self._system.isfile(self._path) or bool(self._system.ls(self._path))
        )

    def beside(self, mark: str) -> RemoteFolder:
        above, _, name = self._path.rpartition("/")
        return RemoteFolder(f"{self.address}.{mark}", self._system, f"{above}/.{name}.{mark}-{os.getpid()}")

    def create(self) -> None:
        self._system.makedirs(self._path, exist_ok=True)

    def remove(self) -> None:
        if self._system.exists(self._path):
            self._system.rm(self._path, recursive=True)

    def rename(self, target: Folder) -> None:
        assert isinstance(target, RemoteFolder)
        if self._system.exists(target._path):
            self._system.rmdir(target._path)
        self._system.mv(self._path, target._path, recursive=True)
