"""Labels as anatomical words: side, part, place.

`RightForeArm`, `forearm.R`, `Bip01 R Forearm`, `RFRA` and `r_elbow` all name the right elbow.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_SIDES = {"l": "l", "left": "l", "lt": "l", "lft": "l", "r": "r", "right": "r", "rt": "r", "rgt": "r"}
_PLACES = {  # place of a marker on a part of the body
    "front": "front", "f": "front", "anterior": "front", "ant": "front", "fr": "front",
    "back": "back", "b": "back", "posterior": "back", "post": "back", "rear": "back",
    **dict.fromkeys(("in", "out", "inner", "outer", "inside", "outside", "med", "medial", "lat", "lateral", "int",
                     "ext", "top", "thumb", "pinky", "pinkie", "little", "rad", "uln", "a", "m"), "around"),
}  # fmt: skip
_NO_POINT = frozenset(
    ("twist", "roll", "helper", "ik", "pole", "index", "middle", "ring", "finger", "fingers", "fin", "fingertip",
     "knuckle", "eye", "jaw", "mouth", "tongue", "hair", "meta", "metacarpal", "inhand", "offset", "rot", "angles")
)  # fmt: skip
_NOTHING = ("c", "center", "centre", "mid", "site", "bone", "marker")
_TIPS = ("end", "tip", "nub", "leaf")

PARTS: dict[str, tuple[str, ...]] = {
    # Words of each part, clearest first; words of one line are equivalent.
    "hip": ("hjc hipjointcentre hipjointcenter hipcentre hipcenter",
            "upleg upperleg uleg legupper femur hip thighbend", "thigh", "trochanter troch gtr gtro hipjoint"),
    "knee": ("kjc kneejointcentre kneejointcenter kneecentre kneecenter",
             "knee kne lowerleg lowleg lleg leglower", "lfc mfc fle fme lfe mfe knl knm kni",
             "calf shin shank tibia crus", "leg"),
    "ankle": ("ajc anklejointcentre anklejointcenter anklecentre anklecenter", "ankle ank",
              "lmal mmal malleolus mal lm mm anl anm", "foot"),
    "toe": ("toe toes toebase bigtoe ball mtp football", "mt1 mt2 mt5 mth1 mth2 mth5 metatarsal", "foot"),
    "heel": ("heel hee calcaneus calcaneum calc cal",),
    "shoulder": ("gh gleno glenohumeral sjc shouldercentre shouldercenter shoulderjoint",
                 "upperarm uparm uarm armupper humerus shldr upperarmbend shldrbend",
                 "acromion acr acrom ac sho shoulder should", "arm"),
    "clavicle": ("clavicle collar clav sternoclavicular sc", "shoulder"),
    "elbow": ("ejc elbowjointcentre elbowjointcenter elbowcentre elbowcenter",
              "elbow elb elbw forearm lowerarm lowarm farm armlower forearmbend",
              "lel mel ele eme epl epm hle hme ell elm lepi mepi epicondyle", "radius"),
    "wrist": ("wjc wristjointcentre wristjointcenter wristcentre wristcenter",
              "wrist wri wra wrb wrr wru wrs",
              "rs us styloid radialstyloid ulnarstyloid radius ulna faradius faulna rsp usp",
              "hand palm"),
    "head": ("head hd fhd bhd skull headtop forehead fore vertex crown", "nose chin"),
    "asis": ("asis asi fwt wtf sias waistfront pelvisfront hipfront pelvfront iliacfront",),
    "psis": ("psis psi bwt wtb sips waistback pelvisback hipback pelvback iliacback",),
    "sacrum": ("sacrum sacr sacral sac vsacral mwt",),
    "sternum": ("clav jugular ij suprasternal manubrium", "sternum strn stern ster sternal xiphoid",
                "chest chestfront"),
}  # fmt: skip
_PELVIS = ("waist", "hip", "pelvis", "pelv", "iliac")  # with a place: marker on the bone, without: joint
SIDELESS = ("head", "sacrum", "sternum")
LEVELS = {
    (part, word): level for part, lines in PARTS.items() for level, line in enumerate(lines) for word in line.split()
}
_WORDS = {word for _, word in LEVELS}
SEGMENTS = ("thigh", "calf", "shin", "shank", "tibia", "upperarm", "uparm", "uarm", "forearm", "lowerarm", "farm",
             "leg", "arm", "upleg", "upperleg", "lowerleg", "humerus", "femur", "foot", "hand", "palm")  # fmt: skip
"""Segment words: in a skeleton, the joint at the inner end; as marker names, the middle of the bone."""
_ODD_WORD = 0.8  # similarity from which a misspelt word is matched
_LONG_WORD = 5  # letters; shorter words are ambiguous
SPINE = re.compile(r"^[ctl]\d+$")


@dataclass(frozen=True)
class LabelWord:
    """Parsed label.

    Attributes:
        side: "l", "r" or "".
        word: part of the body; "": none.
        place: "front", "back", "around" or "".
        number: for ordering.
        tip: far end of a bone.
        odd: misspelt.
    """

    label: str
    side: str
    word: str
    place: str = ""
    number: int = 0
    tip: bool = False
    odd: bool = False


def read_labels(labels: Sequence[str]) -> list[LabelWord]:
    """Return parsed labels without common words such as a character name."""
    split = [split_label(label) for label in labels]
    counts = Counter(token for tokens in split for token in set(tokens))
    common = {token for token, n in counts.items() if n > 0.7 * len(labels) and token not in _SIDES and len(labels) > 4}
    return [_read(label, [t for t in tokens if t not in common]) for label, tokens in zip(labels, split, strict=True)]


def split_label(label: str) -> list[str]:
    """Split a label at changes of case, digits and signs, in lower case."""
    return [t.lower() for t in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+", label)]


def _read(label: str, tokens: list[str]) -> LabelWord:
    number = int(next((t for t in reversed(tokens) if t.isdigit()), "0")[:6])
    compact = "".join(tokens)
    words = [t for t in tokens if not t.isdigit()]
    if SPINE.match(compact) or not words:
        return LabelWord(label, "", "")
    if any(_SIDES.get(t) for t in words):
        side = next(_SIDES[t] for t in words if t in _SIDES)
        rest = [t for k, t in enumerate(words) if k != words.index(next(w for w in words if w in _SIDES))]
    else:
        side, rest = _glued_side(words, compact)
    tip = any(t in _TIPS for t in rest)
    rest = [t for t in rest if t not in _TIPS and t not in _NOTHING]
    whole = "".join(rest)
    if any(t in _NO_POINT for t in rest):
        return LabelWord(label, side, "")
    if whole in _WORDS or f"{whole}{number}" in _WORDS:
        return LabelWord(label, side, whole if whole in _WORDS else f"{whole}{number}", "", number, tip)
    places = [_PLACES[t] for t in rest if t in _PLACES]
    part = "".join(t for t in rest if t not in _PLACES)
    place = places[0] if places else ""
    if part in _PELVIS and place in ("front", "back"):
        return LabelWord(label, side, f"{part}{place}", place, number, tip)
    if part in _WORDS:
        return LabelWord(label, side, part, place, number, tip)
    near = difflib.get_close_matches(part, [w for w in _WORDS if len(w) >= _LONG_WORD], 1, _ODD_WORD)
    return LabelWord(label, side, near[0] if near else "", place, number, tip, bool(near))


def _glued_side(words: list[str], compact: str) -> tuple[str, list[str]]:
    """Return side and other words of LSHO, SHO_FL, leftknee, LUArm."""
    for k, word in enumerate(words):
        if len(words) > 1 and word in ("fl", "fr", "bl", "br", "lf", "rf", "lb", "rb"):
            side = word[0] if word[0] in "lr" else word[1]
            return side, [*words[:k], word.replace(side, "", 1), *words[k + 1 :]]
    first, last = words[0], words[-1]
    for spelling, side in (("left", "l"), ("right", "r")):
        if first.startswith(spelling):
            return side, [first.removeprefix(spelling), *words[1:]]
        if last.endswith(spelling):
            return side, [*words[:-1], last.removesuffix(spelling)]
    whole = "".join(words)
    if whole[0] in "lr" and (_is_word(whole[1:], words) or compact[1:] in _WORDS):  # LMAL is the left malleolus
        return whole[0], [first[1:], *words[1:]] if len(first) > 1 else words[1:]
    if whole in _WORDS:
        return "", words
    if whole[-1] in "lr" and _is_word(whole[:-1], words):
        return whole[-1], [*words[:-1], last[:-1]]
    return "", words


def _is_word(text: str, words: list[str]) -> bool:
    """Return True for a known word, alone or with a place."""
    bare = text if len(words) == 1 else "".join(t for t in [text[: len(words[0]) - 1], *words[1:]] if t not in _PLACES)
    return text in _WORDS or text in _NO_POINT or bare in _WORDS
