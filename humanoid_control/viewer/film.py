"""Films of dancers, rendered on the CPU and encoded by ffmpeg.

```python
from pathlib import Path

from humanoid_control.mocap import load_body_points
from humanoid_control.viewer.dance.dancer import make_dancer
from humanoid_control.viewer.film import FilmSize, write_film

body = load_body_points("dance")
write_film(Path("dance.mp4"), [make_dancer(body, name) for name in ("hrp2", "lola")], 5.0, FilmSize())
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, EnvironmentProblem, first_line, require_extra
from humanoid_control.files import whole_file
from humanoid_control.robots import Robot
from humanoid_control.viewer.dance.dancer import Dancer, DancerView, advance
from humanoid_control.viewer.dance.stage import (
    ERROR_THICK,
    FREE,
    GHOST_THICK,
    HELD,
    SOLE_THICK,
    VIEW,
    error_colors,
    slot_places,
    stage_camera,
    visible_meshes,
)
from humanoid_control.viewer.raster import (
    Camera,
    Canvas,
    Lines,
    Surfaces,
    look_at,
    paint_floor,
    paint_lines,
    paint_shadows,
    paint_surfaces,
    place_surfaces,
)
from humanoid_control.viewer.scene import DANCER_COLOR

ENDINGS = (".mp4", ".mov", ".mkv", ".webm")
CODECS = {".webm": "libvpx-vp9"}  # otherwise H.264, which every player supports
FINER = 2  # supersampling factor per axis
LIGHT = np.array([0.45, -0.35, 0.82])
GHOST_OPACITY = 0.55
FOLLOW = 0.04  # share of the distance to the dancers corrected per picture
SPACING = 1.4  # [m] between dancers, with figures inside the robots
NAME_SIZE, NAME_COLOR = 0.032, (40, 44, 52)  # share of the picture height
SMALLEST, LARGEST = 64, 4096  # [pixels]


class FilmSize(NamedTuple):
    """Width and height [pixels], frame rate [Hz]."""

    width: int = 1280
    height: int = 720
    fps: float = 30.0

    def check(self, path: Path) -> None:
        """Check size and suffix.

        Raises:
            ConfigError: if one is invalid.
        """
        if path.suffix.lower() not in ENDINGS:
            raise ConfigError(f"--video must be a {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file, got {path}")
        for name, value in (("width", self.width), ("height", self.height)):
            if not SMALLEST <= value <= LARGEST or value % 2:
                raise ConfigError(
                    f"--{name} of a film must be an even number from {SMALLEST} to {LARGEST}, got {value}"
                )


class DancerPainter:
    """Renderer of robots, shadows and annotation lines.

    Attributes:
        world: last vertex positions in the world (V, 3) [m].
    """

    def __init__(self, robots: Sequence[Robot], width: int, height: int) -> None:
        """Collect the meshes.

        Args:
            width: picture width [pixels].
            height: picture height [pixels].
        """
        self.width, self.height = width, height
        self._bodies: list[tuple[int, str]] = []
        self.surfaces = self._gathered(robots)
        n = len(self.surfaces.vertices)
        self.world, self._normal = np.empty((n, 3)), np.empty((n, 3))
        self._canvas = Canvas.new(FINER * width, FINER * height)

    def _gathered(self, robots: Sequence[Robot]) -> Surfaces:
        vertices, normals, body, faces, colors = [], [], [], [], []
        first = 0
        for k, robot in enumerate(robots):
            for link, meshes in visible_meshes(robot).items():
                for (points, triangles), color in meshes:
                    vertices.append(points)
                    normals.append(vertex_normals(points, triangles))
                    body.append(np.full(len(points), len(self._bodies)))
                    faces.append(triangles + first)
                    colors.append(np.tile(np.array(color) / 255.0, (len(triangles), 1)))
                    first += len(points)
                self._bodies.append((k, link))
        if not vertices:
            return Surfaces(
                np.empty((0, 3)),
                np.empty((0, 3)),
                np.empty(0, np.int64),
                np.empty((0, 3), np.int64),
                np.empty((0, 3)),
            )
        return Surfaces(
            np.ascontiguousarray(np.vstack(vertices), dtype=float),
            np.ascontiguousarray(np.vstack(normals), dtype=float),
            np.concatenate(body).astype(np.int64),
            np.ascontiguousarray(np.vstack(faces), dtype=np.int64),
            np.ascontiguousarray(np.vstack(colors), dtype=float),
        )

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._canvas = Canvas.new(FINER * width, FINER * height)

    def place(self, views: Sequence[DancerView], places: np.ndarray) -> None:
        """Update `world`.

        Args:
            places: offset of each robot (n, 3) [m].
        """
        R, p = np.empty((len(self._bodies), 3, 3)), np.empty((len(self._bodies), 3))
        for b, (k, link) in enumerate(self._bodies):
            X = views[k].poses[link]
            R[b], p[b] = X.rotation, X.translation + places[k]
        place_surfaces(self.surfaces, R, p, self.world, self._normal)

    def draw(
        self,
        camera: Camera,
        views: Sequence[DancerView],
        places: np.ndarray,
        light: np.ndarray = LIGHT,
        sole: float = SOLE_THICK,
        lines: Lines | None = None,
    ) -> np.ndarray:
        """Return a picture (h, w, 3) of bytes.

        Args:
            camera: camera at FINER times the resolution.
            places: offset of each robot (n, 3) [m].
            light: direction towards the light (3,).
            sole: thickness of sole edges [m].
            lines: replaces `lines_of`.
        """
        canvas, light = self._canvas, light / np.linalg.norm(light)
        self.place(views, places)
        paint_floor(camera, canvas)
        paint_shadows(camera, light, self.surfaces.faces, self.world, canvas)
        paint_surfaces(camera, light, self.surfaces, self.world, self._normal, canvas)
        paint_lines(camera, lines_of(views, places, sole) if lines is None else lines, canvas)
        color = canvas.color.reshape(self.height, FINER, self.width, FINER, 3).mean(axis=(1, 3))
        return np.round(255.0 * np.clip(color, 0.0, 1.0)).astype(np.uint8)


def lines_of(views: Sequence[DancerView], places: np.ndarray, sole: float = SOLE_THICK) -> Lines:
    """Return lines of errors and soles, then figures.

    Args:
        places: offset of each dancer (n, 3) [m].
        sole: thickness of sole edges [m].
    """
    ends, radii, colors, opacities = [], [], [], []

    def add(what: np.ndarray, thick: float, paint: Any, opacity: float) -> None:
        ends.append(what)
        radii.append(np.full(len(what), 0.5 * thick))
        colors.append(np.broadcast_to(np.asarray(paint) / 255.0, (len(what), 3)))
        opacities.append(np.full(len(what), opacity))

    for view, place in zip(views, places, strict=True):
        error = np.stack([view.targets, view.reached], axis=1) + place
        add(error, ERROR_THICK, error_colors(np.linalg.norm(error[:, 0] - error[:, 1], axis=1)), 1.0)
        if len(view.soles):
            soles = view.soles.reshape(-1, 2, 3) + place
            add(soles, sole, np.where(view.contacts[:, None], HELD, FREE), 1.0)
    for view, place in zip(views, places, strict=True):
        add(view.figure.reshape(-1, 2, 3) + place, GHOST_THICK, DANCER_COLOR, GHOST_OPACITY)
    return Lines(
        np.ascontiguousarray(np.concatenate(ends), dtype=float),
        np.concatenate(radii),
        np.ascontiguousarray(np.concatenate(colors), dtype=float),
        np.concatenate(opacities),
    )


class Film:
    """Sequence of pictures of dancers in a row."""

    def __init__(self, dancers: Sequence[Dancer], size: FilmSize) -> None:
        self.dancers, self.size = list(dancers), size
        self.places = slot_places(len(self.dancers), SPACING)
        self.painter = DancerPainter([d.robot for d in self.dancers], size.width, size.height)
        self._eye, self._at = stage_camera(len(self.dancers), size.width / size.height, 0.0, SPACING)
        self._offset: np.ndarray | None = None

    def picture(self) -> np.ndarray:
        """Return the current picture (h, w, 3) of bytes."""
        views = [d.view() for d in self.dancers]
        self._follow(views)
        assert self._offset is not None
        camera = look_at(self._eye + self._offset, self._at + self._offset, VIEW, FINER * self.size.height)
        return self._titled(self.painter.draw(camera, views, self.places), views)

    def _follow(self, views: Sequence[DancerView]) -> None:
        place = np.mean([v.place for v in views], axis=0) * [1.0, 1.0, 0.0]
        self._offset = place if self._offset is None else self._offset + FOLLOW * (place - self._offset)

    def _titled(self, picture: np.ndarray, views: Sequence[DancerView]) -> np.ndarray:
        from PIL import Image, ImageDraw, ImageFont

        image = Image.fromarray(picture)
        draw = ImageDraw.Draw(image)
        size = max(11, round(NAME_SIZE * self.size.height))
        font = ImageFont.load_default(size)
        assert self._offset is not None
        camera = look_at(self._eye + self._offset, self._at + self._offset, VIEW, self.size.height)
        for dancer, view, place in zip(self.dancers, views, self.places, strict=True):
            foot = np.array([view.place[0] + 0.45, view.place[1], 0.0]) + place
            x, y, z = camera.R @ (foot - camera.eye)
            if z <= 0.0:
                continue
            at = (0.5 * self.size.width + camera.focal * x / z, 0.5 * self.size.height - camera.focal * y / z)
            words = f"{dancer.robot.title}\n{100 * view.error:.1f} cm"
            draw.multiline_text(at, words, fill=NAME_COLOR, font=font, anchor="ma", align="center")
        if self.dancers:
            words = f"{self.dancers[0].clip}  {self.dancers[0].time:5.1f} s"
            draw.text((0.6 * size, 0.5 * size), words, fill=NAME_COLOR, font=font)
        return np.asarray(image)


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return area-weighted vertex normals (V, 3)."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    out = np.zeros_like(vertices, dtype=float)
    for k in range(3):
        np.add.at(out, faces[:, k], across)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return np.where(length > 0, out / np.where(length > 0, length, 1.0), [0.0, 0.0, 1.0])


def film_pictures(dancers: Sequence[Dancer], seconds: float, size: FilmSize) -> Iterator[np.ndarray]:
    """Yield pictures (h, w, 3) of dancers."""
    film, left = Film(dancers, size), [0.0] * len(dancers)
    for frame in range(max(1, math.ceil(seconds * size.fps - 1e-9))):
        if frame:
            for k, dancer in enumerate(dancers):
                left[k] = advance(dancer, left[k] + 1.0 / size.fps)
        yield film.picture()


def write_film(
    path: Path,
    dancers: Sequence[Dancer],
    seconds: float,
    size: FilmSize,
    progress: Callable[[float], None] = lambda done: None,
) -> None:
    """Write a film atomically.

    Args:
        path: file with a suffix of ENDINGS.
        dancers: dancers at the first frame.
        seconds: duration [s].
        progress: called with the finished seconds.

    Raises:
        EnvironmentProblem: if ffmpeg is missing or fails.
        ConfigError: if the file cannot be written.
    """
    require_extra("video")
    size.check(path)
    import imageio_ffmpeg

    with whole_file(path) as part:
        codec = CODECS.get(path.suffix.lower(), "libx264")
        try:
            writer = imageio_ffmpeg.write_frames(
                str(part),
                (size.width, size.height),
                fps=size.fps,
                codec=codec,
                quality=8,
                macro_block_size=2,
                ffmpeg_log_level="error",
                output_params=["-movflags", "+faststart"] if codec == "libx264" else None,
            )
            writer.send(None)
            try:
                for k, picture in enumerate(film_pictures(dancers, seconds, size)):
                    writer.send(np.ascontiguousarray(picture))
                    progress((k + 1) / size.fps)
            finally:
                writer.close()
        except RuntimeError as e:  # no binary in the wheel
            raise EnvironmentProblem(f"ffmpeg cannot write the film: {first_line(e)}") from None
        if not part.is_file() or part.stat().st_size == 0:
            raise EnvironmentProblem("ffmpeg wrote nothing: is the disk full?")
