"""Loading of a clip by name or path, and of its body points."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from humanoid_control.errors import ClipError, ConfigError, first_few, shown
from humanoid_control.mocap.body_points import MAX_GAP, BodyPoints, find_body_points
from humanoid_control.mocap.cleaning import CleaningSettings, clean
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.clip_file import ClipFile, find_clip_file
from humanoid_control.mocap.dance import gentle_dance, synthetic_dance
from humanoid_control.mocap.formats.asf_amc import parse_amc, skeleton_beside
from humanoid_control.mocap.formats.bvh import parse_bvh
from humanoid_control.mocap.formats.c3d import parse_c3d
from humanoid_control.mocap.formats.common import Size
from humanoid_control.mocap.formats.csv import parse_csv
from humanoid_control.mocap.formats.fbx import parse_fbx
from humanoid_control.mocap.formats.gltf import parse_gltf
from humanoid_control.mocap.formats.npz import parse_npz, parse_pickle, parse_tensors
from humanoid_control.mocap.formats.trc import parse_trc
from humanoid_control.mocap.marker_set_draft import sure_marker_set
from humanoid_control.mocap.marker_sets import REQUIRED, match_sets
from humanoid_control.mocap.unrecorded import report_unrecorded

_BUILT_IN: dict[str, Callable[[], MarkerClip]] = {"dance": synthetic_dance, "gentle_dance": gentle_dance}
CLIP_NAMES = tuple(_BUILT_IN)


class _Rate(enum.Enum):
    """Source of the frame rate of a format."""

    STATED = "every file states it"
    REPLACEABLE = "every file states it; a given rate replaces it"
    OPTIONAL = "a file may lack it; a given rate is used"


class _Format(NamedTuple):
    """Type of clip files.

    Attributes:
        read: function of the file, the given rate [Hz] or None, and the size.
        of_parts: a file may hold several motions, selected after a colon.
    """

    read: Callable[[ClipFile, float | None, Size], MarkerClip]
    rate: _Rate = _Rate.STATED
    of_parts: bool = False


def _read_amc(file: ClipFile, rate: float | None, size: Size) -> MarkerClip:
    data, skeleton = file.read(), skeleton_beside(file.name, file.beside(), file.where)
    return parse_amc(data, file.where, file.read(skeleton), str(skeleton), rate, size)


def _stating(parse: Callable[[bytes, str, Size], MarkerClip]) -> _Format:
    """Return a format with files that state their rate."""
    return _Format(lambda file, rate, size: parse(file.read(), file.where, size))


def _at_rate(parse: Callable[[bytes, str, float | None, Size], MarkerClip], kind: _Rate = _Rate.OPTIONAL) -> _Format:
    """Return a format with a rate that the caller may give."""
    return _Format(lambda file, rate, size: parse(file.read(), file.where, rate, size), kind)


def _scene(parse: Callable[[ClipFile, Size], MarkerClip]) -> _Format:
    """Return a format with several motions, which may refer to files in the folder."""
    return _Format(lambda file, rate, size: parse(file, size), of_parts=True)


_FORMATS: dict[str, _Format] = {
    ".bvh": _at_rate(parse_bvh, _Rate.REPLACEABLE),
    ".c3d": _stating(parse_c3d),
    ".trc": _stating(parse_trc),
    ".amc": _Format(_read_amc, _Rate.OPTIONAL),
    ".csv": _at_rate(parse_csv),
    ".tsv": _at_rate(parse_csv),
    ".fbx": _scene(parse_fbx),
    ".glb": _scene(parse_gltf),
    ".gltf": _scene(parse_gltf),
    ".npz": _at_rate(parse_npz),
    ".pkl": _at_rate(parse_pickle),
    ".pt": _at_rate(parse_tensors),
}
"""Formats that are read. An entry here is all that a further format needs besides its parser."""
FORMATS = tuple(_FORMATS)
MAY_LACK_RATE = tuple(suffix for suffix, form in _FORMATS.items() if form.rate is _Rate.OPTIONAL)
_OF_PARTS = tuple(suffix for suffix, form in _FORMATS.items() if form.of_parts)
_NEXT_STEP = {
    ".asf": "is a skeleton without motion: name the .amc file that moves it",
    ".dae": "Collada is not supported: convert it to glTF with Blender (.glb)",
    ".blend": "is a scene of Blender: export the armature from it as glTF (.glb) or BVH",
    ".mvnx": "is an archive of Xsens MVN: export BVH or C3D from MVN",
    ".tak": "is a take of Motive: export it from Motive as BVH, CSV or C3D",
    ".txt": "may hold a table of markers: rename it to .csv, which has commas, tabs or semicolons",
    ".mat": "is a file of MATLAB: write its markers as TRC or C3D (ezc3d), or as CSV",
    ".ndf": "is raw data of an Optotrak: export C3D from NDI First Principles",
    ".mp4": "is a video: convert it to a recording with a pose tracker (MediaPipe, GVHMR, WHAM)",
}
"""Advice for files that are not read but are often taken for a clip."""


def load_clip(
    name_or_path: str | Path = "dance",
    rate: float | None = None,
    unit: str = "",
    scale: float = 1.0,
    up: str = "",
) -> MarkerClip:
    """Return a built-in clip or the clip of a file.

    Args:
        name_or_path: one of `CLIP_NAMES`; a file of `FORMATS` (.amc with .asf next to it); a folder or zip archive with
            one clip; or a member `clips.zip:walk.bvh`. Write ./dance for a file with a built-in name.
        rate: [Hz], for a file of `MAY_LACK_RATE` without a rate or times, or a BVH file with a wrong rate.
        unit: mm, cm, m or inch; "": stated, or plausible for a person.
        scale: factor of positions.
        up: x, y, z, -x, -y, -z; "": stated, or guessed from the posture.

    Raises:
        ClipError: if the clip is missing or invalid, or an argument does not apply to it.
        UnknownNameError: if the unit is unknown.
        ConfigError: if scale, rate or axis is invalid.
    """
    size = Size(unit, scale)
    axis = _axis(up)
    if rate is not None and not 0 < rate < float("inf"):
        raise ConfigError(f"the rate of a clip must be positive, got {rate:g}")
    if str(name_or_path) in _BUILT_IN:
        if size != Size():
            raise ClipError(f"the built-in clip '{name_or_path}' is in metres: leave unit and scale out")
        if axis:
            raise ClipError(f"the built-in clip '{name_or_path}' is z up: leave up out")
        return _BUILT_IN[str(name_or_path)]()
    path = Path(name_or_path)
    try:
        file = find_clip_file(path.expanduser(), FORMATS, _OF_PARTS, CLIP_NAMES)
        suffix = file.suffix
        if suffix not in _FORMATS:
            other = f"type '{file.name.suffix}' is not supported, only {', '.join(FORMATS)}: convert it"
            raise ClipError(f"{file.where}: {_NEXT_STEP.get(suffix, other)}")
        form = _FORMATS[suffix]
        if rate is not None and form.rate is _Rate.STATED:
            raise ClipError(f"{file.where}: a {suffix} file contains its frame rate: leave the rate out")
        clip = report_unrecorded(form.read(file, rate, size))
        clip = replace(clip, up=axis, up_told=True) if axis else clip
        return replace(clip, name=file.name.stem) if file.archived else clip
    except (OSError, ValueError, RuntimeError) as error:  # the last two: a null byte, or ~ of an unknown user
        raise ClipError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _axis(text: str) -> str:
    """Return an axis as "+z", "" as "", or raise ConfigError."""
    if not text:
        return ""
    sign, axis = ("+", text) if len(text) == 1 else (text[0], text[1:])
    if sign not in "+-" or axis not in ("x", "y", "z"):
        raise ConfigError(f"up must be x, y, z, -x, -y or -z, got '{shown(text)}'")
    return sign + axis


def load_body_points(
    name_or_path: str | Path = "dance",
    marker_set: str | Path | None = None,
    cleaning: CleaningSettings | None = None,
    rate: float | None = None,
    unit: str = "",
    scale: float = 1.0,
    up: str = "",
) -> BodyPoints:
    """Run `load_clip`, `clean` and `locate_body`, with their arguments, errors and warnings.

    Args:
        cleaning: default: labels checked, gaps up to 0.5 s filled, 10 Hz low-pass.
    """
    settings = cleaning or CleaningSettings()
    clip, _ = clean(load_clip(name_or_path, rate, unit, scale, up), settings)
    return locate_body(clip, marker_set, settings.max_gap)


def locate_body(clip: MarkerClip, marker_set: str | Path | None = None, max_gap: float = MAX_GAP) -> BodyPoints:
    """Return `find_body_points`, with a drafted marker set if no built-in set fits.

    A draft must give every required point without guesses. A warning lists the interpretation of labels.

    Raises:
        ClipError: as `find_body_points`.
    """
    if marker_set is not None or match_sets(clip)[0].fits:
        return find_body_points(clip, marker_set, max_gap)
    drafted = sure_marker_set(clip)
    if drafted is None:
        return find_body_points(clip, None, max_gap)  # raises ClipError with the nearest set's missing labels
    body = find_body_points(clip, drafted, max_gap)
    sure = {name: rule.inputs[name] for name, rule in drafted.points.items()}
    read = first_few([f"{'+'.join(sure[p][0])} as {p}" for p in REQUIRED if p in sure], 9)
    note = f"no marker set matches these labels; guessed from their names {read}: check the figure of `humanoid clip`"
    return replace(body, warnings=(*body.warnings, note))
