"""A filmstrip of a running page: photographs by headless Chromium at several moments, side by side with their times."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem, HumanoidError, require_extra
from humanoid_control.files import whole_file
from humanoid_control.viewer.browser import Browser, require_chromium
from humanoid_control.viewer.stills import CLOSE_NOTICES

WIDTH = 640  # pixels of a photograph in the strip
READY = 60.0  # [s] for the page to show its controls
CAPTION = 26  # pixels


class PageStrip:
    """Photographs a page in a thread of its own, while the nodes behind it run.

    Attributes:
        taken: (seconds after the start, PNG) of each photograph so far. One takes up to half a minute where the
            processor draws the page; its time is the end of it.
        problem: why there is no further one; empty: nothing failed.
    """

    def __init__(self, url: str, text: str, moments: Sequence[float]) -> None:
        """Check that a browser is there; nothing is started.

        Args:
            url: of the page. text: that the page shows when it is ready.
            moments: [s] after `start` at which photographs begin.

        Raises:
            EnvironmentProblem: no Chromium, or no pillow.
        """
        require_chromium()
        require_extra("video")
        self._url, self._text, self._moments = url, text, sorted(moments)
        self.taken: list[tuple[float, bytes]] = []
        self.problem = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._begin = 0.0

    def start(self) -> None:
        """Begin: moments count from now."""
        self._begin = time.monotonic()
        self._thread.start()

    def end(self) -> None:
        """Wait for a photograph that is being taken; later ones are left out."""
        self._ended.set()
        self._thread.join(READY)

    def _run(self) -> None:
        try:
            with Browser() as browser:
                browser.draw_seldom(0.3)
                browser.open(self._url, 1.0)
                browser.wait_for(self._text, READY)
                for moment in self._moments:
                    while (left := self._begin + moment - time.monotonic()) > 0 and not self._ended.is_set():
                        browser.sleep(min(left, 0.5))
                    if self._ended.is_set():
                        return
                    browser.evaluate(CLOSE_NOTICES)
                    shot = browser.picture()
                    self.taken.append((time.monotonic() - self._begin, shot))
        except (HumanoidError, OSError, TimeoutError) as e:
            self.problem = str(e)

    def write(self, path: Path, caption: Callable[[float], str]) -> None:
        """Write the strip.

        Args:
            path: of a PNG. caption: of a photograph, by its time [s].

        Raises:
            EnvironmentProblem: there is no photograph.
        """
        if not self.taken:
            reason = self.problem or "the page was not ready in time"
            raise EnvironmentProblem(f"no photograph of {self._url}: {reason}")
        from PIL import Image, ImageDraw, ImageFont

        shots = [Image.open(io.BytesIO(png)).convert("RGB") for _, png in self.taken]
        height = max(round(WIDTH * s.height / s.width) for s in shots)
        strip = Image.new("RGB", (WIDTH * len(shots), height + CAPTION), "white")
        draw, font = ImageDraw.Draw(strip), ImageFont.load_default(16)
        for k, (shot, (at, _)) in enumerate(zip(shots, self.taken, strict=True)):
            strip.paste(shot.resize((WIDTH, round(WIDTH * shot.height / shot.width))), (k * WIDTH, CAPTION))
            draw.text((k * WIDTH + 8, 4), f"{at:.0f} s: {caption(at)}", fill="black", font=font)
        with whole_file(path) as part, part.open("wb") as out:
            strip.save(out, "PNG")
