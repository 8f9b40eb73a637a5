"""One way to get a clip: by its built-in name, or by the path of a file in any format that is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from humanoid_control.capture.bvh import parse_bvh
from humanoid_control.capture.c3d import parse_c3d
from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.dance import synthetic_dance
from humanoid_control.capture.trc import parse_trc
from humanoid_control.errors import ClipError, nearest_names

_BUILT_IN: dict[str, Callable[[], MarkerClip]] = {"dance": synthetic_dance}
CLIP_NAMES = tuple(_BUILT_IN)

_PARSERS: dict[str, Callable[[bytes, str], MarkerClip]] = {".bvh": parse_bvh, ".c3d": parse_c3d, ".trc": parse_trc}


def load_clip(name_or_path: str | Path = "dance") -> MarkerClip:
    """Read a motion capture clip.

    Args:
        name_or_path: one of `CLIP_NAMES`, or the path of a .c3d, .trc or .bvh file. A name wins over a file of the
            same name in the current folder: write ./dance for that.

    Raises:
        ClipError: no such name or file, a format that is not read, or a file that is empty, cut off or damaged.
    """
    if str(name_or_path) in _BUILT_IN:
        return _BUILT_IN[str(name_or_path)]()
    path = Path(name_or_path)
    try:
        path = path.expanduser()
        if not path.exists():
            raise ClipError(_not_found(path))
        if not path.is_file():
            raise ClipError(f"{path}: is a folder, not a file: name a clip in it ({', '.join(_PARSERS)})")
        parse = _PARSERS.get(path.suffix.lower())
        if parse is None:
            raise ClipError(f"{path}: type '{path.suffix}' is not read, only {', '.join(_PARSERS)}: convert it")
        data = path.read_bytes()
    except (OSError, ValueError, RuntimeError) as error:  # the last two: a null byte, or ~ of an unknown user
        raise ClipError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not data:
        raise ClipError(f"{path}: is empty: copy or export it again")
    return parse(data, str(path))


def _not_found(path: Path) -> str:
    """The message for a path that does not exist, with what comes nearest."""
    beside = []
    if path.parent.is_dir():
        beside = [other.name for other in path.parent.iterdir() if other.suffix.lower() in _PARSERS]
    near = nearest_names(path.name, [*beside, *CLIP_NAMES])
    offer = f"did you mean {' or '.join(near)}?" if near else f"built-in clips: {', '.join(CLIP_NAMES)}"
    return f"{path}: no such clip: {offer}"
