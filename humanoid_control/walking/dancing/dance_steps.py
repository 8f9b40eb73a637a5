"""Footsteps of a robot from a dancer's steps.

A foot is in contact while its heel or toe is low and slow; a step lies between two contacts. Steps are scaled by leg
length, and stretched in time where the robot is slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ClipError
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.numerics.bisection import bisect
from humanoid_control.walking.planning.step import Footstep, StepLimits, StepTimes

HALVINGS = 10  # of the bisection that shortens a step out of reach
EDGE, EASE = 0.98, 0.005  # share of the possible turn; clearance of passing feet [m]
WIDER = (0.0, 0.03, 0.06, 0.1)  # [m] extra width to try where the feet cannot pass
LESS = 0.01  # [m, rad] deviation from the dancer's step that counts as limited
SIDES = ("l", "r")


@dataclass(frozen=True)
class ContactRule:
    """Thresholds of ground contact.

    Attributes:
        height: above the standing height, below which contact is possible [m].
        slow: speed below which a contact begins [m/s].
        fast: speed above which a contact ends [m/s].
        touching: height below which a contact extends at both ends [m].
        gliding: speed below which a contact extends [m/s].
        lasting: minimum duration of a contact or step [s].
        moved: minimum travel of a step, unless it rises by `lifted` [m].
        lifted: minimum rise of a step, unless it travels by `moved` [m].
    """

    height: float = 0.04
    slow: float = 0.15
    fast: float = 0.25
    touching: float = 0.015
    gliding: float = 0.6
    lasting: float = 0.08
    moved: float = 0.04
    lifted: float = 0.03


class DancerStep(NamedTuple):
    """Step of a dancer.

    Attributes:
        lift: lift-off time in the clip [s].
        land: landing time in the clip [s].
        place: (2,) landing position in the axes of the other foot, minus the upright stance [m].
        turn: landing heading, likewise [rad].
    """

    foot: int
    lift: float
    land: float
    place: np.ndarray
    turn: float


def contacts(body: BodyPoints, rule: ContactRule | None = None) -> np.ndarray:
    """Return the ground contact (T, 2) of both feet.

    Raises:
        ClipError: if the clip has no foot points.
    """
    rule = rule or ContactRule()
    out = np.zeros((len(body.positions), 2), dtype=bool)
    for k, side in enumerate(SIDES):
        for name in _foot_points(body, side):
            p = body.point(name)
            v = np.linalg.norm(np.gradient(p, 1.0 / body.rate, axis=0), axis=1)
            low = p[:, 2] - np.quantile(p[:, 2], 0.05) < rule.height
            still = _hysteresis(low & (v < rule.slow), low & (v < rule.fast))
            near = (p[:, 2] - np.quantile(p[:, 2], 0.05) < rule.touching) & (v < rule.gliding)
            out[:, k] |= _grown(still, near)
        _drop_short(out[:, k], True, rule.lasting * body.rate)
        _drop_short(out[:, k], False, rule.lasting * body.rate)
    return out


def dancer_steps(body: BodyPoints, rule: ContactRule | None = None) -> list[DancerStep]:
    """Return the steps of a dancer, ordered by lift-off.

    Raises:
        ClipError: if the clip has no foot points, or the dancer never stands on both feet.
    """
    rule = rule or ContactRule()
    on = contacts(body, rule)
    at, yaw = zip(*(_foot_path(body, side) for side in SIDES), strict=True)
    both = on.all(axis=1)
    if not both.any():
        raise ClipError(f"{body.name}: the dancer never stands on both feet")
    # the first second on both feet is taken as the upright stance
    still = np.flatnonzero(both)[: max(int(body.rate), 1)]
    out = []
    for foot in (0, 1):
        other = 1 - foot
        places, turns = _relative(at, yaw, other, foot, still)
        neutral, neutral_turn = np.median(places, axis=0), float(np.median(turns))
        for a, b in _runs(~on[:, foot]):
            if a == 0 or b >= len(on) - 1:
                continue
            moved = float(np.linalg.norm(at[foot][b, :2] - at[foot][a - 1, :2]))
            lifted = float(at[foot][a:b, 2].max() - max(at[foot][a - 1, 2], at[foot][b, 2]))
            if moved < rule.moved and lifted < rule.lifted:
                continue
            place, turn = _relative(at, yaw, other, foot, np.array([b]))
            turned = _wrapped(float(turn[0] - neutral_turn))
            out.append(DancerStep(foot, a / body.rate, b / body.rate, place[0] - neutral, turned))
    return sorted(out, key=lambda s: s.lift)


def leg_length_of(body: BodyPoints) -> float:
    """Return median hip-to-ground leg length of the dancer [m]; 0 without knees or ankles."""
    lengths = []
    for s in SIDES:
        if f"{s}_knee" in body.names and f"{s}_ankle" in body.names:
            hip, knee, ankle = (body.point(f"{s}_{p}") for p in ("hip", "knee", "ankle"))
            bones = np.linalg.norm(hip - knee, axis=1) + np.linalg.norm(knee - ankle, axis=1)
            lengths.append(np.median(bones) + np.quantile(ankle[:, 2], 0.05))
    return float(np.mean(lengths)) if lengths else 0.0


# -------- Footsteps


@dataclass(frozen=True)
class DanceLimits:
    """Time and length limits of dance steps.

    Attributes:
        shortest: minimum step time [s].
        quickest: minimum swing time [s].
        longest: duration of a shortened swing [s].
        double: minimum double support [s].
        hold: longest swing that is not shortened to `longest` [s].
        wait: longest double support within a list [s].
        share: usable share of the walking limits.
        long: foot travel over the greatest forward step, above which a step takes the nominal time.
    """

    shortest: float = 0.6
    quickest: float = 0.4
    longest: float = 1.5
    double: float = 0.12
    hold: float = 1.5
    wait: float = 9.0
    share: float = 0.6
    long: float = 0.4


@dataclass
class Choreography:
    """Footsteps of a dance, synchronised with the clip.

    Attributes:
        lifts: lift-off times from the first lift-off [s].
        clock: times from the first lift-off (k,) and in the clip (k,) [s].
    """

    steps: list[Footstep]
    dancer: list[DancerStep]
    lifts: np.ndarray
    clock: tuple[np.ndarray, np.ndarray]
    told: list[str]


def choreography(
    found: Sequence[DancerStep],
    soles: Sequence[pin.SE3],
    limits: StepLimits,
    times: StepTimes,
    scale: float,
    rule: DanceLimits | None = None,
) -> Choreography:
    """Convert a dancer's steps to footsteps of a robot.

    Args:
        scale: leg length of robot over dancer.
    """
    rule = rule or DanceLimits()
    told: list[str] = []
    steps = _alternating(found, told)
    at, out, lifts, t = list(soles), list[Footstep](), [0.0], 0.0
    clock = [(0.0, steps[0].lift)] if steps else []
    shorter = late = 0
    x = rule.share
    safe = replace(
        limits,
        forward=x * limits.forward,
        backward=x * limits.backward,
        sideways=x * limits.sideways,
        turn_out=x * limits.turn_out,
        turn_in=x * limits.turn_in,
    )
    for k, s in enumerate(steps):
        swing = s.land - s.lift
        if swing > rule.longest > 0 and swing > rule.hold:
            told.append(f"{s.lift:.1f} s: {swing:.1f} s on one foot, shortened to {rule.longest:g} s")
            swing = rule.longest
        swing = max(swing, rule.quickest)
        nominal = max(times.nominal, swing + rule.double)
        following = steps[k + 1].lift if k + 1 < len(steps) else s.lift + nominal
        asked = following - s.lift
        double = min(max(asked - swing, rule.double, rule.shortest - swing), rule.wait)
        step, limited = _possible(s, at, safe, (swing, double, min(times.lift, limits.lift)), scale)
        # A long step takes the nominal time, or the swing foot would exceed the joint velocities.
        far = step.X.translation - at[s.foot].translation
        if float(np.hypot(far[0], far[1])) > rule.long * limits.forward:
            swing = max(swing, (1 - times.double_support) * times.nominal)
            double = max(double, times.nominal - swing, rule.double)
            step, limited = _possible(s, at, safe, (swing, double, min(times.lift, limits.lift)), scale)
        late += swing + double > asked + 0.1
        shorter += limited
        out.append(step)
        at[step.foot] = step.X
        clock.append((t + swing, s.land))
        t += swing + double
        clock.append((t, max(following, s.land + 1e-3)))
        lifts.append(t)
    if shorter:
        told.append(f"{shorter} of {len(out)} steps are shorter than those of the dancer: out of reach of the legs")
    if late:
        told.append(f"{late} of {len(out)} steps take longer than those of the dancer: the legs are slower")
    a, b = (np.array(x) for x in zip(*clock, strict=True)) if clock else (np.zeros(0), np.zeros(0))
    return Choreography(out, steps, np.array(lifts[:-1]), (a, b), told)


def _alternating(found: Sequence[DancerStep], told: list[str]) -> list[DancerStep]:
    out: list[DancerStep] = []
    merged = jumps = 0
    for s in found:
        if out and s.foot == out[-1].foot:
            out[-1] = s._replace(lift=out[-1].lift if s.lift - out[-1].land < 0.1 else s.lift)
            merged += 1
            continue
        if out and s.lift < out[-1].land:  # both feet in the air: robots do not jump
            out[-1], jumps = out[-1]._replace(land=max(s.lift, out[-1].lift + 0.05)), jumps + 1
        out.append(s)
    if merged:
        told.append(f"{merged} steps of a foot that had just stepped are dropped")
    if jumps:
        told.append(f"{jumps} times both feet were in the air: one step after the other")
    return out


def _possible(
    s: DancerStep, at: Sequence[pin.SE3], limits: StepLimits, times: tuple[float, float, float], scale: float
) -> tuple[Footstep, bool]:
    """Return the footstep, reduced to the reach of the legs, and whether it was reduced."""
    stance, side = at[1 - s.foot], 1.0 if s.foot == 0 else -1.0
    swing, double, lift = times
    turn = side * float(np.clip(side * s.turn, -EDGE * limits.turn_in, EDGE * limits.turn_out))

    def made(share: float, wider: float = 0.0, turned: float = 1.0) -> Footstep:
        x, y = share * scale * s.place
        angle = share * turned * turn
        aside = max(limits.width + side * y, limits.beside(abs(angle)) + EASE) + wider
        X = stance * pin.SE3(pin.exp3(np.array([0.0, 0.0, angle])), np.array([x, side * aside, 0.0]))
        X.translation[2] = at[s.foot].translation[2]
        return Footstep(s.foot, X, swing, double, lift)

    def possible(step: Footstep) -> bool:
        return not limits.refusal(step, stance, at[s.foot])

    whole = made(1.0)
    if possible(whole):
        wanted = side * (limits.width + side * scale * s.place[1])
        less = abs(turn - s.turn) > LESS or abs(stance.actInv(whole.X).translation[1] - wanted) > LESS
        return replace(whole, limited=less), less
    straight = made(1.0, 0.0, 0.0)
    if possible(straight):  # the position has priority over the heading
        turned = bisect(lambda x: possible(made(1.0, 0.0, x)), 1.0, HALVINGS)
        return replace(made(1.0, 0.0, turned), limited=True), True
    for wider in WIDER:
        if possible(made(0.0, wider)):
            share = bisect(lambda x, wider=wider: possible(made(x, wider)), 1.0, HALVINGS)  # type: ignore[misc]
            return replace(made(share, wider), limited=True), True
    return replace(whole, X=at[s.foot].copy(), limited=True), True  # no position is reachable: step in place


# -------- Runs of frames


def _foot_points(body: BodyPoints, side: str) -> list[str]:
    names = [f"{side}_{p}" for p in ("heel", "toe", "ankle") if f"{side}_{p}" in body.names]
    if not names:
        raise ClipError(f"{body.name}: has no feet, so no steps")
    return names


def _foot_path(body: BodyPoints, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Return middle (T, 3) and heading (T,) of a foot; the pelvis heading if only one foot point exists."""
    names = _foot_points(body, side)
    points = [body.point(n) for n in names]
    back = body.point(f"{side}_heel") if f"{side}_heel" in names else points[-1]
    if f"{side}_toe" not in names or len(names) < 2:
        return points[0], body.heading
    d = body.point(f"{side}_toe") - back
    return 0.5 * (body.point(f"{side}_toe") + back), np.unwrap(np.arctan2(d[:, 1], d[:, 0]))


def _relative(
    at: Sequence[np.ndarray], yaw: Sequence[np.ndarray], stance: int, foot: int, frames: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return position (k, 2) and heading (k,) relative to the stance foot."""
    d = (at[foot] - at[stance])[frames, :2]
    c, s = np.cos(yaw[stance][frames]), np.sin(yaw[stance][frames])
    turn = yaw[foot][frames] - yaw[stance][frames]
    return np.column_stack([c * d[:, 0] + s * d[:, 1], -s * d[:, 0] + c * d[:, 1]]), np.angle(np.exp(1j * turn))


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def _hysteresis(begins: np.ndarray, goes_on: np.ndarray) -> np.ndarray:
    out, now = np.zeros(len(begins), dtype=bool), False
    for k in range(len(begins)):
        now = bool(begins[k] or (now and goes_on[k]))
        out[k] = now
    return out


def _grown(mask: np.ndarray, near: np.ndarray) -> np.ndarray:
    out = mask.copy()
    for k in range(1, len(out)):
        out[k] |= out[k - 1] and near[k]
    for k in range(len(out) - 2, -1, -1):
        out[k] |= out[k + 1] and near[k]
    return out


def _runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Return (first, last + 1) frame of each run where a mask (T,) is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _drop_short(mask: np.ndarray, value: bool, least: float) -> None:
    for a, b in _runs(mask == value):
        if b - a < least and a > 0 and b < len(mask):
            mask[a:b] = not value
