"""Filmstrip of a running page: timed screenshots side by side."""

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

WIDTH = 640  # [pixels] width of a picture
READY = 60.0  # [s] for the page to show its controls
CAPTION = 26  # pixels


class PageStrip:
    """Screenshots of a page in a separate thread.

    Attributes:
        taken: (seconds after the start, PNG); the time is the end of the screenshot, which takes up to 30 s.
        problem: reason of a failure, or empty.
    """

    def __init__(self, url: str, text: str, moments: Sequence[float]) -> None:
        """Check the requirements without starting.

        Args:
            text: text of the ready page.
            moments: times after `start` at which screenshots begin [s].

        Raises:
            EnvironmentProblem: if Chromium or pillow is missing.
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
        self._begin = time.monotonic()
        self._thread.start()

    def end(self) -> None:
        """Finish the current screenshot, and no more."""
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
        """Write the strip as PNG.

        Args:
            caption: returns the caption for a time [s].

        Raises:
            EnvironmentProblem: if there is no screenshot.
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
