"""The nine shapes on which bounding volumes are compared (Dube 2012, section 4.3.1), with sizes of a person."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

ELLIPSE, RECTANGLE, BALL = "ellipse", "rectangle", "ball"


@dataclass(frozen=True)
class TestShape:
    """A cylinder or frustum on an elliptic or rectangular profile, or an ellipsoid; upright, its base at z = 0.

    Attributes:
        name: as in the source.
        profile: ELLIPSE (a = b: circle), RECTANGLE (a = b: square), or BALL for sphere and ellipsoid.
        a, b: half width and half depth of the base [m].
        h: height [m]; of a ball its half axis along z.
        top: size of the top profile relative to the base; 1 for a cylinder.
    """

    __test__ = False  # not a test case, whatever the name suggests

    name: str
    profile: str
    a: float
    b: float
    h: float
    top: float = 1.0

    def volume(self) -> float:
        """Volume [m^3] (Dube 2012, Table 4.1)."""
        if self.profile == BALL:
            return 4 / 3 * math.pi * self.a * self.b * self.h
        base = (math.pi if self.profile == ELLIPSE else 4.0) * self.a * self.b
        end = base * self.top**2
        return self.h / 3 * (base + end + math.sqrt(base * end))

    def outer_radius(self) -> float:
        """Radius of the smallest circle around the base [m]: half the diagonal, or the semi-major axis."""
        return math.hypot(self.a, self.b) if self.profile == RECTANGLE else max(self.a, self.b)

    def holds(self, x: np.ndarray) -> np.ndarray:
        """Which of the points x (n, 3) lie in the shape."""
        if self.profile == BALL:
            return (x[:, 0] / self.a) ** 2 + (x[:, 1] / self.b) ** 2 + (x[:, 2] / self.h) ** 2 <= 1
        scale = 1 + (self.top - 1) * x[:, 2] / self.h
        u, v = x[:, 0] / (self.a * scale), x[:, 1] / (self.b * scale)
        flat = u * u + v * v <= 1 if self.profile == ELLIPSE else (np.abs(u) <= 1) & (np.abs(v) <= 1)
        return flat & (x[:, 2] >= 0) & (x[:, 2] <= self.h)


def nine_shapes() -> tuple[TestShape, ...]:
    """The nine shapes in the size of an average adult (Dube 2012, Table 2.1); the source's own sizes are not printed.

    Torso 465 mm wide, 250 mm deep, 555 mm tall; abdomen 270 mm deep; upper arm 365 mm long, 316 mm around; forearm 270
    mm long, 265 mm around, 167 mm at the wrist.
    """
    w, d, tall = 0.465 / 2, 0.250 / 2, 0.555
    arm, forearm, taper = 0.316 / (2 * math.pi), 0.265 / (2 * math.pi), 167 / 265
    return (
        TestShape("elliptical cylinder", ELLIPSE, w, d, tall),
        TestShape("rectangular cylinder", RECTANGLE, w, d, tall),
        TestShape("circular cylinder", ELLIPSE, arm, arm, 0.365),
        TestShape("elliptical frustum", ELLIPSE, w, d, tall, taper),
        TestShape("circular frustum", ELLIPSE, forearm, forearm, 0.270, taper),
        TestShape("pyramidal frustum", RECTANGLE, forearm, forearm, 0.270, taper),
        TestShape("cube", RECTANGLE, d, d, 2 * d),
        TestShape("sphere", BALL, d, d, d),
        TestShape("ellipsoid", BALL, w, 0.270 / 2, d),
    )


def random_nine_shapes(rng: np.random.Generator) -> tuple[TestShape, ...]:
    """The nine shapes in random sizes: widths 10-50 cm, depths 0.4-1 of that, heights 10-60 cm, tops 0.4-0.9."""

    def draw(name: str, profile: str, regular: bool, frustum: bool) -> TestShape:
        a = rng.uniform(0.05, 0.25)
        b = a if regular else a * rng.uniform(0.4, 1.0)
        return TestShape(name, profile, a, b, rng.uniform(0.1, 0.6), rng.uniform(0.4, 0.9) if frustum else 1.0)

    side, r, a = rng.uniform(0.05, 0.25, 3)
    b, c = a * rng.uniform(0.4, 1.0, 2)
    return (
        draw("elliptical cylinder", ELLIPSE, False, False),
        draw("rectangular cylinder", RECTANGLE, False, False),
        draw("circular cylinder", ELLIPSE, True, False),
        draw("elliptical frustum", ELLIPSE, False, True),
        draw("circular frustum", ELLIPSE, True, True),
        draw("pyramidal frustum", RECTANGLE, True, True),
        TestShape("cube", RECTANGLE, side, side, 2 * side),
        TestShape("sphere", BALL, r, r, r),
        TestShape("ellipsoid", BALL, a, b, c),
    )
