"""Joint centres of a fitted person for imitation, and bones to draw.

A joint centre is the joint origin in its moved body: limb lengths are constant. Imitation places the sternum between
hips and shoulders.
"""

from __future__ import annotations

import re

import numpy as np

from humanoid_control.human.analysis import SIDES
from humanoid_control.human.elements import GROUND
from humanoid_control.human.model import Person

PARTS = {
    "hip": r"femur|thigh|upper_?leg",
    "knee": r"tibia|shank|shin|lower_?leg",
    "ankle": r"talus|foot|calcn|hindfoot",
    "shoulder": r"humerus|upper_?arm",
    "elbow": r"ulna|radius|forearm|fore_?arm|lower_?arm",
    "wrist": r"hand|lunate|carp",
}
"""Point -> words of bodies attached to its joint; of several bodies, the earlier word, then the nearest to the trunk,
has priority."""
NEEDED = tuple(f"{side}_{part}" for part in ("hip", "shoulder", "elbow", "wrist") for side in "lr")


class PersonPoints:
    """Points and bones of a person.

    Attributes:
        names: of the K points, such as l_hip.
        missing: absent points that imitation needs.
        bones: (B, 2) indices of `person.bodies`.
    """

    def __init__(self, person: Person) -> None:
        self._child = np.array([j.C.p for j in person.joints], dtype=float)
        found: dict[str, int] = {}
        for part, words in PARTS.items():
            for side, pattern in SIDES.items():
                for word in words.split("|"):
                    own = [k for k, n in enumerate(person.body_names) if re.search(word, n, re.I) and pattern.search(n)]
                    if own:
                        found[f"{side[0]}_{part}"] = own[0]
                        break
        self.names = tuple(found)
        self.missing = tuple(name for name in NEEDED if name not in found)
        self._bodies = np.array(list(found.values()), dtype=int)
        parent = {j.child: j.parent for j in person.joints}
        rows = [
            (person.body_index(parent[name]), k) for k, name in enumerate(person.body_names) if parent[name] != GROUND
        ]
        self.bones = np.array(rows, dtype=int).reshape(-1, 2)

    def joints(self, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return joint centres (nb, 3) [m] for body poses (nb, 3, 3), (nb, 3)."""
        return np.asarray(p + np.einsum("bij,bj->bi", R, self._child))

    def points(self, joints: np.ndarray) -> np.ndarray:
        """Return the points (K, 3) of `names` among joint centres (nb, 3)."""
        return joints[self._bodies]

    def segments(self, joints: np.ndarray) -> np.ndarray:
        """Return the ends (2 B, 3) of the bones, pair by pair."""
        return joints[self.bones].reshape(-1, 3)
