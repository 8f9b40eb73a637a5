"""File of a clip, possibly in a zip archive (`clips.zip:walk.bvh`) or folder."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from humanoid_control.errors import ClipError, first_few, first_line, nearest_names, offer_names
from humanoid_control.mocap.formats.common import check_growth

_NO_CLIP = (".", "_")  # prefixes of system files in archives and folders: .DS_Store, __MACOSX


@dataclass(frozen=True)
class ClipFile:
    """Clip file and its folder.

    Attributes:
        path: of the file or its archive.
        name: of the file, inside the archive if any.
        archived: member of the archive `path`.
        part: after a colon, such as an animation, or "".
    """

    path: Path
    name: PurePath
    archived: bool = False
    part: str = ""

    @property
    def where(self) -> str:
        """Name in messages."""
        return f"{self.path}:{self.name}" if self.archived else str(self.path)

    @property
    def suffix(self) -> str:
        """Lower-case file extension."""
        return self.name.suffix.lower()

    def beside(self) -> list[PurePath]:
        """Return the names of all files in its folder."""
        names = _members(self.path) if self.archived else [PurePath(p) for p in self.path.parent.iterdir()]
        return sorted(n for n in names if n.parent == self.name.parent)

    def read(self, name: PurePath | None = None) -> bytes:
        """Return the bytes of the file, or of another in its folder.

        Raises:
            ClipError: if it is empty, missing, damaged, locked or too large.
        """
        name = self.name if name is None else name
        where = f"{self.path}:{name}" if self.archived else str(name)
        try:
            data = _unpacked(self.path, name) if self.archived else Path(name).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise ClipError(f"{where}: cannot be read: {reason}") from None
        if not data:
            raise ClipError(f"{where}: is empty: copy or export it again")
        return data


def find_clip_file(path: Path, formats: Iterable[str], parts: Iterable[str], names: Iterable[str]) -> ClipFile:
    """Return the file of a path.

    Args:
        path: file, zip archive or folder with one clip, archive member or part of a file: `clips.zip:walk.bvh`,
            `dance.glb:Samba`.
        formats: extensions of clips.
        parts: extensions of files with several motions.
        names: built-in clips, for messages.

    Raises:
        ClipError: if there is not exactly one clip.
    """
    formats, parts, part = tuple(formats), tuple(parts), ""
    if not path.exists():
        head, colon, tail = str(path).rpartition(":")
        if not (colon and tail and Path(head).is_file() and Path(head).suffix.lower() in (".zip", *parts)):
            raise ClipError(_not_found(path, formats, tuple(names)))
        path, part = Path(head), tail
    if path.is_dir():
        found = [p for p in sorted(path.iterdir()) if p.is_file() and _is_clip(PurePath(p.name), formats)]
        if len(found) != 1:
            raise ClipError(_choose(f"{path}/", [p.name for p in found], formats))
        path = found[0]
    if not path.is_file():
        raise ClipError(f"{path}: is a device or a pipe, not a file: give a clip ({', '.join(formats)})")
    if path.suffix.lower() != ".zip":
        return ClipFile(path, PurePath(path), part=part)
    members = _members(path)
    clips = [m for m in members if _is_clip(m, formats)]
    if part:
        chosen = [m for m in members if str(m) == part] or [m for m in clips if m.name == part]
        if len(chosen) != 1:
            near = nearest_names(part, [str(m) for m in clips]) or [str(m) for m in clips]
            raise ClipError(f"{path}: has no member '{part}': {offer_names(part, near, 'clips in it')}")
        return ClipFile(path, chosen[0], True)
    if len(clips) != 1:
        raise ClipError(_choose(f"{path}:", [str(m) for m in clips], formats))
    return ClipFile(path, clips[0], True)


def _is_clip(name: PurePath, formats: tuple[str, ...]) -> bool:
    return name.suffix.lower() in formats and not any(p.startswith(_NO_CLIP) for p in name.parts)


def _choose(where: str, clips: list[str], formats: tuple[str, ...]) -> str:
    """Return the message for a folder ("/") or archive (":") without one clip."""
    kind = "folder" if where.endswith("/") else "archive"
    if not clips:
        return f"{where[:-1]}: the {kind} contains no clip ({', '.join(formats)})"
    return (
        f"{where[:-1]}: the {kind} contains {len(clips)} clips: name one, such as {where}{clips[0]} (of "
        f"{first_few(clips, 5)})"
    )


def _members(path: Path) -> list[PurePath]:
    """Return the file names in a zip archive, or raise ClipError."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(PurePath(info.filename) for info in archive.infolist() if not info.is_dir())
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ClipError(f"{path}: not a zip archive, or a damaged one: {first_line(error)}") from None


def _unpacked(path: Path, name: PurePath) -> bytes:
    """Return the bytes of a member, or raise ClipError."""
    where = f"{path}:{name}"
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(name.as_posix())
            check_growth(info.file_size, info.compress_size, where)
            if info.flag_bits & 1:
                raise ClipError(f"{where}: is protected by a password: unpack the archive and give the file")
            return archive.read(info)
    except KeyError:
        raise ClipError(f"{where}: is not in the archive") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ClipError(f"{where}: cannot be unpacked: {first_line(error)}: unpack the archive manually") from None


def _not_found(path: Path, formats: tuple[str, ...], names: tuple[str, ...]) -> str:
    """Return the message for a missing path, with the nearest names."""
    beside = []
    if path.parent.is_dir():
        beside = [other.name for other in path.parent.iterdir() if other.suffix.lower() in (*formats, ".zip")]
    near = nearest_names(path.name, [*beside, *names])
    return f"{path}: clip not found: {offer_names(path.name, near or names, 'built-in clips')}"
