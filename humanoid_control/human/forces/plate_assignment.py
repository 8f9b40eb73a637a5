"""Assignment of plate loads to feet.

A foot stands on a loaded plate if the centre of pressure is within 60 mm of its sole and one sole point moves slower
than 0.4 m/s relative to the floor or belt. Two feet on one plate get estimated shares of least variance. Loads without
a foot are ignored; positions overrule the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from humanoid_control.errors import SizeError
from humanoid_control.human.forces.force_clock import check_overlap, offset_offer
from humanoid_control.human.forces.sole_contact import AssignmentSettings, SoleScene
from humanoid_control.human.forces.wrenches import MeasuredWrench

_SHORT = 0.1  # [s] a shorter load takes the nearest foot, which cannot come to rest; a foot present that long counts
_LEVER = 0.02  # [m] standard deviation of a foot's moment over that of its force: small, so that the lever rule holds


@dataclass(frozen=True)
class PlateContact:
    """Interval in which a plate was loaded.

    Attributes:
        start: [s].
        end: [s].
        feet: empty: none near; two: shared.
        peak: normal force [N].
        distance: median from centre of pressure to nearest sole [m]; NaN: not visible.
    """

    plate: str
    start: float
    end: float
    feet: tuple[str, ...]
    peak: float
    distance: float

    @property
    def estimated(self) -> bool:
        """True if two feet share the plate."""
        return len(self.feet) > 1


@dataclass(frozen=True, eq=False)
class FootLoads:
    """Plate loads by foot.

    Attributes:
        wrenches: foot -> wrench at plate times; zero without contact.
        estimated: (n,) samples of shared plates.
        contacts: by plate and time.
        floor_velocity: (3,) of a treadmill [m/s]; else zero.
    """

    wrenches: dict[str, MeasuredWrench]
    estimated: np.ndarray
    contacts: tuple[PlateContact, ...]
    floor_velocity: np.ndarray
    warnings: tuple[str, ...]


def assign_plates(
    wrenches: Sequence[MeasuredWrench],
    times: np.ndarray,
    feet: Mapping[str, np.ndarray],
    bodies: Mapping[str, str] | None = None,
    settings: AssignmentSettings | None = None,
) -> FootLoads:
    """Assign every loaded interval of every plate to feet.

    Args:
        wrenches: of all plates at the same times, zeroed, not filtered, in the axes of the points.
        times: (m,) of the frames, plate clock [s].
        feet: foot -> (m, k, 3) sole points [m]; NaN: not visible.
        bodies: body in the file -> foot.

    Raises:
        ClipError: if frames and forces do not overlap.
        SizeError: if shapes or plate times differ.
    """
    settings = settings or AssignmentSettings()
    _check_shapes(wrenches, times, feet)
    check_overlap(wrenches, times, feet)
    cut = [w.cut() for w in wrenches]
    scenes = [SoleScene(w, times, feet) for w in cut]
    floor = _floor_velocity(cut, scenes, settings)
    # plate -> foot -> frames in which it rests under the centre of pressure
    at = [{name: s.at(name, floor, settings) for name in feet} for s in scenes]
    total = {name: np.zeros((len(wrenches[0].times), 6)) for name in feet}
    estimated = np.zeros(len(wrenches[0].times), dtype=bool)
    contacts, said = [], []
    for k, (wrench, scene) in enumerate(zip(cut, scenes, strict=True)):
        others = [other for j, other in enumerate(at) if j != k]
        nowhere = np.zeros(len(times), dtype=bool)
        elsewhere = {name: np.any([nowhere, *(other[name] for other in others)], axis=0) for name in feet}
        for a, b in wrench.loaded():
            rows = scene.frames(a, b)
            if rows is None:
                continue
            rests = {name: scene.rests(name, floor, settings)[rows] & ~elsewhere[name][rows] for name in feet}
            duration = float(wrench.times[b - 1] - wrench.times[a])
            enough = min(settings.share, _SHORT / max(duration, _SHORT))
            here = {name: at[k][name][rows] for name in feet}
            who = _standing(here, rests, scene.between(rows, rests), enough, settings.distance)
            if not who and duration < _SHORT:
                who = scene.nearest_foot(rows, settings)
            contact = PlateContact(
                wrench.name, float(wrench.times[a]), float(wrench.times[b - 1]), tuple(who),
                float(wrench.normal_force[a:b].max()), scene.nearest(rows),
            )  # fmt: skip
            contacts.append(contact)
            said += _remarks(contact, wrench.body, bodies or {})
            _share_out(wrench, scene, (a, b), who, total, estimated)
    said += _clock_doubt(contacts, cut, times, feet)
    if floor.any():
        said.insert(0, f"the floor moves at {np.linalg.norm(floor):.2f} m/s: a treadmill")
    result = {name: _of_foot(name, wrenches[0], t) for name, t in total.items()}
    return FootLoads(result, estimated, tuple(contacts), floor, tuple(said))


def _check_shapes(wrenches: Sequence[MeasuredWrench], times: np.ndarray, feet: Mapping[str, np.ndarray]) -> None:
    if not wrenches or not feet:
        raise SizeError("assignment of plates: needs at least one plate and one foot")
    for name, points in feet.items():
        if points.ndim != 3 or points.shape[0] != len(times) or points.shape[1] < 1 or points.shape[2] != 3:
            raise SizeError(f"foot '{name}': expected points of shape ({len(times)}, k, 3), got {points.shape}")
    for w in wrenches:
        if not np.array_equal(w.times, wrenches[0].times):
            raise SizeError(f"'{w.name}' has other times than '{wrenches[0].name}': resample one of them")


def _of_foot(name: str, like: MeasuredWrench, total: np.ndarray) -> MeasuredWrench:
    return MeasuredWrench(name, like.times, total[:, :3], total[:, 3:], like.normal, like.surface, name)


def _remarks(contact: PlateContact, body: str, bodies: Mapping[str, str]) -> list[str]:
    where = f"{contact.plate} from {contact.start:.2f} to {contact.end:.2f} s"
    if not contact.feet:
        near = (
            "no sole was seen" if np.isnan(contact.distance) else f"the nearest sole is {contact.distance:.2f} m away"
        )
        return [f"{where}: {contact.peak:.0f} N without a foot on it ({near}): ignored"]
    said = []
    if contact.estimated:
        said.append(f"{where}: {' and '.join(contact.feet)} share it: their shares are estimates")
    declared = bodies.get(body)
    if declared is not None and declared not in contact.feet:
        said.append(
            f"{where}: the file assigns it to '{body}', but {contact.feet[0]} stands there "
            f"({1e3 * contact.distance:.0f} mm from the centre of pressure): {contact.feet[0]} is used"
        )
    return said


def _floor_velocity(wrenches: Sequence[MeasuredWrench], scenes: list, settings: AssignmentSettings) -> np.ndarray:
    """Return the floor velocity (3,) [m/s] from loaded soles, or zero."""
    seen = []
    for wrench, scene in zip(wrenches, scenes, strict=True):
        carrying = scene.load > 0.5 * max(wrench.normal_force.max(), 1.0)
        for foot, distance in scene.distance.items():
            rows = carrying & (np.nan_to_num(distance, nan=np.inf) <= settings.distance)
            along = np.nanmedian(scene.velocity[foot][rows], axis=1) if rows.any() else np.empty((0, 3))
            seen.append(along - np.outer(along @ wrench.normal, wrench.normal))
    moving = np.concatenate(seen)
    moving = moving[np.isfinite(moving).all(axis=1)]
    if len(moving) < 3:
        return np.zeros(3)
    floor = np.median(moving, axis=0)
    # A belt moves evenly; a varying velocity comes from swinging or sliding feet.
    even = np.mean(np.linalg.norm(moving - floor, axis=1) < settings.speed) > 0.5
    return floor if even and np.linalg.norm(floor) > settings.speed else np.zeros(3)


def _clock_doubt(contacts: list, wrenches: Sequence[MeasuredWrench], times: np.ndarray, feet: Mapping) -> list[str]:
    """Warn if a time offset matches better."""
    if 2 * sum(not c.feet for c in contacts) <= len(contacts):
        offer = offset_offer(wrenches, times, feet)
        return [f"forces may not be in time with the markers{offer}"] if offer else []
    return [f"hardly any foot is where forces act{offset_offer(wrenches, times, feet)}"]


# -------- feet on a plate


def _standing(
    at: Mapping[str, np.ndarray], rests: Mapping[str, np.ndarray], between: np.ndarray, enough: float, distance: float
) -> dict[str, np.ndarray]:
    """Return the feet on a plate, and the frames in which each carries.

    Args:
        at: foot -> frames at rest under the pressure.
        rests: foot -> frames at rest on no other plate.
        between: (frames,) distance from the outline of two resting feet [m].
        enough: required share of frames.
        distance: threshold [m].
    """
    n = len(between)
    single = [name for name, frames in at.items() if frames.mean() >= enough]
    alone = np.any(list(at.values()), axis=0)
    shared = (between <= distance) & (~alone | (np.sum(list(at.values()), axis=0) > 1))
    if len(single) == 1 and shared.mean() < enough:
        return {single[0]: np.ones(n, dtype=bool)}
    if not single and shared.mean() < enough:
        return {}
    # Several feet: each carries where it rests; ambiguous frames take the nearest clear one.
    names = [name for name in at if name in single or (shared & rests[name]).mean() >= enough]
    carries = {name: rests[name] & (between <= distance) | at[name] for name in names}
    nobody = ~np.any(list(carries.values()), axis=0)
    if nobody.all():
        return {}
    known = np.flatnonzero(~nobody)
    nearest = known[np.argmin(np.abs(np.arange(n)[:, None] - known[None]), axis=1)]
    return {name: frames[nearest] for name, frames in carries.items()}


def _share_out(
    wrench: MeasuredWrench, scene: SoleScene, span: tuple[int, int], who: dict[str, np.ndarray],
    total: dict[str, np.ndarray], estimated: np.ndarray,
) -> None:  # fmt: skip
    """Add the samples [a, b) of a plate to its feet."""
    a, b = span
    rows = scene.frames(a, b)
    if rows is None or not who:
        return
    both = np.hstack([wrench.force, wrench.moment])
    samples = np.arange(a, b)
    frame = np.argmin(np.abs(wrench.times[samples, None] - scene.times[rows][None]), axis=1)
    carries = np.stack([frames[frame] for frames in who.values()])
    names = list(who)
    for k, name in enumerate(names):
        alone = samples[carries[k] & (carries.sum(axis=0) == 1)]
        total[name][alone] += both[alone]
    for i, j in combinations(range(len(names)), 2):
        pair = samples[carries[i] & carries[j]]
        if not len(pair):
            continue
        at = [_middle(scene, names[k], wrench.times[pair], wrench) for k in (i, j)]
        first = split(both[pair], at[0], at[1], wrench.normal)
        total[names[i]][pair] += first
        total[names[j]][pair] += both[pair] - first
        estimated[pair] = True


def _middle(scene: SoleScene, foot: str, times: np.ndarray, wrench: MeasuredWrench) -> np.ndarray:
    """Return sole middles (m, 3) on the surface [m]."""
    points = scene.feet[foot]
    seen = np.isfinite(points).all(axis=2)
    centre = np.nansum(points, axis=1) / np.maximum(seen.sum(axis=1), 1)[:, None]
    good = seen.any(axis=1)
    at = np.stack([np.interp(times, scene.times[good], centre[good, c]) for c in range(3)], axis=1)
    return at - np.outer((at - wrench.surface) @ wrench.normal, wrench.normal)


def split(both: np.ndarray, p1: np.ndarray, p2: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the share (m, 6) of the first of two feet, of least variance and pushing.

    Forces f and moments m about the sole middles p minimise sum(|f|^2 + |m|^2 / lever^2) with the given sum. A pulling
    foot carries nothing.

    Args:
        both: (m, 6) force [N], moment about the world origin [N m].
        p1: (m, 3) [m].
        p2: (m, 3) [m].
        normal: (3,).
    """
    F, M = both[:, :3], both[:, 3:]
    # Axes with the normal last: the bound then concerns one variable.
    axes = np.linalg.svd(normal[None])[2][[1, 2, 0]]
    axes[2] *= np.sign(axes[2] @ normal)
    axes[0] *= np.sign(np.linalg.det(axes))
    f, m, a, b = (x @ axes.T for x in (F, M, p1, p2))
    rest = m - np.cross(b, f)  # moment about the second foot
    D = np.zeros((len(f), 3, 3))
    d = a - b
    D[:, 0, 1], D[:, 0, 2], D[:, 1, 2] = -d[:, 2], d[:, 1], -d[:, 0]
    D -= np.swapaxes(D, 1, 2)
    w = 1 / _LEVER**2
    H = np.zeros((len(f), 6, 6))
    H[:, :3, :3] = 2 * np.eye(3) + w * np.swapaxes(D, 1, 2) @ D
    H[:, 3:, :3] = w * D
    H[:, :3, 3:] = w * np.swapaxes(D, 1, 2)
    H[:, 3:, 3:] = 2 * w * np.eye(3)
    g = np.hstack([-f - w * np.einsum("nji,nj->ni", D, rest), -w * rest])
    x = np.linalg.solve(H, -g[..., None])[..., 0]
    # With one bound at each end, the optimum is on the bound whenever the free optimum is beyond it. A foot without
    # normal force carries no other force or moment.
    share = np.hstack([x[:, :3], x[:, 3:] + np.cross(a, x[:, :3])])
    none, whole = x[:, 2] <= 0, x[:, 2] >= f[:, 2]
    share[none] = 0.0
    share[whole] = np.hstack([f, m])[whole]
    return np.hstack([share[:, :3] @ axes, share[:, 3:] @ axes])
