"""`humanoid study dance`: clips danced on the own feet, standing and with the dancer's steps, by noisy sensors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.files import check_file, whole_file
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import scale_to_robot
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.studies.report import Progress, StudyReport, silent
from humanoid_control.studies.walking.dance import dance, held
from humanoid_control.terminal import Table, machine, plain_values
from humanoid_control.walking import Walker
from humanoid_control.walking.dancing.routine import routine

ROBOTS = ("lola", "hrp2")
WAYS = ("standing", "steps")
NOTE = """Sensors with noise, a bias of the orientation and 2 ms of delay; the dancer sees no ground truth. wrist,
elbow: mean distance to the goal from the sternum, in the axes of the chest; held: the same with the pelvis held and
perfect sensors. margin: least distance of the true zero-moment point from the edge of the soles that carry; small on
one foot, and while the weight goes over. made: steps of the dancer that were made; placed: of these within a fifth of
the scaled length, or 3 cm; on the beat: times between lift-offs within 0.1 s of the dancer's."""


def run_study(
    robot: str | None = None,
    clips: Sequence[str] = ("dance",),
    seeds: int = 1,
    seconds: float = 30.0,
    only: Sequence[str] = (),
    workers: int | None = None,
    resume: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Dance all clips.

    Args:
        robot: of the catalogue; default: Lola and HRP-2. clips: built in, or files. seeds: how often, with other noise.
        seconds: of each clip, from its begin. only: some of WAYS. workers: processes; None: one a core.
        resume: file in which outcomes are kept one a line: what is in it is not danced again.
        show: told how far it is.

    Raises:
        UnknownNameError: a way that is none. ConfigError: a number out of range; a file that cannot be written.
        ClipError, RobotError: what cannot be danced at all, before the first dance.
    """
    for way in only:
        if way not in WAYS:
            raise UnknownNameError("way to dance", way, WAYS)
    if not (0 < seeds <= 1000 and 2.0 <= seconds <= 3600):
        raise ConfigError(f"seeds must be 1..1000 and seconds 2..3600, got {seeds} and {seconds:g}")
    robots = ROBOTS if robot is None else (robot,)
    for name in robots:
        load_robot(name, "floating").require_imitation_points()
    for clip in clips:
        load_body_points(clip)
    if resume is not None:
        check_file(resume)
    jobs = [
        (r, str(c), way, seed, float(seconds))
        for c in clips
        for r in robots
        for way in WAYS
        if not only or way in only
        for seed in range(seeds)
    ]
    rows = list(_all(jobs, workers, resume, show))
    data = {"study": "dance", "seconds": seconds, "seeds": seeds, "dances": rows, "machine": machine()}
    told = [f"{r['robot']}, {r['clip']}, {r['way']}: {text}" for r in rows for text in r["told"]]
    return StudyReport(data, [_table(rows), *told, NOTE])


def _all(
    jobs: Sequence[tuple[str, str, str, int, float]], workers: int | None, resume: Path | None, show: Progress
) -> Iterator[dict[str, Any]]:
    """Rows in the order of the jobs; those of the file are not made again, new ones are written to it at once."""
    known = _kept(resume)
    todo = [job for job in jobs if _key(job) not in known]
    count = workers or min(os.cpu_count() or 1, max(len(todo), 1))
    with ProcessPoolExecutor(max(count, 1)) as pool:
        fresh = pool.map(try_dance, todo)
        for k, job in enumerate(jobs):
            key = _key(job)
            if key not in known:
                known[key] = plain_values(next(fresh))
                _keep(resume, known)
            show((k + 1) / len(jobs), "dancing")
            yield known[key]


def _key(job: Sequence[Any]) -> str:
    return json.dumps(list(job))


def _kept(file: Path | None) -> dict[str, dict[str, Any]]:
    if file is None or not file.is_file():
        return {}
    try:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        return {row["job"]: row["outcome"] for row in rows}
    except (ValueError, KeyError, TypeError) as e:
        raise ConfigError(f"{file} holds no outcomes of dances: {e}") from None


def _keep(file: Path | None, known: Mapping[str, dict[str, Any]]) -> None:
    if file is None:
        return
    text = "".join(json.dumps({"job": k, "outcome": v}) + "\n" for k, v in known.items())
    with whole_file(file) as part:
        part.write_text(text)


def try_dance(job: tuple[str, str, str, int, float]) -> dict[str, Any]:
    """Dance one clip once: robot, clip, way, seed, seconds; a clip or robot that cannot be danced says why."""
    name, clip, way, seed, seconds = job
    row: dict[str, Any] = {"robot": name, "clip": Path(clip).stem, "way": way, "seed": seed, "told": []}
    try:
        robot, fixed = load_robot(name, "floating"), load_robot(name, "fixed")
        body = load_body_points(clip)
        targets = scale_to_robot(body, fixed)
        frames = int(seconds * targets.rate) + 1
        walker = Walker(robot)
        steps = body.cropped(frames) if way == "steps" else None
        plan = routine(walker, targets.positions[:frames], targets.rate, steps)
        outcome = dance(SimulationConfig(name, "floating").build(), walker, plan, seed)
        still = held(SimulationConfig(name, "fixed").build(), fixed, plan.motion)
    except HumanoidError as e:
        return row | {"refused": str(e)}
    row |= asdict(outcome) | {"found": plan.found, "told": plan.told, "refused": ""}
    return row | {"held_wrist": still.wrist, "held_elbow": still.elbow}


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = ["robot", "clip", "way", "", "s", "wrist mm", "held", "elbow mm", "held", "margin mm", "tilt deg"]
    columns += ["steps", "made", "placed", "on the beat"]
    body = []
    for r in rows:
        if r["refused"]:
            body.append([r["robot"], r["clip"], r["way"], f"refused: {r['refused']}", *[""] * (len(columns) - 4)])
            continue
        beat = np.asarray(r["beat_error"], dtype=float)
        share = f"{100 * np.mean(beat < 0.1):.0f} %" if len(beat) else ""
        body.append(
            [
                r["robot"],
                r["clip"],
                r["way"],
                f"fell: {r['fell']}" if r["fell"] else "danced",
                round(r["time"], 1),
                round(1e3 * r["wrist"], 1),
                round(1e3 * r["held_wrist"], 1),
                round(1e3 * r["elbow"], 1),
                round(1e3 * r["held_elbow"], 1),
                round(1e3 * r["zmp_margin"], 1),
                round(float(np.degrees(r["tilt"])), 1),
                r["steps"],
                f"{r['taken']} of {r['found']}" if r["way"] == "steps" else "",
                r["placed"] if r["way"] == "steps" else "",
                share,
            ]
        )
    return Table("dances on the own feet", columns, body)
