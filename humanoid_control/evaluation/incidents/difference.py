"""Difference of two recorded runs: when each stream departs, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.evaluation.incidents.checks import COMMANDS
from humanoid_control.evaluation.incidents.streams import JOINTS, RobotStreams, RunStreams
from humanoid_control.evaluation.incidents.timeline import Timeline, without_numbers
from humanoid_control.terminal import ReportTable

APART = 0.02  # [rad] above encoder noise, below all violation bounds
LASTING = 0.02  # [s]


@dataclass(frozen=True)
class StreamDifference:
    """Difference of a topic between two runs.

    Attributes:
        first: time after the first command of the first lasting difference [s]; None: never.
        joint: first joint to differ.
        largest: largest difference, at `largest_at` [s] in `largest_joint` [rad].
    """

    topic: str
    first: float | None
    joint: str
    largest: float
    largest_at: float
    largest_joint: str
    rates: tuple[float, float]


@dataclass(frozen=True)
class RunDifference:
    """Comparison of two runs, timed from their first commands.

    Attributes:
        streams: by topic, earliest first.
        only_a: violations of the first run only; `only_b`: of the second.
    """

    streams: tuple[StreamDifference, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    missing: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "streams": [vars(s) for s in self.streams],
            "only_in_first": list(self.only_a),
            "only_in_second": list(self.only_b),
            "topics_of_one_run": list(self.missing),
        }

    def parts(self) -> list[ReportTable | str]:
        """Return sentences and a table."""
        rows = [
            [
                s.topic,
                "-" if s.first is None else f"{s.first:.3f} ({s.joint})",
                f"{s.largest:.3f} ({s.largest_joint}, {s.largest_at:.2f} s)",
                f"{s.rates[0]:.0f} / {s.rates[1]:.0f}",
            ]
            for s in self.streams
        ]
        title = f"difference of both runs; apart from: first time above {APART:g} rad [s after the first command]"
        out: list[ReportTable | str] = [
            ReportTable(title, ["topic", "apart from s", "largest [rad]", "rates Hz"], rows)
        ]
        for name, only in (("the first", self.only_a), ("the second", self.only_b)):
            out += [f"only in {name}: {text}" for text in only]
        return [*out, *(f"only in one of them: {topic}" for topic in self.missing)]


def compare_runs(a: RunStreams, b: RunStreams, violations: tuple[Timeline, Timeline]) -> RunDifference:
    """Compare two runs stream by stream."""
    found, missing = [], []
    for space in sorted(set(a.robots) | set(b.robots)):
        pair = [run.robots.get(space, RobotStreams()) for run in (a, b)]
        for topic in JOINTS:
            name = f"{space}/{topic}"
            have = [topic in streams.joints for streams in pair]
            if all(have):
                found.append(_stream_difference(name, topic, pair))
            elif any(have):
                missing.append(name)
    texts = [
        dict.fromkeys(f"{v.kind}, {v.source}: {without_numbers(v.text)}" for v in t.violations) for t in violations
    ]
    order = sorted(found, key=lambda s: (s.first is None, s.first or 0.0, s.topic))
    only = [tuple(text for text in texts[k] if text not in texts[1 - k]) for k in (0, 1)]
    return RunDifference(tuple(order), only[0], only[1], tuple(missing))


def _stream_difference(name: str, topic: str, pair: list[RobotStreams]) -> StreamDifference:
    first, second = (s.joints[topic] for s in pair)
    begins = [float(s.joints.get(COMMANDS, s.joints[topic]).received[0]) for s in pair]
    t, other = first.received - begins[0], second.received - begins[1]
    inside = (t >= max(0.0, other[0])) & (t <= other[-1])
    rates = tuple(float((len(s.received) - 1) / max(s.received[-1] - s.received[0], 1e-9)) for s in (first, second))
    both = [n for n in first.names if n in second.names]
    earliest, joint, largest, at, worst = None, "", 0.0, 0.0, ""
    for j in both:
        column, theirs = first.position[inside, first.columns([j])[0]], second.position[:, second.columns([j])[0]]
        good = np.isfinite(theirs)
        if not good.any() or not inside.any():
            continue
        apart = np.nan_to_num(np.abs(column - np.interp(t[inside], other[good], theirs[good])), nan=0.0)
        k = int(np.argmax(apart))
        if apart[k] > largest:
            largest, at, worst = float(apart[k]), float(t[inside][k]), j
        since = _first_lasting(t[inside], apart > APART)
        if since is not None and (earliest is None or since < earliest):
            earliest, joint = since, j
    return StreamDifference(name, earliest, joint, largest, at, worst, (rates[0], rates[1]))


def _first_lasting(t: np.ndarray, bad: np.ndarray) -> float | None:
    begin = None
    for time, is_bad in zip(t, bad, strict=True):
        if not is_bad:
            begin = None
        else:
            begin = time if begin is None else begin
            if time - begin >= LASTING:
                return float(begin)
    return None
