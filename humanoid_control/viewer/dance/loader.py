"""Background loading of dancers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from humanoid_control.errors import HumanoidError, first_line, one_line
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.viewer.dance.dancer import UpperBodyDancer, WholeBodyDancer, make_dancer

AnyDancer = WholeBodyDancer | UpperBodyDancer


@dataclass
class Cast:
    """Clip and its dancers.

    Attributes:
        clip: source of the clip.
        dancers: robot name -> dancer, as requested.
        failed: robot name -> reason.
        clip_problem: why the clip is unreadable, or empty.
        notes: remarks.
    """

    clip: str
    dancers: dict[str, AnyDancer] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    clip_problem: str = ""
    notes: list[str] = field(default_factory=list)


class Loader:
    """Loader of the last requested cast.

    Attributes:
        guess: robot paths that need a guessed robot file.
        busy: current activity, or empty.
    """

    def __init__(
        self, options: Mapping[str, Mapping[str, Any]] | None = None, make: Callable[..., AnyDancer] = make_dancer
    ) -> None:
        """Start the thread.

        Args:
            options: clip source -> options of `load_body_points`.
            make: returns a dancer for a body and a robot name.
        """
        self.options, self._make = options or {}, make
        self._request: tuple[str, tuple[str, ...]] | None = None
        self._ready: Cast | None = None
        self._body: tuple[str, BodyPoints] | None = None
        self._there: Cast | None = None
        self._lock, self._ended = threading.Condition(), False
        self.busy, self.guess = "", set[str]()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def want(self, clip: str, robots: Sequence[str]) -> None:
        """Request a cast; `take` returns it when ready."""
        with self._lock:
            self._request = clip, tuple(robots)
            self.busy = "loading"
            self._lock.notify()

    def take(self) -> Cast | None:
        """Return the newest finished cast, once."""
        with self._lock:
            ready, self._ready = self._ready, None
            return ready

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            self._ended = True
            self._lock.notify()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._request is not None or self._ended)
                if self._ended:
                    return
                assert self._request is not None
                (clip, robots), self._request = self._request, None
            cast = self._load(clip, robots)
            with self._lock:
                self._ready = cast
                if self._request is None:
                    self.busy = ""

    def _load(self, clip: str, robots: Sequence[str]) -> Cast:
        cast = Cast(clip)
        try:
            self.busy = f"reading {Path(clip).name}"
            if self._body is None or self._body[0] != clip:
                self._body = clip, load_body_points(clip, **self.options.get(clip, {}))
        except Exception as e:
            cast.clip_problem = error_line(e)
            return cast
        body = self._body[1]
        cast.notes += body.warnings
        before = self._there.dancers if self._there is not None and self._there.clip == clip else {}
        for name in robots:
            try:
                if name not in before:
                    self.busy = f"preparing {Path(name).stem}"
                    if name in self.guess and not Path(name).with_suffix(".yaml").exists():
                        _guess_robot_file(Path(name))
                    before = before | {name: self._make(body, name)}
                cast.dancers[name] = before[name]
                cast.notes += before[name].notes
            except Exception as e:
                cast.failed[name] = error_line(e)
        self._there = cast
        return cast


def error_line(error: Exception) -> str:
    """Return an error as one line."""
    if isinstance(error, HumanoidError):
        return str(error)
    return one_line(f"cannot be used ({error.__class__.__name__}: {first_line(error)})")


def _guess_robot_file(path: Path) -> None:
    from humanoid_control.robots.guess.robot_file import guess_robot_file  # slow to import, rarely needed

    guess_robot_file(path)
