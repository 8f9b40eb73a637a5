"""Draft of a marker set for unknown labels, from words and geometry.

Constant bone lengths decide ambiguous labels ("LeftArm", "LeftShoulder") and find unnamed joints. Guesses are marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from humanoid_control.documents import yaml_text
from humanoid_control.errors import ClipError
from humanoid_control.files import whole_file
from humanoid_control.mocap.body_points import find_body_points
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.label_geometry import LENGTH, RIGID, Candidate, LabelGeometry, find_limb
from humanoid_control.mocap.label_words import (
    LEVELS,
    PARTS,
    SEGMENTS,
    SIDELESS,
    SPINE,
    LabelWord,
    read_labels,
    split_label,
)
from humanoid_control.mocap.marker_sets import (
    ESTIMATED,
    OPTIONAL,
    REQUIRED,
    Alternatives,
    MarkerSet,
    MarkerSetRule,
    plain_label,
    plain_labels,
)

# -------- candidates


@dataclass(frozen=True)
class DraftEntry:
    """Entry of a draft.

    Attributes:
        labels: alternatives; empty for a rule.
        how: how it was found.
        weak: a guess.
        rule: name; "": at its markers.
    """

    labels: Alternatives
    how: str
    weak: bool = False
    rule: str = ""


@dataclass(frozen=True)
class Draft:
    """Drafted marker set of a clip.

    Attributes:
        skeleton: joints, else markers on the skin.
        landmarks: entries by name.
        points: entries by name.
        unused: labels without an entry.
    """

    clip: MarkerClip
    skeleton: bool
    landmarks: Mapping[str, DraftEntry]
    points: Mapping[str, DraftEntry]
    unused: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Required points that were not found."""
        return tuple(point for point in REQUIRED if point not in self.points and point not in ESTIMATED)


# -------- geometry

_LOOSE = 0.12  # relative deviation of the length above which it is not a bone
_TRUNK_LOOSE = 0.15  # relative deviation of the distance from shoulder to hips: the spine bends
_FOLDED = 0.6  # of the outer bone: the joint at the trunk seldom comes as near to its end
_TOGETHER = 0.2  # [m] labels of one word farther apart are not one point ...
_HEAD = 0.35  # [m] ... except on a head
_BONES = {"arm": ("shoulder", "elbow", "wrist"), "leg": ("hip", "knee", "ankle")}
_ALIKE = 1.35  # ratio of left and right bones
_MIRRORED = 1.2  # the same for an unnamed joint
_UNNAMED = 40  # labels tried for an unnamed joint
_ACROMION = next(level for level, line in enumerate(PARTS["shoulder"]) if "acromion" in line.split())
_UPPER_ARM = {"arm", *PARTS["shoulder"][1].split()}


# -------- the draft


@dataclass
class _Drafter:
    """Draft under construction."""

    words: list[LabelWord]
    geometry: LabelGeometry
    skeleton: bool
    landmarks: dict[str, DraftEntry] = field(default_factory=dict)
    points: dict[str, DraftEntry] = field(default_factory=dict)

    def candidates(self, part: str, side: str) -> list[Candidate]:
        """Return groups of labels for a part of the body, clearest word first."""
        groups: dict[tuple[int, str], list[LabelWord]] = {}
        spoken = {word.word for word in self.words if word.side == side}
        for word in self.words:
            level = LEVELS.get((part, word.word))
            if level is None or word.tip or (word.side != side and part not in SIDELESS):
                continue
            if self.skeleton and part == "shoulder" and level == _ACROMION and spoken & _UPPER_ARM:
                continue  # the clavicle joint is called shoulder if the shoulder joint is called arm
            if not self.skeleton and word.word in SEGMENTS and part != "toe" and not self.only_segments():
                continue
            groups.setdefault((level, word.word if self.skeleton else ""), []).append(word)
        return [self._group(level, words) for (level, _), words in sorted(groups.items())]

    def tips(self, part: str, side: str) -> list[str]:
        """Return labels of the far end of a part's bone."""
        return [
            word.label
            for word in self.words
            if word.tip and (part, word.word) in LEVELS and (word.side == side or part in SIDELESS)
        ][:1]

    def only_segments(self) -> bool:
        """Return True without elbow or knee labels: segment words stand for joints."""
        clear = {w for part in ("elbow", "knee") for w in " ".join(PARTS[part][:3]).split()} - set(SEGMENTS)
        return not any(word.word in clear for word in self.words)

    def _group(self, level: int, words: list[LabelWord]) -> Candidate:
        """Return one candidate: first skeleton joint, or all adjacent markers."""
        words = sorted(words, key=lambda w: w.number)
        if self.skeleton:
            words = words[:1]
        else:
            tops = [w for w in words if "top" in split_label(w.label)]
            near = _HEAD if ("head", words[0].word) in LEVELS else _TOGETHER
            words = tops or [
                w for w in words if w is words[0] or self.geometry.bone([words[0].label], [w.label])[0] < near
            ]
        return Candidate(tuple(words), level, any(w.odd for w in words))

    def add(self, point: str, found: Candidate, sure: bool, note: str = "") -> None:
        """Add an entry for a point."""
        how = note or ("misspelt?" if found.odd else "by name" if sure else "by name, not confirmed by the bones")
        self.points[point] = DraftEntry((found.labels,), how, not sure or found.odd)

    def used(self) -> set[str]:
        """Return the labels of all entries."""
        entries = [*self.points.values(), *self.landmarks.values()]
        return {label for entry in entries for labels in entry.labels for label in labels}

    def pelvis(self) -> None:
        """Add pelvis landmarks for hip rules, else hips by name."""
        asis = [self.candidates("asis", side)[:1] for side in "lr"]
        psis = [self.candidates("psis", side)[:1] for side in "lr"]
        sacrum = self.candidates("sacrum", "")[:1]
        joint = all(c and c[0].level == 0 for c in (self.candidates("hip", side) for side in "lr"))
        if self.skeleton or joint or not all(asis):
            return
        back: list[tuple[str, ...]] = [(*psis[0][0].labels, *psis[1][0].labels)] if all(psis) else []
        back += [sacrum[0].labels] if sacrum else []
        if not back:
            for side, found in zip("lr", asis, strict=True):
                self.add(
                    f"{side}_hip", found[0], False, "on the front of the pelvis, 10 cm from the joint: no marker behind"
                )
            return
        for side, found in zip("lr", asis, strict=True):
            self.landmarks[f"{side}_asis"] = DraftEntry((found[0].labels,), "by name")
            self.points[f"{side}_hip"] = DraftEntry((), "from the pelvis markers", False, "hip_centre")
        self.landmarks["mid_psis"] = DraftEntry(tuple(back), "by name")

    def limbs(self) -> None:
        """Add arms and legs by name, checked by bone lengths."""
        for limb, parts in _BONES.items():
            for side in "lr":
                names = [f"{side}_{part}" for part in parts]
                options = [
                    [] if name in self.points else self.candidates(part, side)
                    for name, part in zip(names, parts, strict=True)
                ]
                found, whole = find_limb(options, self.geometry, RIGID if self.skeleton else _LOOSE)
                for name, part, one in zip(names, parts, found, strict=True):
                    if one is not None:
                        confirmed = whole or (limb == "leg" and f"{side}_hip" in self.points and part != "hip")
                        clear = self.skeleton or one.level <= 2 or part == "wrist"
                        self.add(name, one, confirmed and clear)

    def shoulders(self) -> None:
        """Turn acromion markers into shoulder centres if the pelvis is known."""
        if self.skeleton or not {"l_shoulder", "r_shoulder"} <= set(self.points):
            return
        shoulders = [self.points[f"{side}_shoulder"].labels[0][0] for side in "lr"]
        words = [word.word for word in self.words if word.label in shoulders]
        if any(LEVELS.get(("shoulder", word)) != _ACROMION for word in words):
            return
        rule = {"l_asis", "r_asis", "mid_psis"} <= set(self.landmarks)
        for side in "lr":
            entry = self.points[f"{side}_shoulder"]
            if rule:
                self.landmarks[f"{side}_acromion"] = entry
                self.points[f"{side}_shoulder"] = DraftEntry(
                    (), "below the marker on the acromion", entry.weak, "shoulder_centre"
                )
            elif {"l_asis", "r_asis"} & set(self.landmarks):
                self.points[f"{side}_shoulder"] = DraftEntry(
                    entry.labels, "above the joint: no pelvis as a reference", True
                )

    def feet_head_and_sternum(self) -> None:
        """Add the optional points and the sternum."""
        for side in "lr":
            for part in ("toe", "heel"):
                options = [c for c in self.candidates(part, side) if not set(c.labels) & self.used()]
                if options:
                    self.add(f"{side}_{part}", options[0], options[0].level < 2)
                if options and part == "toe" and self.skeleton and (tips := self.tips(part, side)):
                    entry = self.points[f"{side}_toe"]
                    self.points[f"{side}_toe"] = replace(entry, labels=((tips[0],), *entry.labels))
        if heads := self.candidates("head", ""):
            self.add("head", heads[0], True)
            if self.skeleton and (tips := self.tips("head", "")):
                self.points["head"] = replace(
                    self.points["head"], labels=((*heads[0].labels, tips[0]), heads[0].labels)
                )
        if self.skeleton:
            clavicles = [
                [c for c in self.candidates("clavicle", side) if not set(c.labels) & self.used()][:1] for side in "lr"
            ]
            if all(clavicles) and self._inner(clavicles[0][0], clavicles[1][0]):
                labels = (*clavicles[0][0].labels, *clavicles[1][0].labels)
                self.points["sternum"] = DraftEntry((labels,), "between the inner ends of the clavicles")
                return
        sternum = [c for c in self.candidates("sternum", "") if not set(c.labels) & self.used()]
        if self.skeleton:
            sternum = [c for c in sternum if c.level < 2]  # the joint called chest is in the spine
        if sternum:
            self.points["sternum"] = DraftEntry(tuple(c.labels for c in sternum[:2]), "by name", sternum[0].level > 1)

    def _inner(self, left: Candidate, right: Candidate) -> bool:
        """Return True if points are much closer together than the shoulders."""
        if not {"l_shoulder", "r_shoulder"} <= set(self.points):
            return False
        ends = [self.points[f"{side}_shoulder"].labels[0] for side in "lr"]
        return self.geometry.bone(left.labels, right.labels)[0] < 0.6 * self.geometry.bone(*ends)[0]

    def lost_joints(self) -> None:
        """Add unnamed limb joints by constant bone lengths."""
        for parts in _BONES.values():
            for side, other in ("lr", "rl"):
                lost = [part for part in parts if f"{side}_{part}" not in self.points]
                named = [e for p in parts if (e := self.points.get(f"{side}_{p}")) is not None and e.labels]
                if not lost or not named:
                    continue
                mirror = [self.points.get(f"{other}_{part}") for part in parts]
                expected = [
                    self.geometry.bone(a.labels[0], b.labels[0])[0] if a and b and a.labels and b.labels else None
                    for a, b in pairwise(mirror)
                ]
                for part, label in self._by_bones(parts, side, expected).items():
                    self.points[f"{side}_{part}"] = DraftEntry(
                        ((label,),), "no name; its bones keep their length", True
                    )

    def _by_bones(self, parts: Sequence[str], side: str, expected: Sequence[float | None]) -> dict[str, str]:
        """Return unnamed labels for missing joints of a limb, or {}."""
        used = self.used()
        free = [
            w.label for w in self.words if not w.word and w.side in ("", side) and not w.tip and w.label not in used
        ]
        free = [label for label in free if not SPINE.match(label.casefold())][:_UNNAMED]
        entries = [self.points.get(f"{side}_{part}") for part in parts]
        options = [
            [e.labels[0]]
            if e and e.labels
            else [()]
            if e
            else [(x,) for x in free if part != parts[0] or self._on_trunk(x)]
            for part, e in zip(parts, entries, strict=True)
        ]
        best: tuple[float, tuple[tuple[str, ...], ...]] = (_LOOSE / 2, ())
        for chosen in product(*options):
            if len(set(chosen)) < len(chosen):
                continue
            inner, middle, outer = chosen
            if (
                inner
                and middle
                and outer
                and not (self.geometry.bone(inner, outer)[0] > _FOLDED * self.geometry.bone(middle, outer)[0])
            ):  # not a shoulder: a hand marker also keeps its distance from the elbow
                continue
            worst = 0.0
            for (a, b), other in zip(pairwise(chosen), expected, strict=True):
                if not a or not b:
                    continue
                length, loose = self.geometry.bone(a, b)
                low, high = (other / _MIRRORED, other * _MIRRORED) if other else (2 * LENGTH[0], LENGTH[1])
                worst = max(worst, loose if low < length < high else 1.0)
            if worst < best[0]:
                best = (worst, chosen)
        return {p: c[0] for p, c, e in zip(parts, best[1], entries, strict=True) if e is None} if best[1] else {}

    def _on_trunk(self, label: str) -> bool:
        """Return True at constant distance from hips and shoulders."""
        known = ("l_hip", "r_hip", "l_shoulder", "r_shoulder")
        entries = [self.points[n] for n in known if n in self.points] + list(self.landmarks.values())
        references = [e.labels[0] for e in entries if e.labels and label not in e.labels[0]]
        loose = [self.geometry.bone((label,), reference)[1] for reference in references]
        return not loose or float(np.median(loose)) < _TRUNK_LOOSE

    def compare_sides(self) -> None:
        """Mark joints as guesses if left and right bones differ."""
        for parts in _BONES.values():
            for a, b in pairwise(parts):
                ends = [[self.points.get(f"{side}_{part}") for part in (a, b)] for side in "lr"]
                if not all(e is not None and e.labels for pair in ends for e in pair):
                    continue
                lengths = [self.geometry.bone(p.labels[0], q.labels[0])[0] for p, q in ends]  # type: ignore[union-attr]
                if not 1 / _ALIKE < lengths[0] / max(lengths[1], 1e-6) < _ALIKE:
                    for side in "lr":
                        entry = self.points[f"{side}_{b}"]
                        how = f"left and right bone are {lengths[0]:.2f} and {lengths[1]:.2f} m long"
                        self.points[f"{side}_{b}"] = DraftEntry(entry.labels, how, True)


def draft_marker_set(clip: MarkerClip) -> Draft:
    """Return a draft for a clip of one person in metres."""
    seen = {_written(clip, same[0], plain): same[0] for plain, same in plain_labels(clip).items()}
    geometry = LabelGeometry(clip, seen)
    words = read_labels(list(seen))
    skeleton = clip.noun == "joint" or geometry.rigid([word.label for word in words if word.word])
    drafter = _Drafter(words, geometry, skeleton)
    drafter.pelvis()
    drafter.limbs()
    drafter.lost_joints()
    drafter.compare_sides()
    drafter.shoulders()
    drafter.feet_head_and_sternum()
    used = drafter.used()
    return Draft(
        clip,
        drafter.skeleton,
        {name: drafter.landmarks[name] for name in ("l_asis", "r_asis", "mid_psis", "l_acromion", "r_acromion")
         if name in drafter.landmarks},
        {name: drafter.points[name] for name in REQUIRED + OPTIONAL if name in drafter.points},
        tuple(label for label in seen if label not in used),
    )  # fmt: skip


def _written(clip: MarkerClip, label: str, plain: str) -> str:
    """Return the clip's spelling without the character name."""
    short = label.rpartition(":")[2].strip()
    return short[len(short) - len(plain) :] if short.casefold().endswith(plain) else plain


# -------- file


def draft_text(draft: Draft) -> str:
    """Return the draft as YAML with remarks."""
    kind = "joints of a skeleton" if draft.skeleton else "markers"
    lines = [
        f"# Drafted from labels and geometry of {draft.clip.name}: check every line, especially those marked GUESS.",
        "# See docs/adding_a_clip.md for the other keys.",
        f"about: {kind} as in {yaml_text(draft.clip.name)}",
    ]
    if draft.landmarks:
        lines += ["", "landmarks:  # markers on bones, which the rules need"]
        lines += [_line(name, entry) for name, entry in draft.landmarks.items()]
    lines += ["", "points:"]
    lines += [_line(name, entry) for name, entry in draft.points.items()]
    lines += [f"  # {name}: []  # MISSING: write its label here" for name in draft.missing]
    if "sternum" not in draft.points:
        lines.append("  # sternum: none found: it is estimated from hips and shoulders")
    if draft.unused:
        lines += ["", f"unused: [{', '.join(yaml_text(label) for label in draft.unused)}]"]
    return "\n".join(lines) + "\n"


def _line(name: str, entry: DraftEntry) -> str:
    lists = [f"[{', '.join(yaml_text(label) for label in labels)}]" for labels in entry.labels]
    what = f"{{rule: {entry.rule}}}" if entry.rule else lists[0] if len(lists) == 1 else f"[{', '.join(lists)}]"
    return f"  {name}: {what}  # {'GUESS, ' if entry.weak else ''}{entry.how}"


def write_draft(clip: MarkerClip, path: Path) -> tuple[Draft, str]:
    """Write a draft for `find_body_points`; return it, and why it is not sufficient yet, or "".

    Args:
        path: new .yaml file.

    Raises:
        ClipError: if the path is not a new .yaml file, or no point was found.
        ConfigError: if it cannot be written.
    """
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise ClipError(f"{path}: a marker set is a .yaml file")
    if path.exists():
        raise ClipError(f"{path} exists already: move it to draft it again")
    draft = draft_marker_set(clip)
    if not draft.points:
        raise ClipError(
            f"clip '{clip.name}' ({clip.source}): none of its {len(clip.labels)} labels "
            f"({', '.join(clip.labels[:3])}, ...) names a part of the body: write the marker set by hand "
            "(docs/adding_a_clip.md)"
        )
    with whole_file(path) as part:
        part.write_text(draft_text(draft), encoding="utf-8")
    try:
        find_body_points(clip, path)
    except ClipError as error:
        return draft, str(error)
    return draft, ""


def sure_marker_set(clip: MarkerClip) -> MarkerSet | None:
    """Return the certain points of a draft as a set, or None if incomplete."""
    draft = draft_marker_set(clip)
    labels = {name: e.labels for name, e in draft.points.items() if not (e.weak or e.rule)}
    if any(point not in labels for point in REQUIRED if point not in ESTIMATED):
        return None
    for head in labels.get("head", ())[-1:]:
        if plain_label(front := f"{head[0]}_front") in plain_labels(clip):
            labels["head_front"] = ((front,),)
    return MarkerSet("drafted", {name: MarkerSetRule({name: found}) for name, found in labels.items()})
