"""The YAML file of a marker set: what each body point is made of, checked word by word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from humanoid_control.capture.joint_centres import hip_centre, shoulder_centre
from humanoid_control.errors import ClipError, nearest_names
from humanoid_control.yaml_file import read_yaml, why

REQUIRED = ("l_hip", "r_hip", "sternum", "l_shoulder", "r_shoulder", "l_elbow", "r_elbow", "l_wrist", "r_wrist")
ESTIMATED = ("sternum",)  # required too, but found from the others where no marker shows it
WRIST_SIDES = ("l_radius", "l_ulna", "r_radius", "r_ulna")  # where the thumb is, and opposite
OPTIONAL = ("head", "l_knee", "r_knee", "l_ankle", "r_ankle", "l_toe", "r_toe", "l_heel", "r_heel", *WRIST_SIDES)

_PELVIS = ("l_asis", "r_asis", "mid_psis")
_RULES: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "hip_centre": (hip_centre, _PELVIS),
    "shoulder_centre": (shoulder_centre, ("l_acromion", "r_acromion", *_PELVIS)),
}
LANDMARKS = _RULES["shoulder_centre"][1]

Alternatives = tuple[tuple[str, ...], ...]
"""Lists of labels in order of preference; the labels of the first list that a clip has are averaged."""


@dataclass(frozen=True)
class Recipe:
    """How one body point is made.

    Args:
        inputs: label alternatives by landmark; without a rule one entry, the point itself.
        rule: calculates the point from its inputs, each (T, 3); None takes the only input as it is.
        side: +1 left, -1 right: what the rule is told.
    """

    inputs: Mapping[str, Alternatives]
    rule: Callable[..., np.ndarray] | None = None
    side: int = 1


@dataclass(frozen=True)
class MarkerSet:
    """A naming convention of markers: one recipe for each body point it knows.

    Args:
        name: built-in name, or the path of the file.
        points: body point to recipe, in the order of `REQUIRED` and `OPTIONAL`.
        unused: labels of the convention that no body point needs. A set that lists them knows all its labels, so that
            others in a clip are worth a warning; skeletons do, marker sets do not.
    """

    name: str
    points: Mapping[str, Recipe]
    unused: frozenset[str] = frozenset()


def read_marker_set(path: Path, name: str) -> MarkerSet:
    """Read a marker set from YAML.

    Args:
        path: the file.
        name: what messages call the set.

    Raises:
        ClipError: unreadable, no YAML, an unknown body point, rule or landmark, a required point without recipe.
    """
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
            point: _recipe(point, given[point], landmarks, f"marker set {name}: {point}")
            for point in REQUIRED + OPTIONAL
            if point in given
        },
        frozenset(label for labels in unused for label in labels),
    )


def _recipe(point: str, value: Any, landmarks: Mapping[str, Alternatives], where: str) -> Recipe:
    """A point's entry: a list of labels, a list of such lists, or {rule: name}."""
    if not isinstance(value, dict):
        return Recipe({point: _alternatives(value, where)})
    rule = value.get("rule")
    if set(value) != {"rule"} or not isinstance(rule, str) or rule not in _RULES:
        raise ClipError(f"{where}: expected labels or {{rule: {' or '.join(_RULES)}}}, got {value}")
    function, needs = _RULES[rule]
    lacking = [landmark for landmark in needs if landmark not in landmarks]
    if lacking:
        raise ClipError(f"{where}: rule {rule} needs the landmark(s) {', '.join(lacking)}")
    return Recipe({name: landmarks[name] for name in needs}, function, side=-1 if point.startswith("r_") else 1)


def _alternatives_by_name(entries: Any, known: tuple[str, ...], where: str) -> dict[str, Alternatives]:
    """The landmarks section."""
    _check_names(entries, known, where)
    return {name: _alternatives(value, f"{where} {name}") for name, value in entries.items()}


def _check_names(entries: Any, known: tuple[str, ...], where: str) -> None:
    """Raise ClipError for a key that is not among the known ones."""
    for name in entries if isinstance(entries, dict) else [entries]:
        if name not in known:
            near = nearest_names(str(name), known)
            raise ClipError(f"{where} '{name}' is unknown: {f'did you mean {near[0]}?' if near else ', '.join(known)}")


def _alternatives(value: Any, where: str) -> Alternatives:
    """[A, B] or [[A, B], [C]] as alternatives."""
    lists = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for labels in lists:
        if not (isinstance(labels, list) and labels and all(isinstance(label, str) and label for label in labels)):
            raise ClipError(f"{where}: expected a list of labels or a list of such lists, got {value!r}")
    return tuple(tuple(labels) for labels in lists)
