"""Marker sets: naming conventions, and rules from markers to body points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from humanoid_control.documents import read_yaml
from humanoid_control.errors import ClipError, UnknownNameError, first_few, nearest_names, offer_names
from humanoid_control.files import why
from humanoid_control.mocap.clip import MarkerClip

# -------- joint centres from skin markers


def hip_centre(side: int, *, l_asis: np.ndarray, r_asis: np.ndarray, mid_psis: np.ndarray) -> np.ndarray:
    """Return the hip joint centre (T, 3) [m] by regression on pelvis depth and width.

    In the pelvis frame (origin midway between the ASIS markers, x forward from the PSIS midpoint, y left, z up,
    perpendicular to the plane of ASIS and PSIS midpoint), with PD the distance between the two midpoints and PW the
    distance between the ASIS markers:

        x = -0.24 PD - 9.9 mm,   y = side (0.33 PW + 7.3 mm),   z = -0.30 PW - 10.9 mm

    Args:
        side: +1 left, -1 right.
        l_asis: (T, 3) [m].
        r_asis: (T, 3) [m].
        mid_psis: (T, 3) PSIS midpoint or sacrum marker [m].

    Source: Harrington et al. 2007, J. Biomech. 40, 595-602 (adults and children).
    """
    mid_asis = (l_asis + r_asis) / 2
    depth = np.linalg.norm(mid_asis - mid_psis, axis=1, keepdims=True)
    width = np.linalg.norm(l_asis - r_asis, axis=1, keepdims=True)
    y = _unit(l_asis - r_asis)
    z = _unit(_cross(mid_asis - mid_psis, y))
    x = _cross(y, z)
    forward, left, up = -0.24 * depth - 0.0099, side * (0.33 * width + 0.0073), -0.30 * width - 0.0109
    return mid_asis + forward * x + left * y + up * z


def shoulder_centre(
    side: int,
    *,
    l_acromion: np.ndarray,
    r_acromion: np.ndarray,
    l_asis: np.ndarray,
    r_asis: np.ndarray,
    mid_psis: np.ndarray,
) -> np.ndarray:
    """Return the glenohumeral centre (T, 3) [m]: below the acromion by 17 % of the distance of the acromia.

    Below is along the trunk, from mid-acromion to mid-pelvis.

    Args:
        side: +1 left, -1 right.
        l_acromion: (T, 3) [m].
        r_acromion: (T, 3) [m].

    Source: Rab, Petuskey and Bagley 2002, Gait and Posture 15, 113-119.
    """
    pelvis = ((l_asis + r_asis) / 2 + mid_psis) / 2
    down = _unit(pelvis - (l_acromion + r_acromion) / 2)
    breadth = np.linalg.norm(l_acromion - r_acromion, axis=1, keepdims=True)
    return (l_acromion if side > 0 else r_acromion) + 0.17 * breadth * down


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Normalise vectors (T, 3); zero stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return cross products (T, 3), faster than numpy for single frames."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]


# -------- sets and their files

REQUIRED = ("l_hip", "r_hip", "sternum", "l_shoulder", "r_shoulder", "l_elbow", "r_elbow", "l_wrist", "r_wrist")
ESTIMATED = ("sternum",)  # required, but estimated from the others without a marker
WRIST_SIDES = ("l_radius", "l_ulna", "r_radius", "r_ulna")  # thumb side, opposite side
OPTIONAL = (
    "head", "l_knee", "r_knee", "l_ankle", "r_ankle", "l_toe", "r_toe", "l_heel", "r_heel", *WRIST_SIDES,
    "head_front", "l_hand", "r_hand",  # front of the head; knuckles
)  # fmt: skip

_PELVIS = ("l_asis", "r_asis", "mid_psis")
_RULES: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "hip_centre": (hip_centre, _PELVIS),
    "shoulder_centre": (shoulder_centre, ("l_acromion", "r_acromion", *_PELVIS)),
}
LANDMARKS = _RULES["shoulder_centre"][1]

Alternatives = tuple[tuple[str, ...], ...]
"""Lists of labels in order of preference; the labels of the first list found in a clip are averaged."""


@dataclass(frozen=True)
class MarkerSetRule:
    """Rule from markers to one body point.

    Attributes:
        inputs: landmark -> label alternatives.
        function: of the inputs, each (T, 3); None: the only input.
        side: +1 left, -1 right: first argument.
    """

    inputs: Mapping[str, Alternatives]
    function: Callable[..., np.ndarray] | None = None
    side: int = 1


@dataclass(frozen=True)
class MarkerSet:
    """Naming convention of markers, with rules.

    Attributes:
        name: built-in name, or path.
        points: body point -> rule, in the order of `REQUIRED` and `OPTIONAL`.
        unused: other labels; if given (skeletons), unknown labels of a clip cause a warning.
    """

    name: str
    points: Mapping[str, MarkerSetRule]
    unused: frozenset[str] = frozenset()


def read_marker_set(path: Path, name: str) -> MarkerSet:
    """Read a marker set from YAML, or raise ClipError."""
    try:
        content = read_yaml(path)
    except OSError as error:
        raise ClipError(f"marker set {name}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ClipError(f"marker set {name}: is not valid YAML: {why(error)}") from None
    if not isinstance(content, dict) or not isinstance(content.get("points"), dict):
        raise ClipError(f"marker set {name}: needs a mapping 'points' from body points to labels")
    unknown = set(content) - {"about", "landmarks", "points", "unused"}
    if unknown:
        raise ClipError(
            f"marker set {name}: unknown entry '{min(map(str, unknown))}' (about, landmarks, points, unused)"
        )
    landmarks = _alternatives_by_name(content.get("landmarks") or {}, LANDMARKS, f"marker set {name}: landmark")
    given = content["points"]
    _check_names(given, REQUIRED + OPTIONAL, f"marker set {name}: body point")
    lacking = [point for point in REQUIRED if point not in given and point not in ESTIMATED]
    if lacking:
        raise ClipError(f"marker set {name}: gives no labels for {', '.join(lacking)}")
    unused = _alternatives(content["unused"], f"marker set {name}: unused") if "unused" in content else ()
    return MarkerSet(
        name,
        {
            point: _rule(point, given[point], landmarks, f"marker set {name}: {point}")
            for point in REQUIRED + OPTIONAL
            if point in given
        },
        frozenset(label for labels in unused for label in labels),
    )


def _rule(point: str, value: Any, landmarks: Mapping[str, Alternatives], where: str) -> MarkerSetRule:
    """Return the rule of a list of labels, of such lists, or {rule: name}."""
    if not isinstance(value, dict):
        return MarkerSetRule({point: _alternatives(value, where)})
    name = value.get("rule")
    if set(value) != {"rule"} or not isinstance(name, str) or name not in _RULES:
        raise ClipError(f"{where}: expected labels or {{rule: {' or '.join(_RULES)}}}, got {value}")
    function, needs = _RULES[name]
    lacking = [landmark for landmark in needs if landmark not in landmarks]
    if lacking:
        raise ClipError(f"{where}: rule {name} needs the landmark(s) {', '.join(lacking)}")
    return MarkerSetRule(
        {landmark: landmarks[landmark] for landmark in needs}, function, side=-1 if point.startswith("r_") else 1
    )


def _alternatives_by_name(entries: Any, known: tuple[str, ...], where: str) -> dict[str, Alternatives]:
    """Return the landmarks section."""
    _check_names(entries, known, where)
    return {name: _alternatives(value, f"{where} {name}") for name, value in entries.items()}


def _check_names(entries: Any, known: tuple[str, ...], where: str) -> None:
    """Raise ClipError for an unknown key."""
    for name in entries if isinstance(entries, dict) else [entries]:
        if name not in known:
            raise ClipError(f"{where} '{name}' is unknown: {offer_names(str(name), known)}")


def _alternatives(value: Any, where: str) -> Alternatives:
    """Return [A, B] or [[A, B], [C]] as alternatives."""
    lists = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for labels in lists:
        if not (isinstance(labels, list) and labels and all(isinstance(label, str) and label for label in labels)):
            raise ClipError(f"{where}: expected a list of labels or a list of such lists, got {value!r}")
    return tuple(tuple(labels) for labels in lists)


# -------- labels for comparison

_SKELETON = 8  # labels; with fewer a common prefix may belong to the names

Labels = Mapping[str, tuple[str, ...]]
"""Plain form -> labels as written in the clip; several if they differ only in subject or case."""


def plain_label(label: str) -> str:
    """Return a label for comparison, without "Subject:" and case."""
    return label.rpartition(":")[2].strip().casefold()


def _prefix(labels: tuple[str, ...]) -> str:
    """Return the common prefix of joint names, such as "Model_", or ""."""
    prefix = labels[0][: labels[0].find("_") + 1]
    return prefix if len(labels) >= _SKELETON and all(label.startswith(prefix) for label in labels) else ""


def plain_labels(clip: MarkerClip) -> dict[str, tuple[str, ...]]:
    """Return the labels of all visible markers by their plain form."""
    labels: dict[str, tuple[str, ...]] = {}
    prefix = _prefix(clip.labels)
    for label, seen in zip(clip.labels, ~np.isnan(clip.positions[..., 0]).all(axis=0), strict=True):
        if seen:
            plain = plain_label(label.removeprefix(prefix))
            labels[plain] = (*labels.get(plain, ()), label)
    return labels


def pick_labels(alternatives: Alternatives, labels: Labels) -> list[tuple[str, ...]] | None:
    """Return the first alternative completely in the clip, in its spelling."""
    for group in alternatives:
        if all(plain_label(label) in labels for label in group):
            return [labels[plain_label(label)] for label in group]
    return None


# -------- a set applied to a clip

_NEEDED = tuple(point for point in REQUIRED if point not in ESTIMATED)
_FOLDER = Path(__file__).parent / "marker_sets"
MARKER_SETS = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


class BodyLocator:
    """Marker set applied to a clip; the sternum may be missing.

    `warnings` name skeleton joints unknown to `marker_set`.

    Args:
        marker_set: built-in name, path of a YAML file, a set, or None: best built-in one.

    Raises:
        ClipError: if the clip lacks labels.
        UnknownNameError: if there is no such set.
    """

    def __init__(self, clip: MarkerClip, marker_set: str | Path | MarkerSet | None = None) -> None:
        self.clip = clip
        labels = plain_labels(clip)
        self.marker_set = _choose(clip, labels) if marker_set is None else find_marker_set(marker_set)
        if _missing(self.marker_set, labels):
            raise ClipError(_misfit(clip, labels, self.marker_set, "marker set"))
        self.warnings = _strangers(labels, self.marker_set)
        self._chosen: dict[str, dict[str, list[str]]] = {}
        for point, rule in self.marker_set.points.items():
            inputs = {name: pick_labels(alternatives, labels) for name, alternatives in rule.inputs.items()}
            if all(inputs.values()):
                self._chosen[point] = {name: _single(clip, found) for name, found in inputs.items() if found}

    @property
    def points(self) -> tuple[str, ...]:
        """Names of the body points with markers in the clip."""
        return tuple(self._chosen)

    def labels(self, point: str) -> tuple[str, ...]:
        """Return the clip's labels of a body point."""
        return tuple(dict.fromkeys(label for labels in self._chosen[point].values() for label in labels))

    def inputs(self, point: str) -> dict[str, tuple[str, ...]]:
        """Return the clip's labels averaged for each rule input."""
        return {name: tuple(labels) for name, labels in self._chosen[point].items()}

    def locate(self, clip: MarkerClip | None = None) -> dict[str, np.ndarray]:
        """Return body point -> path (T, 3) [m], clip axes; NaN: missing.

        Args:
            clip: other positions of the same labels; default: own clip.
        """
        clip = clip or self.clip
        located = {}
        for point, inputs in self._chosen.items():
            means = {name: np.mean([clip.marker(label) for label in labels], axis=0) for name, labels in inputs.items()}
            rule = self.marker_set.points[point]
            located[point] = rule.function(rule.side, **means) if rule.function else means[point]
        return located


@cache
def builtin_marker_set(name: str) -> MarkerSet:
    """Return a built-in set, or raise UnknownNameError."""
    if name not in MARKER_SETS:
        raise UnknownNameError("marker set", name, MARKER_SETS, "(a set of your own: give the path of its .yaml file)")
    return read_marker_set(_FOLDER / f"{name}.yaml", name)


def find_marker_set(marker_set: str | Path | MarkerSet) -> MarkerSet:
    """Return a set by name, file or itself; UnknownNameError or ClipError if invalid."""
    if isinstance(marker_set, MarkerSet):
        return marker_set
    path = Path(marker_set)
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_marker_set(path, str(path))
    return builtin_marker_set(str(marker_set))


def _choose(clip: MarkerClip, labels: Labels) -> MarkerSet:
    """Return the fitting built-in set with the most body points."""
    sets = [builtin_marker_set(name) for name in MARKER_SETS]
    fitting = [s for s in sets if not _missing(s, labels)]
    if fitting:
        return max(fitting, key=lambda s: sum(_has(rule, labels) for rule in s.points.values()))
    known = {s.name: sum(label in labels for label in _vocabulary(s)) for s in sets}
    if not any(known.values()):
        raise ClipError(
            f"clip '{clip.name}' ({clip.source}): no marker set fits: none of its {len(clip.labels)} labels "
            f"({', '.join(clip.labels[:3])}, ...) belongs to one: `humanoid clip` drafts a set (docs/adding_a_clip.md)"
        )
    lacking = {s.name: sum(not _has(s.points[point], labels) for point in _NEEDED) for s in sets}
    nearest = min(sets, key=lambda s: (lacking[s.name], -known[s.name], len(_missing(s, labels))))
    raise ClipError(_misfit(clip, labels, nearest, "no marker set fits, the nearest"))


@dataclass(frozen=True)
class SetMatch:
    """Built-in marker set compared with a clip.

    Attributes:
        points: body points with markers in the clip.
        missing: absent label -> required body points; empty: the set fits.
        unknown: labels unknown to the set.
    """

    name: str
    points: tuple[str, ...]
    missing: Mapping[str, Sequence[str]]
    unknown: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """True if the set gives every required point."""
        return not self.missing


def match_sets(clip: MarkerClip) -> list[SetMatch]:
    """Return all built-in sets compared with a clip, best first."""
    labels = plain_labels(clip)
    matches = []
    for marker_set in (builtin_marker_set(name) for name in MARKER_SETS):
        known = _vocabulary(marker_set)
        points = tuple(point for point, rule in marker_set.points.items() if _has(rule, labels))
        unknown = tuple(same[0] for plain, same in labels.items() if plain not in known)
        matches.append(SetMatch(marker_set.name, points, _missing(marker_set, labels), unknown))
    return sorted(matches, key=lambda m: (not m.fits, -len(m.points), len(m.missing), len(m.unknown)))


def _single(clip: MarkerClip, found: list[tuple[str, ...]]) -> list[str]:
    """Return each label, or raise ClipError if several subjects have it."""
    for same in found:
        if len(same) > 1:
            raise ClipError(
                f"clip '{clip.name}': {' and '.join(same[:3])} are the same marker of several subjects: keep one of "
                "them with clip.select(labels)"
            )
    return [same[0] for same in found]


def _has(rule: MarkerSetRule, labels: Labels) -> bool:
    return all(pick_labels(alternatives, labels) for alternatives in rule.inputs.values())


def _missing(marker_set: MarkerSet, labels: Labels) -> dict[str, list[str]]:
    """Return absent label -> required body points."""
    missing: dict[str, list[str]] = {}
    for point in _NEEDED:
        for alternatives in marker_set.points[point].inputs.values():
            if not pick_labels(alternatives, labels):
                for label in alternatives[0]:
                    if plain_label(label) not in labels:
                        missing.setdefault(label, []).append(point)
    return missing


def _vocabulary(marker_set: MarkerSet) -> dict[str, str]:
    """Return all labels of a set by their plain form."""
    used = (
        label
        for rule in marker_set.points.values()
        for alternatives in rule.inputs.values()
        for option in alternatives
        for label in option
    )
    return {plain_label(label): label for label in (*used, *marker_set.unused)}


def _strangers(labels: Labels, marker_set: MarkerSet) -> tuple[str, ...]:
    """Warn of skeleton joints unknown to the set."""
    known = _vocabulary(marker_set)
    if not marker_set.unused:
        return ()
    strange = [
        f"{same[0]}{f' (nearest: {near})' if (near := ', '.join(nearest_names(plain, known.values(), 2))) else ''}"
        for plain, same in labels.items()
        if plain not in known and plain.removesuffix("_end") not in known
    ]
    if not strange:
        return ()
    return (f"marker set '{marker_set.name}' does not know {first_few(strange)}: not used",)


def _misfit(clip: MarkerClip, labels: Labels, marker_set: MarkerSet, opening: str) -> str:
    known = _vocabulary(marker_set)
    strange = [same[0].rpartition(":")[2] for plain, same in labels.items() if plain not in known]
    described = []
    for label, points in _missing(marker_set, labels).items():
        near = nearest_names(label, strange)[:1]
        described.append(f"{label} (for {', '.join(points)}{f'; is it {near[0]}?' if near else ''})")
    strangers = "".join(f"; {warning.removesuffix(': not used')}" for warning in _strangers(labels, marker_set))
    return (
        f"clip '{clip.name}' ({clip.source}): {opening} '{marker_set.name}' misses {', '.join(described)}{strangers}: "
        "rename the labels, or let `humanoid clip` draft a marker set (docs/adding_a_clip.md)"
    )
