"""Recording of a dance: an HTML file, or a .viser file for viser's player."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.viewer.dance.dancer import Dancer, advance
from humanoid_control.viewer.dance.stage import DanceStage
from humanoid_control.viewer.server import open_server

ENDINGS = (".html", ".viser")
ASPECT = 16 / 9
ANY_PORT = 0  # the system chooses a port; nobody connects


def record_dance(
    dancers: Sequence[Dancer],
    seconds: float,
    fps: float,
    ending: str,
    progress: Callable[[float], None] = lambda done: None,
) -> bytes:
    """Return the content of a recording.

    The .html file opens offline. The .viser file needs viser's client: `?playbackPath=dance.viser`.

    Args:
        dancers: dancers at the first frame.
        seconds: duration [s].
        fps: frame rate [Hz].
        ending: suffix in ENDINGS.
        progress: called with the finished seconds.

    Raises:
        ConfigError: if the suffix is unknown.
        EnvironmentProblem: if viser is missing or cannot record.
    """
    if ending not in ENDINGS:
        raise ConfigError(f"a recording is a {' or a '.join(ENDINGS)} file, not '{ending}'")
    server = open_server(ANY_PORT)
    try:
        stage = DanceStage(server)
        stage.set_dancers(dancers)
        stage.look_at_all(ASPECT, panel=0.0)
        stage.draw(follow=True)
        make = getattr(server, "get_scene_serializer", None)
        if make is None:
            raise EnvironmentProblem("this release of viser records no scenes: pip install --upgrade viser")
        recorder, left = make(), [0.0] * len(dancers)
        if ending == ".html" and not hasattr(recorder, "as_html"):
            raise EnvironmentProblem("this release of viser writes no HTML: pip install --upgrade viser, or -o .viser")
        for frame in range(1, math.ceil(seconds * fps - 1e-9) + 1):
            for k, dancer in enumerate(dancers):
                left[k] = advance(dancer, left[k] + 1.0 / fps)
            recorder.insert_sleep(1.0 / fps)
            stage.draw(follow=True)
            progress(frame / fps)
        if ending == ".html":
            return str(recorder.as_html()).encode()
        return bytes(recorder.serialize())
    finally:
        server.stop()


def check_recording(path: Path) -> None:
    """Check the suffix of a recording.

    Raises:
        ConfigError: if it is not in ENDINGS.
    """
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"-o must be a {' or '.join(ENDINGS)} file, got {path}")
