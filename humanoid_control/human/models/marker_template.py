"""Marker templates (humanoid_markers/1): marker places of a convention on a person.

Markers sit on landmarks of the model, or anywhere on a body (then the clip shows where). Templates are found by labels,
without subject and case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError, RobotError, UnknownNameError, first_few, shown, told_of
from humanoid_control.files import check_keys, check_row, known, list_of, rows_of, schema_file, text, texts
from humanoid_control.human.elements import Marker
from humanoid_control.human.marker_fit import LEAST_SHARE
from humanoid_control.human.models.person_file import LEFT, RIGHT, PersonFile
from humanoid_control.mocap import MarkerClip, plain_label

SCHEMA = "humanoid_markers/1"
FOLDER = Path(__file__).parent / "templates"
TEMPLATES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
FEWEST = 6  # markers that a template must share with a clip: a root and a limb
_KEYS = ("schema", "about", "markers", "computed", "computed_sides")


@dataclass(frozen=True)
class MarkerRow:
    """Marker: label, and landmark or body."""

    label: str
    landmark: str = ""
    body: str = ""


@dataclass(frozen=True)
class MarkerTemplate:
    """Convention of markers.

    Attributes:
        name: built-in name, or path.
        rows: markers of both sides.
        computed: labels of computed points: recognised, not fitted.
    """

    name: str
    about: str
    rows: tuple[MarkerRow, ...]
    computed: frozenset[str] = frozenset()

    def markers(self, file: PersonFile, labels: Sequence[str] | None = None) -> tuple[list[Marker], list[str]]:
        """Return markers in the zero posture for stature 1, and labels without place.

        Args:
            labels: of a clip; None: all.

        Raises:
            UnknownNameError: if a landmark or body is unknown.
        """
        wanted = None if labels is None else {plain_label(label) for label in labels}
        middle = _middles(file)
        out, loose = [], []
        for row in self.rows:
            if wanted is not None and plain_label(row.label) not in wanted:
                continue
            if row.body:
                body = known("body", row.body, file.sizes, f"marker '{row.label}' of {self.name}")
                out.append(Marker(row.label, body, middle[body], False))
                loose.append(row.label)
                continue
            place = file.landmarks[
                known("landmark", row.landmark, file.landmarks, f"marker '{row.label}' of {self.name}")
            ]
            out.append(Marker(row.label, place.body, place.at, place.bone))
        return out, loose


@dataclass(frozen=True)
class TemplateMatch:
    """Template matched to a clip.

    Attributes:
        found: labels of markers.
        computed: labels of computed points.
        unknown: other labels.
        runners_up: other templates with counts.
    """

    template: MarkerTemplate
    found: tuple[str, ...]
    computed: tuple[str, ...]
    unknown: tuple[str, ...]
    runners_up: dict[str, int] = field(default_factory=dict)

    def sentence(self) -> str:
        """Return a sentence on found and omitted labels."""
        text = f"markers: {self.template.name} ({self.template.about}), {len(self.found)} of them"
        text += f"; {len(self.computed)} computed points were ignored" if self.computed else ""
        if self.unknown:
            text += f"; unknown to it and ignored: {first_few(self.unknown, 6)}"
        return text


def read_template(path: Path, name: str = "") -> MarkerTemplate:
    """Read a template file; RobotError or UnknownNameError if invalid."""
    d = schema_file(path, SCHEMA, "template of markers")
    with told_of(path):
        check_keys(d, _KEYS, ("about", "markers"), "the file")
        rows: list[MarkerRow] = []
        for k, row in enumerate(list_of(d, "markers", "file")):
            rows += _rows(row, f"markers[{k}]")
        seen: set[str] = set()
        for one in rows:
            if plain_label(one.label) in seen:
                raise RobotError(f"the label '{shown(one.label)}' occurs more than once: keep one of them")
            seen.add(plain_label(one.label))
        if not rows:
            raise RobotError("lists no markers")
        computed = list(rows_of(d, "computed", "file"))
        computed += [side + str(label) for label in rows_of(d, "computed_sides", "file") for side in "RL"]
        return MarkerTemplate(
            name or str(path), text(d, "about", "file"), tuple(rows), frozenset(plain_label(str(c)) for c in computed)
        )


def find_template(clip: MarkerClip, name: str | Path | None = None) -> TemplateMatch:
    """Return the template by name or path, else the one that knows most labels.

    Raises:
        UnknownNameError: if there is no such template.
        RobotError: if its file is invalid.
        ClipError: if less than half of the labels match, or subjects share labels.
    """
    seen = dict(zip(clip.labels, np.isfinite(clip.positions).all(axis=2).mean(axis=0), strict=True))
    labels = [label for label in clip.labels if seen[label] > 0.0]
    _check_one_subject(clip, labels)
    if name is not None:
        return _match(load_template(name), labels, clip)
    matches = [_match(builtin_template(n), labels, None) for n in TEMPLATES]
    best = max(matches, key=lambda m: (len(m.found), len(m.computed), -len(m.template.rows)))
    others = {m.template.name: len(m.found) for m in matches if m is not best and m.found}
    if len(best.found) < FEWEST:
        nearest = (
            f"'{best.template.name}' knows {first_few(best.found)}"
            if best.found
            else "no template contains any of them"
        )
        raise ClipError(
            f"'{clip.name}': its {len(labels)} labels ({first_few(labels)}) match no known marker set ({nearest}): "
            "give --model with a model that has these markers, or --markers with a template (docs/human.md)"
        )
    known_share, unknown_share = (sum(seen[label] for label in group) for group in (best.found, best.unknown))
    if known_share < LEAST_SHARE * (known_share + unknown_share):
        count = len(best.found) + len(best.unknown)
        raise ClipError(
            f"'{clip.name}': no marker set matches its labels: {best.template.name} knows {len(best.found)} of {count} "
            f"({first_few(best.found)}), not {first_few(best.unknown)}: give --markers with a template of these "
            f"(docs/human.md), or --markers {best.template.name} if these {len(best.found)} are placed as in it"
        )
    return TemplateMatch(best.template, best.found, best.computed, best.unknown, others)


def load_template(name: str | Path) -> MarkerTemplate:
    """Return a built-in template or a file; UnknownNameError or RobotError if invalid."""
    path = Path(name)
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_template(path)
    if str(name) not in TEMPLATES:
        raise UnknownNameError("marker template", str(name), TEMPLATES, "(or give the path of a .yaml file)")
    return builtin_template(str(name))


@cache
def builtin_template(name: str) -> MarkerTemplate:
    """Return a template of the package."""
    return read_template(FOLDER / f"{name}.yaml", name)


def _match(template: MarkerTemplate, labels: list[str], clip: MarkerClip | None) -> TemplateMatch:
    known_labels = {plain_label(row.label) for row in template.rows}
    found = tuple(label for label in labels if plain_label(label) in known_labels)
    computed = tuple(label for label in labels if plain_label(label) in template.computed and label not in found)
    unknown = tuple(label for label in labels if label not in found and label not in computed)
    if clip is not None and len(found) < FEWEST:
        raise ClipError(
            f"'{clip.name}': {len(found)} of its labels ({first_few(labels)}) are markers of {template.name} "
            f"({first_few([r.label for r in template.rows])}): give another template, or none to have it found"
        )
    return TemplateMatch(template, found, computed, unknown)


def _check_one_subject(clip: MarkerClip, labels: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for label in labels:
        other = first.setdefault(plain_label(label), label)
        if other != label and ":" in label:
            raise ClipError(
                f"'{clip.name}': {other} and {label} are the same marker of two subjects: keep one subject in the file"
            )


def _rows(row: Any, where: str) -> list[MarkerRow]:
    """Return markers of [landmark, right label, left label], [landmark, label] or {body, labels: [right, left]}."""
    if isinstance(row, dict):
        keys = ("body", "labels")
        check_row(row, keys, where)
        check_keys(row, keys, keys, where)
        base, labels, loose = text(row, "body", where), texts(row, "labels", where), True
    else:
        if not (isinstance(row, list) and len(row) in (2, 3) and all(isinstance(v, str) and v for v in row)):
            raise RobotError(
                f"{where}: a marker is [landmark, right label, left label] or [landmark, label], got {shown(row)}"
            )
        base, labels, loose = row[0], tuple(row[1:]), False
    if len(labels) not in (1, 2):
        raise RobotError(f"{where}: 'labels' are one, or a right and a left one")
    names = (base + RIGHT, base + LEFT) if len(labels) == 2 else (base,)
    return [
        MarkerRow(label, body=name) if loose else MarkerRow(label, landmark=name)
        for label, name in zip(labels, names, strict=True)
    ]


def _middles(file: PersonFile) -> dict[str, np.ndarray]:
    """Return body -> middle between its joint and its children's."""
    at = {j.body: j.at for j in file.joints}
    ends: dict[str, list[np.ndarray]] = {body: [place] for body, place in at.items()}
    for j in file.joints:
        ends.get(j.parent, []).append(j.at)
    return {body: np.mean(places, axis=0) for body, places in ends.items()}
