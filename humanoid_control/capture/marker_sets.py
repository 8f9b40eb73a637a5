"""Which marker set fits a clip, and where the body points are by it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.marker_set_file import (
    ESTIMATED,
    REQUIRED,
    MarkerSet,
    Recipe,
    read_marker_set,
)
from humanoid_control.capture.plain_labels import Labels, pick_labels, plain_label, plain_labels
from humanoid_control.errors import ClipError, UnknownNameError, nearest_names

_NEEDED = tuple(point for point in REQUIRED if point not in ESTIMATED)
_LISTED = 4  # names that a message lists one by one
_FOLDER = Path(__file__).parent / "marker_sets"
MARKER_SETS = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


class BodyLocator:
    """A marker set applied to one clip: knows which of the clip's labels make which body point.

    `marker_set` is the set, `warnings` name the joints of a skeleton that its set does not know. The sternum may be
    missing: it can be estimated.

    Args:
        clip: the markers.
        marker_set: name of a built-in set, path of a YAML file, or None to choose the built-in set that fits best.

    Raises:
        ClipError: the clip lacks labels of the set, or of every set; the message names them.
        UnknownNameError: no such set and no such file.
    """

    def __init__(self, clip: MarkerClip, marker_set: str | Path | None = None) -> None:
        self.clip = clip
        labels = plain_labels(clip)
        self.marker_set = _choose(clip, labels) if marker_set is None else find_marker_set(marker_set)
        if _missing(self.marker_set, labels):
            raise ClipError(_misfit(clip, labels, self.marker_set, "marker set"))
        self.warnings = _strangers(labels, self.marker_set)
        self._chosen: dict[str, dict[str, list[str]]] = {}
        for point, recipe in self.marker_set.points.items():
            inputs = {name: pick_labels(alternatives, labels) for name, alternatives in recipe.inputs.items()}
            if all(inputs.values()):
                self._chosen[point] = {name: _single(clip, found) for name, found in inputs.items() if found}

    @property
    def points(self) -> tuple[str, ...]:
        """Names of the body points that the clip has markers for."""
        return tuple(self._chosen)

    def labels(self, point: str) -> tuple[str, ...]:
        """The clip's labels that a body point is made of."""
        return tuple(dict.fromkeys(label for labels in self._chosen[point].values() for label in labels))

    def inputs(self, point: str) -> dict[str, tuple[str, ...]]:
        """The clip's labels that are averaged for each input of a body point's recipe."""
        return {name: tuple(labels) for name, labels in self._chosen[point].items()}

    def locate(self, clip: MarkerClip | None = None) -> dict[str, np.ndarray]:
        """Where the body points are.

        Args:
            clip: other positions under the same labels (for instance with gaps filled); by default the own clip.

        Returns:
            (T, 3) by body point [m], in the axes of the clip; NaN where one of its markers is missing.
        """
        clip = clip or self.clip
        located = {}
        for point, inputs in self._chosen.items():
            means = {name: np.mean([clip.marker(label) for label in labels], axis=0) for name, labels in inputs.items()}
            recipe = self.marker_set.points[point]
            located[point] = recipe.rule(recipe.side, **means) if recipe.rule else means[point]
        return located


@cache
def builtin_marker_set(name: str) -> MarkerSet:
    """A set that comes with the package. Raises UnknownNameError for another name than those of `MARKER_SETS`."""
    if name not in MARKER_SETS:
        raise UnknownNameError("marker set", name, MARKER_SETS, "(a set of your own: give the path of its .yaml file)")
    return read_marker_set(_FOLDER / f"{name}.yaml", name)


def find_marker_set(marker_set: str | Path) -> MarkerSet:
    """A built-in set by name, or a file. Raises UnknownNameError or ClipError."""
    path = Path(marker_set)
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_marker_set(path, str(path))
    return builtin_marker_set(str(marker_set))


def _choose(clip: MarkerClip, labels: Labels) -> MarkerSet:
    """The built-in set that fits and gives the most body points."""
    sets = [builtin_marker_set(name) for name in MARKER_SETS]
    fitting = [s for s in sets if not _missing(s, labels)]
    if fitting:
        return max(fitting, key=lambda s: sum(_has(recipe, labels) for recipe in s.points.values()))
    known = {s.name: sum(label in labels for label in _vocabulary(s)) for s in sets}
    if not any(known.values()):
        raise ClipError(
            f"clip '{clip.name}' ({clip.source}): no marker set fits: none of its {len(clip.labels)} labels "
            f"({', '.join(clip.labels[:3])}, ...) belongs to one: give a marker set of your own (docs/adding_a_clip.md)"
        )
    lacking = {s.name: sum(not _has(s.points[point], labels) for point in _NEEDED) for s in sets}
    nearest = min(sets, key=lambda s: (lacking[s.name], -known[s.name], len(_missing(s, labels))))
    raise ClipError(_misfit(clip, labels, nearest, "no marker set fits, the nearest"))


def _single(clip: MarkerClip, found: list[tuple[str, ...]]) -> list[str]:
    """Each label of an alternative, which must be there only once."""
    for same in found:
        if len(same) > 1:
            raise ClipError(
                f"clip '{clip.name}': {' and '.join(same[:3])} are the same marker of several subjects: "
                "keep one of them, clip.select(labels) does it"
            )
    return [same[0] for same in found]


def _has(recipe: Recipe, labels: Labels) -> bool:
    """Whether the clip has what a body point needs."""
    return all(pick_labels(alternatives, labels) for alternatives in recipe.inputs.values())


def _missing(marker_set: MarkerSet, labels: Labels) -> dict[str, list[str]]:
    """Labels the clip lacks, each with the required body points it is needed for; the first alternative counts."""
    missing: dict[str, list[str]] = {}
    for point in _NEEDED:
        for alternatives in marker_set.points[point].inputs.values():
            if not pick_labels(alternatives, labels):
                for label in alternatives[0]:
                    if plain_label(label) not in labels:
                        missing.setdefault(label, []).append(point)
    return missing


def _vocabulary(marker_set: MarkerSet) -> dict[str, str]:
    """Every label a set knows, by its plain form."""
    used = (
        label
        for recipe in marker_set.points.values()
        for alternatives in recipe.inputs.values()
        for option in alternatives
        for label in option
    )
    return {plain_label(label): label for label in (*used, *marker_set.unused)}


def _strangers(labels: Labels, marker_set: MarkerSet) -> tuple[str, ...]:
    """A warning that names the joints a skeleton's set does not know, and the nearest it knows."""
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
    more = f" and {len(strange) - _LISTED} more" if len(strange) > _LISTED else ""
    return (f"marker set '{marker_set.name}' does not know {', '.join(strange[:_LISTED])}{more}: not used",)


def _misfit(clip: MarkerClip, labels: Labels, marker_set: MarkerSet, opening: str) -> str:
    """The message for a clip that lacks labels of a set."""
    known = _vocabulary(marker_set)
    strange = [same[0].rpartition(":")[2] for plain, same in labels.items() if plain not in known]
    described = []
    for label, points in _missing(marker_set, labels).items():
        near = nearest_names(label, strange)[:1]
        described.append(f"{label} (for {', '.join(points)}{f'; is it {near[0]}?' if near else ''})")
    strangers = "".join(f"; {warning.removesuffix(': not used')}" for warning in _strangers(labels, marker_set))
    return (
        f"clip '{clip.name}' ({clip.source}): {opening} '{marker_set.name}' misses {', '.join(described)}{strangers}: "
        "rename the labels or give a marker set of your own (docs/adding_a_clip.md)"
    )
