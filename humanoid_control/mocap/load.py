"""Loading of a clip by its built-in name or the path of a file, and in one call of its body points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from humanoid_control.errors import ClipError, ConfigError, nearest_names, offer_names
from humanoid_control.mocap.body_points import BodyPoints, find_body_points
from humanoid_control.mocap.cleaning import CleaningSettings, clean
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.dance import gentle_dance, synthetic_dance
from humanoid_control.mocap.formats.asf_amc import parse_amc, skeleton_beside
from humanoid_control.mocap.formats.bvh import parse_bvh
from humanoid_control.mocap.formats.c3d import parse_c3d
from humanoid_control.mocap.formats.common import Size
from humanoid_control.mocap.formats.csv import parse_csv
from humanoid_control.mocap.formats.trc import parse_trc

_BUILT_IN: dict[str, Callable[[], MarkerClip]] = {"dance": synthetic_dance, "gentle_dance": gentle_dance}
CLIP_NAMES = tuple(_BUILT_IN)

_Parser = Callable[[bytes, str, Size], MarkerClip]
_PARSERS: dict[str, _Parser] = {".bvh": parse_bvh, ".c3d": parse_c3d, ".trc": parse_trc}
_WITHOUT_RATE = (".amc", ".csv")  # formats that may not state their frame rate
FORMATS = (*_PARSERS, *_WITHOUT_RATE)


def load_clip(
    name_or_path: str | Path = "dance", rate: float | None = None, unit: str = "", scale: float = 1.0
) -> MarkerClip:
    """Clip of a built-in name or of a file.

    Args:
        name_or_path: one of `CLIP_NAMES`, or the path of a .c3d, .trc, .bvh, .amc or .csv file (for .amc with its .asf
            in the same folder). A name wins over a file of the same name in the current folder: write ./dance for that.
        rate: frames a second [Hz] of an .amc or .csv file that states none.
        unit: of the file's numbers: mm, cm, m or inch; "" takes the one it states, or the one in which a person fits.
        scale: factor on all positions, for a skeleton of another size than a person's.

    Raises:
        ClipError: no such name or file, a format that is not read, or a file that is empty, cut off or damaged; a rate
            for a format that states its own; a unit or a scale for a built-in clip.
        UnknownNameError: no such unit.
        ConfigError: a scale or a rate that is not a positive number.
    """
    size = Size(unit, scale)
    if rate is not None and not 0 < rate < float("inf"):
        raise ConfigError(f"the rate of a clip is {rate:g}, it must be positive")
    if str(name_or_path) in _BUILT_IN:
        if size != Size():
            raise ClipError(f"the built-in clip '{name_or_path}' is in metres: leave unit and scale out")
        return _BUILT_IN[str(name_or_path)]()
    path = Path(name_or_path)
    try:
        path = path.expanduser()
        if not path.exists():
            raise ClipError(_not_found(path))
        if path.is_dir():
            raise ClipError(f"{path}: is a folder, not a file: name a clip in it ({', '.join(FORMATS)})")
        if not path.is_file():
            raise ClipError(f"{path}: is a device or a pipe, not a file: give a clip ({', '.join(FORMATS)})")
        suffix = path.suffix.lower()
        if suffix == ".asf":
            raise ClipError(f"{path}: is a skeleton without motion: name the .amc file that moves it")
        if suffix not in FORMATS:
            raise ClipError(f"{path}: type '{path.suffix}' is not read, only {', '.join(FORMATS)}: convert it")
        if rate is not None and suffix not in _WITHOUT_RATE:
            raise ClipError(f"{path}: a {suffix} file states its own frame rate: leave the rate out")
        data = _content(path)
        skeleton = skeleton_beside(path) if suffix == ".amc" else path
        skeleton_data = _content(skeleton) if suffix == ".amc" else b""
    except (OSError, ValueError, RuntimeError) as error:  # the last two: a null byte, or ~ of an unknown user
        raise ClipError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if suffix == ".amc":
        return parse_amc(data, str(path), skeleton_data, str(skeleton), rate, size)
    return parse_csv(data, str(path), rate, size) if suffix == ".csv" else _PARSERS[suffix](data, str(path), size)


def _content(path: Path) -> bytes:
    """The bytes of a file that must not be empty."""
    data = path.read_bytes()
    if not data:
        raise ClipError(f"{path}: is empty: copy or export it again")
    return data


def _not_found(path: Path) -> str:
    """The message for a path that does not exist, with what comes nearest."""
    beside = []
    if path.parent.is_dir():
        beside = [other.name for other in path.parent.iterdir() if other.suffix.lower() in FORMATS]
    near = nearest_names(path.name, [*beside, *CLIP_NAMES])
    return f"{path}: no such clip: {offer_names(path.name, near or CLIP_NAMES, 'built-in clips')}"


def load_body_points(
    name_or_path: str | Path = "dance",
    marker_set: str | Path | None = None,
    cleaning: CleaningSettings | None = None,
    rate: float | None = None,
    unit: str = "",
    scale: float = 1.0,
) -> BodyPoints:
    """`load_clip`, `clean` and `find_body_points` one after the other.

    Args:
        name_or_path: built-in clip or file, as for `load_clip`.
        marker_set: as for `find_body_points`.
        cleaning: what is cleaned; by default labels are checked, gaps up to 0.5 s filled, noise above 10 Hz taken out.
        rate, unit, scale: as for `load_clip`.

    Returns:
        The points; their warnings say what was found and done on the way.

    Raises:
        ClipError, UnknownNameError: as those three do.
    """
    settings = cleaning or CleaningSettings()
    clip, _ = clean(load_clip(name_or_path, rate, unit, scale), settings)
    return find_body_points(clip, marker_set, settings.max_gap)
