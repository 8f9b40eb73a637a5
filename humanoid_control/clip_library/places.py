"""Places for results, with atomic writes: a folder, or an fsspec address (s3://bucket/folder)."""

from __future__ import annotations

import fcntl
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path, PurePosixPath
from typing import IO, Any

from humanoid_control.errors import ConfigError, EnvironmentProblem, first_line, require_extra, shown

PRIVATE = ".library"  # folder of records, lock and temporary files


class Place(ABC):
    """Files by name, with slashes."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Write a file atomically.

        Raises:
            ConfigError: if it cannot be written.
        """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return the content of a file, or None."""

    @abstractmethod
    def sizes(self, below: str = "") -> dict[str, int]:
        """Return name -> size [bytes] of the files below a folder."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def open(self) -> None:
        """Prepare the place for one run.

        Raises:
            ConfigError: if it is used by another run, or not writable.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the place."""


def is_address(text: str) -> bool:
    """Test for an fsspec address (`memory://x`)."""
    head, found, _ = text.partition("://")
    return bool(found) and head.replace("+", "").replace("-", "").isalnum()


def place_for(text: str) -> Place:
    """Return the place of a path or address.

    Raises:
        ConfigError: if the address is unsupported.
        EnvironmentProblem: if fsspec is missing.
    """
    return Address(text) if is_address(text) else Folder(Path(text))


class Folder(Place):
    """Local folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    def _error(self, name: str, error: OSError) -> ConfigError:
        return ConfigError(f"{self.path / name} cannot be written: {error.strerror or error}")

    def open(self) -> None:
        private = self.path / PRIVATE
        try:
            self.path.mkdir(exist_ok=True)
            private.mkdir(exist_ok=True)
            self._lock = (private / "lock").open("a")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise ConfigError(f"{self.path} is being written by another run: wait for it, or stop it") from None
            shutil.rmtree(private / "writing", ignore_errors=True)  # of a killed run
            (private / "writing").mkdir()
        except OSError as e:
            raise self._error("", e) from None

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def put(self, name: str, content: bytes) -> None:
        path, part = self.path / name, self.path / PRIVATE / "writing" / name.replace("/", "_")[-200:]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(content)
            os.replace(part, path)
        except OSError as e:
            part.unlink(missing_ok=True)
            raise self._error(name, e) from None

    def get(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except OSError:
            return None

    def sizes(self, below: str = "") -> dict[str, int]:
        out = {}
        for where, _, files in os.walk(self.path / below):
            for file in files:
                path = Path(where) / file
                try:
                    out[path.relative_to(self.path).as_posix()] = path.stat().st_size
                except OSError:  # deleted meanwhile
                    continue
        return out

    def remove(self, name: str) -> None:
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as e:
            raise self._error(name, e) from None


class Address(Place):
    """Place of fsspec; files are renamed after writing unless the store is atomic."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ModuleNotFoundError:
            require_extra("cluster")
            raise EnvironmentProblem("fsspec is not installed: pip install 'humanoid_control[cluster]'") from None
        self.url = url
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as e:
            raise ConfigError(f"{shown(url, 300)} cannot be reached: {first_line(e)}") from None
        self._root = self._root.rstrip("/")
        self._moves = "file" in self._protocols() or "sftp" in self._protocols() or "ssh" in self._protocols()

    def _protocols(self) -> tuple[str, ...]:
        found: Any = self._fs.protocol
        return (found,) if isinstance(found, str) else tuple(found)

    def _full(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _error(self, name: str, error: Exception) -> ConfigError:
        reason = getattr(error, "strerror", None) or first_line(error)
        return ConfigError(f"{shown(self.url, 300).rstrip('/')}/{name} cannot be written: {reason}")

    def open(self) -> None:
        self.put(f"{PRIVATE}/opened", b"")

    def close(self) -> None:
        """Do nothing."""

    def put(self, name: str, content: bytes) -> None:
        full = self._full(name)
        try:
            self._fs.makedirs(str(PurePosixPath(full).parent), exist_ok=True)
            if self._moves:
                part = f"{full}.{os.getpid()}.part"
                self._fs.pipe_file(part, content)
                self._fs.mv(part, full)
            else:
                self._fs.pipe_file(full, content)
        except Exception as e:  # stores raise arbitrary exceptions
            raise self._error(name, e) from None

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self._fs.cat_file(self._full(name)))
        except Exception:
            return None

    def sizes(self, below: str = "") -> dict[str, int]:
        try:
            self._fs.invalidate_cache()
            found = self._fs.find(self._full(below), detail=True)
        except FileNotFoundError:
            return {}
        except Exception as e:
            raise self._error(below, e) from None
        start = len(self._root) + 1
        return {path[start:]: int(info.get("size") or 0) for path, info in found.items()}

    def remove(self, name: str) -> None:
        try:
            if self._fs.exists(self._full(name)):
                self._fs.rm_file(self._full(name))
        except Exception as e:
            raise self._error(name, e) from None
