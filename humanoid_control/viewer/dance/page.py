"""Dance page, handled by one thread per picture."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from humanoid_control.errors import HumanoidError
from humanoid_control.retargeting.trajectory import JointTrajectory
from humanoid_control.viewer.dance.controls import NO_JOINT, Actions, ControlRow, Controls
from humanoid_control.viewer.dance.dancer import DancerView, advance
from humanoid_control.viewer.dance.loader import AnyDancer, Cast, Loader, error_line
from humanoid_control.viewer.dance.stage import DanceStage
from humanoid_control.viewer.dance.uploads import ROBOT, Uploads, let_files_drop
from humanoid_control.viewer.server import HOST, open_server

RATE = 30.0  # [Hz] picture rate
LONGEST = 0.1  # [s] maximum time step; busy machines play slower instead of jumping
TABLE_EVERY, PLOT_EVERY = 6, 3  # pictures between updates
ASPECT = 1.6
Grade = Callable[[str, JointTrajectory], tuple[str, str]]
"""Robot name and motion -> grade and verdict."""


@dataclass
class Programme:
    """Content of a page.

    Attributes:
        clips: title -> source for `load_body_points`.
        robots: robots with check boxes.
        others: robots in a list.
        chosen: initial dancers.
        options: source -> options of `load_body_points`.
        grade: grades a complete motion; None: no grades.
    """

    clips: Mapping[str, str]
    robots: Sequence[str]
    others: Sequence[str] = ()
    chosen: Sequence[str] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grade: Grade | None = None


class DancePage:
    """Page with dancing robots; `tick` updates it, `run` loops until stopped."""

    def __init__(
        self,
        programme: Programme,
        port: int,
        host: str = HOST,
        origins: Iterable[str] = (),
        shadows: bool = False,
    ) -> None:
        """Open the page; see `open_server` and `light_scene`.

        Raises:
            EnvironmentProblem: see `open_server`.
            ConfigError: see `open_server`.
        """
        self.programme = programme
        self.clips, self.titles = dict(programme.clips), dict[str, str]()
        self.server = open_server(port, host, origins)
        self.stage = DanceStage(self.server, shadows)
        self._pending: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.controls = Controls(self.server, tuple(self.clips), programme.robots, self._actions())
        self.controls.offer_others(programme.others)
        let_files_drop(self.server)
        self.uploads, self.loader = Uploads(), Loader(programme.options)
        self._graders = ThreadPoolExecutor(max_workers=1)
        self.clip = next(iter(self.clips))
        self.robots = list(programme.chosen or programme.robots[:1])
        self.cast = Cast("")
        self._next: Cast | None = None
        self._sought: float | None = None
        self.playing, self.speed, self.loop, self.follow = True, 1.0, True, True
        self.error = ""
        self._left: dict[int, float] = {}
        self._grades: dict[int, Future[tuple[str, str]]] = {}
        self._count, self._now = 0, 0.0
        self.stage.look_at_all(ASPECT)
        for name in self.robots:
            self.controls.offer_robot(name)
        self._want()

    def _actions(self) -> Actions:
        """Return callbacks that queue the work for `tick`."""

        def later(do: Callable[..., None]) -> Callable[..., None]:
            return lambda *values: self._pending.put(lambda: do(*values))

        return Actions(
            later(self.choose_clip),
            later(self.choose_robot),
            later(self.press),
            self._seek_soon,
            later(self.set_speed),
            later(self._set_loop),
            later(self._set_follow),
            later(self.stage.show),
            later(self.stage.put_inside),
            later(self.receive),
        )

    # -- requests of visitors

    def choose_clip(self, title: str) -> None:
        if title in self.clips and title != self.clip:
            self.clip, self.error = title, ""
            self._want()

    def choose_robot(self, name: str, dances: bool) -> None:
        if dances and name not in self.robots:
            self.robots.append(name)
        elif not dances and name in self.robots:
            self.robots.remove(name)
        else:
            return
        self.error = ""
        self._want()

    def press(self, button: str) -> None:
        self.playing = button != "pause"
        if button == "restart":
            self.seek(0.0)
        for dancer in self.dancers:
            dancer.play(self.playing, self.speed)

    def seek(self, moment: float) -> None:
        for dancer in self.dancers:
            dancer.begin(moment)

    def _seek_soon(self, moment: float) -> None:
        """Store the last slider position."""
        self._sought = moment

    def set_speed(self, speed: float) -> None:
        self.speed = speed
        for dancer in self.dancers:
            dancer.play(self.playing, speed)

    def _set_loop(self, loop: bool) -> None:
        self.loop = loop

    def _set_follow(self, follow: bool) -> None:
        self.follow = follow

    def receive(self, name: str, content: bytes) -> None:
        """Accept a dropped file, or report why it is unusable."""
        try:
            upload = self.uploads.keep(name, content)
        except (HumanoidError, OSError) as e:
            self.error = error_line(e)
            return
        self.error, source = "", str(upload.path)
        if upload.kind == ROBOT:
            self.titles[source] = upload.title
            self.loader.guess.add(source)
            self.controls.offer_robot(source, upload.title)
            self.choose_robot(source, True)
        else:
            self.clips[upload.title] = source
            self.controls.set_clips(tuple(self.clips), self.clip)
            self.clip = ""  # so that it is also chosen if a clip of that name was selected
            self.choose_clip(upload.title)

    def _want(self) -> None:
        self.controls.set_robots(self.robots)
        self.controls.set_clips(tuple(self.clips), self.clip)
        self.loader.want(self.clips[self.clip], self.robots)

    # -- dancers

    @property
    def dancers(self) -> list[AnyDancer]:
        return list(self.cast.dancers.values())

    @property
    def time(self) -> float:
        """Time in the clip [s]."""
        return self.dancers[0].time if self.dancers else 0.0

    def tick(self, passed: float) -> list[DancerView]:
        """Handle requests, advance by `passed` [s] and draw."""
        while not self._pending.empty():
            try:
                self._pending.get()()
            except HumanoidError as e:
                self.error = self.uploads.plain(error_line(e))
        if self._sought is not None:
            moment, self._sought = self._sought, None
            self.seek(moment)
        self._next = self.loader.take() or self._next
        # a dancer that joins during a transition would be early
        if self._next is not None and not any(d.at_seam for d in self.dancers):
            cast, self._next = self._next, None
            self._change(cast)
        for dancer in self.dancers:
            dancer.loop = self.loop
            self._left[id(dancer)] = advance(dancer, self._left.get(id(dancer), 0.0) + passed)
            self._grade(dancer)
        self._count += 1
        self._now += passed
        if not self.server.get_clients() and self._count > 1:
            return []
        with self.server.atomic():
            views = self.stage.draw(self.follow)
            if self._count % PLOT_EVERY == 0:
                self._plot()
            if self._count % TABLE_EVERY == 0:
                self._update_panel(views)
        return views

    def _change(self, cast: Cast) -> None:
        problems = [cast.clip_problem] if cast.clip_problem else list(cast.failed.values())
        if problems:
            self.error = self.uploads.plain(problems[0])
        if cast.clip_problem:
            self._drop_clip(cast.clip)
            return
        for name in cast.failed:
            if name in self.robots:
                self.robots.remove(name)
        same, moment = cast.clip == self.cast.clip, self.time
        for name, dancer in cast.dancers.items():
            if self.cast.dancers.get(name) is dancer:
                continue
            if same and self.dancers:
                dancer.begin(moment)
            dancer.play(self.playing, self.speed)
        number, self.cast = len(self.dancers), cast
        stay = {id(d) for d in self.dancers}  # a later dancer may get the id of one that left
        self._left = {k: v for k, v in self._left.items() if k in stay}
        self._grades = {k: v for k, v in self._grades.items() if k in stay}
        self.stage.set_dancers(self.dancers)
        for name, dancer in cast.dancers.items():
            self.stage.set_title(dancer, self.titles.get(name, dancer.robot.title))
        if number != len(self.dancers):
            self.stage.look_at_all(ASPECT)
            self._bring_cameras()
        self.controls.set_robots(self.robots)
        joints = [f"{d.robot.title}: {joint}" for d in self.dancers for joint in d.robot.joint_names]
        for plot in self.controls.plots:
            plot.offer(joints)

    def _drop_clip(self, source: str) -> None:
        """Remove an unreadable clip; continue with the previous one."""
        before = next((t for t, s in self.clips.items() if s == self.cast.clip), "")
        title = next((t for t, s in self.clips.items() if s == source), "")
        if title and title not in self.programme.clips:
            del self.clips[title]
        self.clip = before or next(iter(self.clips))
        self.controls.set_clips(tuple(self.clips), self.clip)
        if not before and self.clips[self.clip] != source:
            self._want()

    def _bring_cameras(self) -> None:
        """Show the whole row on open pages."""
        camera = self.server.initial_camera
        for client in self.server.get_clients().values():
            client.camera.position, client.camera.look_at = camera.position, camera.look_at

    def _grade(self, dancer: AnyDancer) -> None:
        """Grade a completed dance in the background."""
        if self.programme.grade is None or not dancer.finished_take or id(dancer) in self._grades:
            return
        name = next(name for name, d in self.cast.dancers.items() if d is dancer)
        self._grades[id(dancer)] = self._graders.submit(self.programme.grade, name, dancer.trajectory())

    # -- reports

    def _update_panel(self, views: Sequence[DancerView]) -> None:
        rows = []
        for dancer, view in zip(self.dancers, views, strict=True):
            name = next(name for name, d in self.cast.dancers.items() if d is dancer)
            row = ControlRow(
                self.titles.get(name, dancer.robot.title),
                dancer.whole_body,
                view.error,
                view.contacts,
                float(view.slip.max(initial=0.0)),
                dancer.worst_slip,
                dancer.step_time,
                *self._graded(dancer),
            )
            rows.append(row)
        self.controls.set_rows(rows)
        self.controls.set_time(self.time, self.dancers[0].duration if self.dancers else 0.0)
        busy = f" ({self.loader.busy} ...)" if self.loader.busy else ""
        if not self.dancers:
            words = self.loader.busy or "choose a robot"
        else:
            words = f"{'playing' if self.playing else 'paused'} at {self.time:.1f} of {self.dancers[0].duration:.1f} s"
        self.controls.set_status(f"**{self.clip}**: {words}{busy if self.dancers else ''}")
        self.controls.set_error(self.error)
        self.controls.set_notes([self.uploads.plain(note) for note in dict.fromkeys(self.cast.notes)])

    def _graded(self, dancer: AnyDancer) -> tuple[str, str]:
        future = self._grades.get(id(dancer))
        if future is None:
            return "", ""
        if not future.done():
            return "", "grading ..."
        return future.result() if future.exception() is None else ("", error_line(future.exception()))  # type: ignore[arg-type]

    def _plot(self) -> None:
        for plot in self.controls.plots:
            title, _, joint = str(plot.picker.value).rpartition(": ")
            dancer = next((d for d in self.dancers if d.robot.title == title), None)
            if plot.picker.value == NO_JOINT or dancer is None:
                plot.clear()
                continue
            k = dancer.robot.index[joint]
            plot.add(self._now, float(dancer.joints[k]), float(dancer.robot.lower[k]), float(dancer.robot.upper[k]))

    # -- main loop

    def run(self, stopped: threading.Event) -> None:
        """Dance in real time until `stopped` is set."""
        before = time.monotonic()
        while not stopped.is_set():
            now = time.monotonic()
            self.tick(min(now - before, LONGEST))
            before = now
            stopped.wait(max(0.0, 1.0 / RATE - (time.monotonic() - now)))

    def stop(self) -> None:
        """Close the page and remove dropped files."""
        self.server.stop()
        self.loader.close()
        self._graders.shutdown(wait=False, cancel_futures=True)
        self.uploads.close()
