"""Filmstrips: moments of a dance side by side, one row per robot.

```python
from pathlib import Path

from humanoid_control.mocap import load_body_points
from humanoid_control.viewer.dance.dancer import make_dancer
from humanoid_control.viewer.filmstrip import film_strip, strip_times

body = load_body_points("dance")
dancers = [make_dancer(body, name) for name in ("hrp2", "lola")]
Path("strip.png").write_bytes(film_strip(dancers, strip_times(0.0, 30.0, 6), 1400))
```

Each moment has its own camera, slightly aside from the dancer's mean heading. All robots have equal picture height;
floor lines are 0.5 m apart.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.retargeting.whole_body.player import WholeBodyPlayer
from humanoid_control.viewer.dance.dancer import Dancer, DancerView
from humanoid_control.viewer.dance.stage import SOLE_THICK
from humanoid_control.viewer.film import FINER, LIGHT, NAME_COLOR, DancerPainter, lines_of
from humanoid_control.viewer.raster import Camera, look_at

ASIDE, ABOVE = math.radians(25.0), math.radians(12.0)  # camera angles from straight ahead of the dancer
AWAY = 6.0  # camera distance in robot heights
ROOM = 0.05  # margin in robot heights
TIMES, NAMES = 0.1, 0.09  # robot heights below and above the robot, for the time and the name
TEXT, LEAST_TEXT = 0.05, 11  # letter height in robot heights; [pixels]
SOLE_PIXELS = 4.0  # minimum thickness of a sole edge
GAP, PAPER = 3, 255  # [pixels] gap between pictures, and its grey value
LEAST_HEIGHT = 60  # [pixels] minimum robot height
LARGEST = 8000  # [pixels]
COLORS = 256  # palette size
TURNING = 0.2  # length of the mean heading vector below which the heading is undefined
SETTLES = 1.0  # [s] solved before a moment, so that the initial posture has no influence


# -------- Moments


@dataclass(frozen=True)
class Moments:
    """Views of a dancer at some times.

    Attributes:
        times: times in the clip [s].
        headings: yaw of the dancer (N,) [rad].
    """

    views: list[DancerView]
    times: list[float]
    headings: np.ndarray

    @classmethod
    def of(cls, dancer: Dancer, times: Sequence[float]) -> Moments:
        """Step the dancer through increasing `times` [s]."""
        dancer.loop = False
        dancer.begin(max(times[0] - SETTLES, 0.0))
        dancer.play(True)
        views, seen, headings = [], [], []
        for time in times:
            for _ in range(math.ceil(max(time - dancer.time, 0.0) / dancer.dt - 1e-9)):
                dancer.step()
            views.append(dancer.view())
            seen.append(dancer.time)
            headings.append(dancer.player.heading if isinstance(dancer.player, WholeBodyPlayer) else 0.0)
        return cls(views, seen, np.array(headings))

    @property
    def heading(self) -> float:
        """Mean yaw [rad], or the first one of a turning dancer."""
        x, y = np.cos(self.headings).mean(), np.sin(self.headings).mean()
        return math.atan2(y, x) if math.hypot(x, y) > TURNING else float(self.headings[0])


def strip_times(begin: float, seconds: float, n: int) -> list[float]:
    """Return the centres of n equal parts of an interval [s]."""
    return [begin + seconds * (k + 0.5) / n for k in range(n)]


# -------- Visible extent


class StripRow:
    """Moments of a dancer, each with its own camera.

    Attributes:
        extents: minimum and maximum u, v of each moment (N, 2, 2) [robot heights].
    """

    def __init__(self, dancer: Dancer, moments: Moments) -> None:
        self.moments, self.title = moments, dancer.robot.title
        self.painter = DancerPainter([dancer.robot], 1, 1)
        self._azimuth, height = moments.heading + ASIDE, dancer.robot.height
        seen = [self._seen(view) for view in moments.views]
        self._unit = height if math.isfinite(height) else max(float(points[:, 2].max()) for points in seen)
        self.extents = np.array([self._extent(k, points) for k, points in enumerate(seen)])

    def _seen(self, view: DancerView) -> np.ndarray:
        self.painter.place([view], np.zeros((1, 3)))
        return np.vstack([self.painter.world, lines_of([view], np.zeros((1, 3))).ends.reshape(-1, 3)])

    def _extent(self, k: int, points: np.ndarray) -> np.ndarray:
        """Return minimum and maximum u, v (2, 2) of points [robot heights]."""
        camera = self.camera(k, 0.0, 0.0, 1.0)
        x, y, z = ((points - camera.eye) @ camera.R.T).T
        seen = AWAY * np.stack([x / z, y / z], axis=1)
        return np.array([seen.min(axis=0), seen.max(axis=0)])

    def camera(self, k: int, u: float, v: float, pixels: float) -> Camera:
        """Return the camera of a moment.

        Args:
            u: picture centre to the right of the robot [robot heights].
            v: picture centre above the robot [robot heights].
            pixels: pixels per robot height.
        """
        ahead = -np.array(
            [
                math.cos(self._azimuth) * math.cos(ABOVE),
                math.sin(self._azimuth) * math.cos(ABOVE),
                math.sin(ABOVE),
            ]
        )
        right = np.array([-math.sin(self._azimuth), math.cos(self._azimuth), 0.0])
        stands = self.moments.views[k].place * [1.0, 1.0, 0.0]
        at = stands + self._unit * (u * right + v * np.cross(right, ahead))
        return look_at(at - AWAY * self._unit * ahead, at, 1.0, 1)._replace(focal=pixels * AWAY)

    def picture(self, k: int, middle: np.ndarray, pixels: float, width: int, height: int) -> np.ndarray:
        """Return a picture (height, width, 3) of bytes.

        Args:
            middle: u, v of the picture centre (2,) [robot heights].
            pixels: pixels per robot height.
            width: picture width [pixels].
            height: picture height [pixels].
        """
        self.painter.resize(width, height)
        c, s = math.cos(self._azimuth), math.sin(self._azimuth)
        light = np.array([c * LIGHT[0] - s * LIGHT[1], s * LIGHT[0] + c * LIGHT[1], LIGHT[2]])
        camera = self.camera(k, middle[0], middle[1], FINER * pixels)
        thick = max(SOLE_THICK, SOLE_PIXELS * self._unit / pixels)
        return self.painter.draw(camera, [self.moments.views[k]], np.zeros((1, 3)), light, thick)


# -------- The strip


@dataclass(frozen=True)
class StripLayout:
    """Layout of the pictures.

    Attributes:
        pixels: pixels per robot height.
        columns: first and end pixel of each column.
        rows: first and end pixel of each row.
        middles: u, v of each picture centre (R, N, 2) [robot heights].
    """

    pixels: float
    columns: list[tuple[int, int]]
    rows: list[tuple[int, int]]
    middles: np.ndarray

    @classmethod
    def of(cls, extents: Sequence[np.ndarray], width: int, height: int | None) -> StripLayout:
        """Return the largest layout in which everything is visible.

        Args:
            extents: extents of each row (N, 2, 2).
            width: width [pixels].
            height: height [pixels]; None: as needed.

        Raises:
            ConfigError: if robots are too small, or the strip too high.
        """
        all_of = np.array(extents)
        wide = (all_of[:, :, 1, 0] - all_of[:, :, 0, 0]).max(axis=0) + 2 * ROOM
        low = all_of[:, :, 0, 1].min(axis=1) - ROOM - TIMES
        top = all_of[:, :, 1, 1].max(axis=1) + ROOM + NAMES
        tall = top - low
        across = width - GAP * (len(wide) - 1)
        pixels = across / wide.sum()
        down = int(pixels * tall.sum()) if height is None else height - GAP * (len(tall) - 1)
        pixels = min(pixels, down / tall.sum())
        if pixels < LEAST_HEIGHT:
            raise ConfigError(
                f"a strip of {len(wide)} moments, a row for each of {len(tall)} robots, would show them "
                f"{max(pixels, 0):.0f} pixels high: increase --width and --height, or reduce --moments"
            )
        if down > LARGEST:
            raise ConfigError(f"a strip of {len(tall)} rows would be {down} pixels high: reduce --width")
        middles = np.empty((*all_of.shape[:2], 2))
        middles[:, :, 0] = 0.5 * (all_of[:, :, 0, 0] + all_of[:, :, 1, 0])
        middles[:, :, 1] = 0.5 * (low + top)[:, None]
        return cls(pixels, _shares(wide, across), _shares(tall, down), middles)


def _shares(sizes: np.ndarray, pixels: int) -> list[tuple[int, int]]:
    """Divide pixels by sizes, with gaps; return first and end pixels."""
    ends = np.round(np.concatenate([[0.0], np.cumsum(sizes)]) / sizes.sum() * pixels).astype(int)
    return [(int(a) + GAP * k, int(b) + GAP * k) for k, (a, b) in enumerate(pairwise(ends))]


def film_strip(
    dancers: Sequence[Dancer],
    times: Sequence[float],
    width: int,
    height: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> bytes:
    """Return a PNG of moments of a dance, one row per dancer.

    Args:
        dancers: dancers of the same clip; their state changes.
        times: increasing times [s].
        width: picture width [pixels].
        height: picture height [pixels]; None: as needed.
        progress: called with the number of finished dancers.

    Raises:
        ConfigError: if the picture size is unsuitable.
        ClipError: if no initial posture is found.
    """
    from PIL import Image, ImageDraw, ImageFont

    rows: list[StripRow] = []
    for dancer in dancers:
        rows.append(StripRow(dancer, Moments.of(dancer, times)))
        progress(len(rows))
    layout = StripLayout.of([row.extents for row in rows], width, height)
    image = Image.new("RGB", (width, layout.rows[-1][1]), (PAPER,) * 3)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(max(LEAST_TEXT, round(TEXT * layout.pixels)))
    for r, (row, (top, bottom)) in enumerate(zip(rows, layout.rows, strict=True)):
        for k, (left, right) in enumerate(layout.columns):
            picture = row.picture(k, layout.middles[r, k], layout.pixels, right - left, bottom - top)
            image.paste(Image.fromarray(picture), (left, top))
            at = (0.5 * (left + right), bottom - 0.25 * TIMES * layout.pixels)
            draw.text(at, f"{row.moments.times[k]:.1f} s", fill=NAME_COLOR, font=font, anchor="ms")
        at = (0.3 * NAMES * layout.pixels, top + 0.2 * NAMES * layout.pixels)
        draw.text(at, row.title, fill=NAME_COLOR, font=font)
    file = io.BytesIO()
    # A palette halves the file size without visible loss.
    image.quantize(COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()
