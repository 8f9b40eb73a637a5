"""Clips of a library: from a folder, a pattern or a list.

A clip's name is its path below the folder, or as listed.
"""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from humanoid_control.errors import ClipError, ConfigError, shown
from humanoid_control.mocap.formats.asf_amc import skeleton_beside
from humanoid_control.mocap.load import CLIP_NAMES, FORMATS

LISTS = (".txt", ".list")
WILD = "*?["
_BUILT_IN = ""  # path of a built-in clip


@dataclass(frozen=True)
class LibraryClip:
    """Named clip, readable or not.

    Attributes:
        path: file, or empty for a built-in clip.
    """

    name: str
    path: str

    @property
    def source(self) -> str:
        return self.path or self.name

    def files(self) -> list[Path]:
        """Return the file and its .amc skeleton, if any.

        Raises:
            ClipError: if the skeleton is missing.
        """
        if self.path == _BUILT_IN:
            return []
        path = Path(self.path)
        if path.suffix.lower() != ".amc" or not path.is_file():
            return [path]
        return [path, Path(skeleton_beside(path, sorted(path.parent.iterdir())))]

    def size(self) -> int:
        """Return the file size [bytes], or 1."""
        try:
            return max(os.stat(self.path).st_size, 1) if self.path else 1
        except OSError:
            return 1

    def digest(self) -> str:
        """Return the SHA-256 of the clip's files, or of a built-in name.

        Raises:
            ClipError: if a file is unreadable.
        """
        total = hashlib.sha256(b"" if self.path else self.name.encode())
        try:
            for path in self.files():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        total.update(block)
                total.update(b"\0")
        except OSError as e:
            raise ClipError(f"{self.path}: cannot be read: {e.strerror or e}") from None
        return total.hexdigest()

    def packed(self) -> dict[str, bytes]:
        """Return name -> content of the clip's files.

        Raises:
            ClipError: if a file is unreadable.
        """
        try:
            return {path.name: path.read_bytes() for path in self.files()}
        except OSError as e:
            raise ClipError(f"{self.path}: cannot be read: {e.strerror or e}") from None


@contextmanager
def unpacked(files: dict[str, bytes]) -> Iterator[Path]:
    """Yield the path of the first of some temporary files."""
    with tempfile.TemporaryDirectory(prefix="clip_") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        yield Path(folder) / next(iter(files))


# -------- Search


def is_library(text: str) -> bool:
    """Test whether an argument is a folder, a pattern, or a list of paths."""
    return os.path.isdir(text) or _is_pattern(text) or Path(text).suffix.lower() in LISTS


def _is_pattern(text: str) -> bool:
    return any(c in text for c in WILD) and not os.path.exists(text)


def find_clips(text: str, without: Path | None = None) -> list[LibraryClip]:
    """Return the clips of a library, sorted by name.

    Args:
        text: folder, searched recursively; pattern, in which ** matches any folders; or .txt file with a path or
            built-in clip per line (# starts a comment), relative to the file.
        without: excluded folder.

    Raises:
        ClipError: without readable clips.
        ConfigError: if listed names are equal.
    """
    if os.path.isdir(text):
        found = sorted(_below(Path(text), without), key=lambda clip: clip.name)
        if not found:
            raise ClipError(f"{text}: no clips in this folder or below it (of {', '.join(FORMATS)})")
        return found
    if _is_pattern(text):
        root = Path(*_before_wild(Path(text).parts))
        paths = [Path(p) for p in glob.glob(text, recursive=True)]
        files = [p for p in paths if p.is_file() and p.suffix.lower() in FORMATS and not _inside(p, without)]
        if not files:
            raise ClipError(f"{text}: no clips match (of {', '.join(FORMATS)})")
        return [LibraryClip(p.relative_to(root).as_posix(), str(p)) for p in sorted(files)]
    return _listed(Path(text))


def _before_wild(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if any(c in part for c in WILD):
            return
        yield part


def _inside(path: Path, folder: Path | None) -> bool:
    return folder is not None and folder.resolve() in path.resolve().parents


def _below(root: Path, without: Path | None) -> Iterator[LibraryClip]:
    """Yield visible clips below a folder, following links once."""
    seen, closed = set(), without.resolve() if without is not None else None
    for where, folders, files in os.walk(root, followlinks=True):
        real = Path(where).resolve()
        if real in seen or real == closed:
            folders[:] = []
            continue
        seen.add(real)
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in FORMATS:
                path = Path(where) / name
                yield LibraryClip(path.relative_to(root).as_posix(), str(path))


def _listed(path: Path) -> list[LibraryClip]:
    """Return the clips of a text file, existing or not."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ClipError(f"{path}: not a list of clips: it is not a text file") from None
    except OSError as e:
        raise ClipError(f"{path}: cannot be read: {e.strerror or e}") from None
    clips: dict[str, LibraryClip] = {}
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        clip = LibraryClip(text, _BUILT_IN)
        if text not in CLIP_NAMES:
            place = path.parent / Path(text).expanduser()
            name = PurePosixPath(*[p for p in Path(text).parts if p not in ("..", "/", "~")]).as_posix()
            clip = LibraryClip(name, str(place))
        if clip.name in clips and clips[clip.name] != clip:
            raise ConfigError(f"{path}, line {number}: '{shown(clip.name)}' is the name of an earlier clip")
        clips[clip.name] = clip
    if not clips:
        raise ClipError(f"{path}: contains no clip: write one path per line")
    return sorted(clips.values(), key=lambda clip: clip.name)
