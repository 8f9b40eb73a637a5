"""Swept safety: the way through a tick and on to the stop, against a brute-force walk along it in a thousand steps."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.convex_distance import Solid
from humanoid_control.collision.penetration_depth import separation
from humanoid_control.ik import IkSettings, PointsTask, PostureTask, WholeBodyIk
from humanoid_control.ik.limits.stopping_path import (
    StoppingPathCheck,
    braking_distance,
    chord_deviation,
    least_by_gap,
    least_by_travel,
    least_distance_on_path,
)
from humanoid_control.robots import load_robot
from humanoid_control.robots.self_collision import ShapePairs, motion_bounds
from test.robots_under_test import by_kind, nightly

DT = 0.004


def braked(robot, q, v, acceleration, ticks, length):
    """Where a robot is after some ticks of DT, the first at v, then braked in shorter or longer ones."""
    x, u, left = pin.integrate(robot.model, q, v * DT * min(ticks, 1.0)), v.copy(), DT * (ticks - 1.0)
    while left > 1e-12:
        h = min(length, left)
        u = np.sign(u) * np.maximum(np.abs(u) - acceleration * h, 0.0)
        x, left = pin.integrate(robot.model, x, u * h), left - h
    return x


def random_q(robot, rng):
    joints = rng.uniform(np.maximum(robot.lower, -2), np.minimum(robot.upper, 2))
    return robot.q(robot.follow(joints))


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_the_way_of_a_joint_is_the_middle_between_ticks_however_short_and_ticks_as_long_as_the_first(base):
    robot, rng = load_robot("hrp2", base), np.random.default_rng(0)
    q, v = random_q(robot, rng), rng.uniform(-4, 4, robot.nv)
    v[: robot.iv] = 0
    lost = 150.0 * DT  # of speed in a tick

    def way(ticks, length):
        return np.abs(braked(robot, q, v, 150.0, ticks, length)[robot.iq :] - q[robot.iq :])

    for ticks in (0.3, 1.0, 2.0, 3.0, 6.0, 50.0):
        gone = np.array([DT * braking_distance(abs(u), lost, ticks) for u in v[robot.iv :]])
        middle = 0.5 * (way(ticks, DT / 400) + way(ticks, DT))
        assert np.allclose(gone, middle, atol=0.15 * lost * DT), "but for the tick in which a joint comes to rest"
        for length, share in ((0.3 * DT, 0.25), (DT, 0.25), (2 * DT, 0.75)):
            assert (np.abs(way(ticks, length) - gone) <= share * DT * np.abs(v[robot.iv :]) + 0.15 * lost * DT).all()


@pytest.mark.parametrize("name", ["hrp2", "armar3", "lola"])
def test_no_distance_changes_by_more_than_motion_bounds_times_angles(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(1)
    bounds, watch = motion_bounds(robot), ShapePairs(robot)
    everything, tightest = np.full(len(robot.pairs), np.inf), 0.0
    for _ in range(60):
        q, size = random_q(robot, rng), 10.0 ** rng.uniform(-4, 0)
        dv = size * rng.normal(size=robot.nv) * (rng.random(robot.nv) < rng.choice([0.1, 1.0]))
        watch.update(q, everything)
        before = watch.lower.copy()
        watch.update(pin.integrate(robot.model, q, dv), everything)
        change, bound = np.abs(watch.lower - before), bounds @ np.abs(dv)
        assert (change <= bound + 1e-9).all()
        tightest = max(tightest, float(np.max(change / np.maximum(bound, 1e-9), initial=0)))
    assert tightest > 0.5, "bounds this loose would prove nothing"


@pytest.mark.parametrize("name", ["hrp2", "lola"])
def test_a_watched_pair_is_never_nearer_than_its_bound_and_exact_within_reach(name):
    """Along a walk of small steps with a few jumps, against measuring all pairs anew."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(2)
    watch, fresh = ShapePairs(robot), ShapePairs(robot)
    reach, q = np.full(len(robot.pairs), 0.1), random_q(robot, rng)
    for k in range(200):
        q = random_q(robot, rng) if k % 50 == 0 else pin.integrate(robot.model, q, 0.01 * rng.normal(size=robot.nv))
        found = watch.update(q, reach)
        near = fresh.update(q, np.inf)
        exact = np.full(len(robot.pairs), np.inf)
        exact[near.pair] = near.distance
        assert (watch.lower <= exact + 1e-9).all()
        assert np.array_equal(found.pair, np.flatnonzero(exact < 0.1))
        assert np.allclose(watch.lower[exact < 0.1], exact[exact < 0.1], atol=1e-12)


@pytest.mark.parametrize("name", by_kind(["hrp2", "suralp", "we4rii"]))
def test_a_way_found_clear_is_clear_and_one_that_touches_is_not(name):
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(3)
    watch, brute = ShapePairs(robot), ShapePairs(robot)
    check, everything = StoppingPathCheck(robot, watch), np.full(len(robot.pairs), np.inf)
    verdicts = {True: 0, False: 0}
    for _ in range(30):
        q = random_q(robot, rng)
        v = robot.velocity * rng.uniform(-1, 1, robot.n) * rng.choice([0.1, 1.0])
        a, floor = rng.choice([5.0, 100.0]) * rng.uniform(0.5, 1.5, robot.nv), 0.01  # each joint brakes by its own
        watch.update(q, np.full(len(robot.pairs), 0.12))
        clear = check.max_safe_scale(q, np.zeros(robot.nv), v, DT, a, floor) == 1.0
        brute.update(q, everything)
        start = closest = brute.lower.copy()
        for ticks in np.linspace(0, 1.0 + (np.abs(v) / (a * DT)).max(), 150):
            at = q + [np.sign(u) * DT * braking_distance(abs(u), b * DT, ticks) for u, b in zip(v, a, strict=True)]
            brute.update(at, everything)
            closest = np.minimum(closest, brute.lower)
        kept = np.minimum(np.minimum(floor, 0.9 * robot.largest_margins()), 0.999 * start)
        if clear:
            assert (closest >= 0.95 * kept - 1e-9)[start > 0].all()
        if (closest < 0)[start > 0].any():
            assert not clear
        verdicts[clear] += 1
    assert min(verdicts.values()) >= 3


@pytest.mark.parametrize("name", ["hrp2", "suralp"])  # whose joints have the same order on both bases
def test_a_base_at_rest_changes_no_verdict_whichever_joint_moves(name):
    rng, scales = np.random.default_rng(5), {}
    robots = {base: load_robot(name, base) for base in ("fixed", "floating")}
    pairs = {base: ShapePairs(robot) for base, robot in robots.items()}
    checks = {base: StoppingPathCheck(robot, pairs[base]) for base, robot in robots.items()}
    slowed = set()
    for k in range(4 * robots["fixed"].n):
        joints, one = random_q(robots["fixed"], rng), k % robots["fixed"].n
        speeds = robots["fixed"].velocity * rng.choice([-1, 1]) * (np.arange(robots["fixed"].n) == one)
        for base, robot in robots.items():
            pairs[base].update(robot.q(joints), np.full(len(robot.pairs), 0.12))
            v = np.concatenate((np.zeros(robot.iv), speeds))
            brake = np.full(robot.nv, 5.0)
            scales[base] = checks[base].max_safe_scale(robot.q(joints), np.zeros(robot.nv), v, DT, brake, 0.01)
        assert np.isclose(scales["fixed"], scales["floating"], atol=1e-9)
        slowed |= {one} if scales["fixed"] < 1.0 else set()
    assert 0 in slowed and len(slowed) > 5, "the first joint is slowed down, or this shows nothing"


def test_alone_it_keeps_arms_apart_that_are_thrown_at_each_other():
    """Rows without weight and weak brakes let the arms touch; with the way to the stop checked they stop in time."""
    robot = load_robot("hrp2", "fixed")
    hands = [robot.point_frame("l_wrist"), robot.point_frame("r_wrist")]
    closest, slowest, pairs = {}, {}, ShapePairs(robot)
    for swept in (False, True):
        ik = WholeBodyIk(robot, IkSettings(acceleration=12.0, smoothing=0.0, swept=swept, slack_weight=1e-9))
        points, q = PointsTask(robot, hands, gain=30.0), robot.q()
        points.set_target_from(q)
        points.targets = points.targets[::-1].copy()  # each hand to where the other is
        closest[swept], slowest[swept], v = np.inf, 1.0, np.zeros(robot.nv)
        rest = PostureTask(robot)
        for _ in range(300):
            result = ik.step(q, [points, rest], DT)
            assert (np.abs(result.v - v) <= 12.0 * DT * (1 + 1e-9)).all()
            q, v = result.q, result.v
            closest[swept] = min(closest[swept], pairs.update(q, np.inf).distance.min())
            slowest[swept] = min(slowest[swept], result.report.speed_scale)
    assert closest[False] < -0.01 and closest[True] > 0.002
    assert slowest[False] == 1.0 and slowest[True] < 1.0


@pytest.mark.parametrize("dt", [0.004, 0.1])
@pytest.mark.parametrize("name", ["lola", "wabian2"])
def test_no_distance_is_below_the_line_of_its_gaps_but_by_what_joints_turn(name, dt):
    """Over parts of random stopping paths, against all distances on the way; the normal of either end will do."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(6)
    watch, bounds = ShapePairs(robot), motion_bounds(robot)
    everything, tree, pairs = np.full(len(robot.pairs), np.inf), robot.model, robot.pairs
    shapes = watch.arrays.shapes
    carries = [set(tree.supports[j]) for j in range(tree.njoints)]
    common = [max(carries[shapes.joint[i]] & carries[shapes.joint[j]]) for i, j in pairs]

    def placed(q):
        found = watch.update(q, everything)
        assert np.array_equal(found.pair, np.arange(len(pairs)))
        pin.forwardKinematics(tree, robot.data, q)
        turned = np.array([robot.data.oMi[j].rotation for j in common])
        return found.distance.copy(), np.einsum("pji,pj->pi", turned, found.normal), turned

    def gaps(normals, turned):
        """Along normals in the axes of the common joints, where the watch has placed the shapes."""
        numbers = zip(shapes.kinds, shapes.sizes, watch.R, map(tuple, watch.p), strict=True)
        solids = [Solid(*each) for each in numbers]
        n = np.einsum("pij,pj->pi", turned, normals)
        return np.array([separation(solids[i], solids[j], tuple(x)) for (i, j), x in zip(pairs, n, strict=True)])

    tight = better = 0
    for _ in range(12):
        q, v = random_q(robot, rng), robot.velocity * rng.uniform(-1, 1, robot.n) * rng.choice([0.05, 0.3])
        step = 60.0 * rng.uniform(0.5, 1.5, robot.n) * min(dt, 0.01)
        last = 1.0 + (np.abs(v) / step).max()
        t0, t1 = np.sort(rng.uniform(0.0, last, 2))

        def way(ticks, v=v, step=step):
            return np.array([dt * braking_distance(abs(u), b, ticks) for u, b in zip(v, step, strict=True)])

        ends = [q + np.sign(v) * way(t) for t in (t0, t1)]
        first = placed(ends[0])
        second = placed(ends[1])
        forward = gaps(first[1], second[2])
        placed(ends[0])
        backward = gaps(second[1], first[2])
        turned, beside = (
            way(t1) - way(t0),
            np.array([dt * chord_deviation(abs(u), b, t0, t1) for u, b in zip(v, step, strict=True)]),
        )
        travel, off = bounds @ turned, bounds @ beside
        by_pair = (bounds > 0) @ turned
        least = np.inf
        for t in np.linspace(t0, t1, 60):
            on_line = ends[0] + (ends[1] - ends[0]) * (t - t0) / (t1 - t0)
            there = q + np.sign(v) * way(t)
            assert (np.abs(there - on_line) <= beside + 1e-12).all()
            least = np.minimum(least, watch.update(there, everything).distance)
        apart = (first[0] > 0) & (second[0] > 0) & (least > 0)
        for chord in (np.minimum(first[0], forward), np.minimum(second[0], backward)):
            proven = np.array([least_by_gap(*x) for x in zip(chord, travel, by_pair, off, strict=True)])
            assert (least >= proven - 1e-9)[apart].all()
            tight += int(((least - proven)[apart] < 0.002).sum())
            by_travel = np.array([least_by_travel(*x) for x in zip(first[0], second[0], travel, strict=True)])
            assert (least >= by_travel - 1e-9)[apart].all()
            better += int((proven > by_travel + 0.001)[apart].sum())
    assert tight > 50 and better > 50


SLIDE = """<robot name="slide">
<link name="base">
  <collision><origin xyz="0 2.6 0.5"/><geometry><sphere radius="0.05"/></geometry></collision></link>
<link name="table">
  <collision><origin xyz="{at} 0.06 0.5"/><geometry><sphere radius="0.05"/></geometry></collision></link>
<link name="cart"/>
<link name="ball"><collision><geometry><sphere radius="0.05"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="table"/><axis xyz="0 0 1"/>
  <limit lower="-9" upper="9" velocity="9" effort="9"/></joint>
<joint name="lift" type="prismatic"><parent link="table"/><child link="cart"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" velocity="9" effort="9"/></joint>
<joint name="slide" type="prismatic"><parent link="cart"/><child link="ball"/><axis xyz="1 0 0"/>
  <limit lower="-1" upper="1" velocity="9" effort="9"/></joint>
</robot>"""


@pytest.mark.parametrize("turned", [0.0, np.pi])
@pytest.mark.parametrize("at", [0.25, 0.4, 0.5, 0.6, 0.75, 0.9])
def test_what_a_shape_passes_on_its_way_is_seen(at, turned, tmp_path):
    """A ball that slides by 0.6 m would go through another one, wherever on the way that is; above it, it would not.

    Nor does it matter that the table turns on which both are, while a post beside it stands.
    """
    (tmp_path / "slide.urdf").write_text(SLIDE.format(at=0.6 * at - 0.3))
    robot = load_robot(tmp_path / "slide.urdf", "fixed")
    watch, (turn, slide) = ShapePairs(robot), (robot.joint_index("turn"), robot.joint_index("slide"))
    assert {(0, 2), (1, 2)} <= set(map(tuple, robot.pairs.tolist()))
    check = StoppingPathCheck(robot, watch)
    for height, clear in ((0.5, False), (0.7, True)):
        q, v = robot.q("zero"), np.zeros(3)
        q[robot.joint_index("lift")], q[slide], v[slide], v[turn] = height, -0.3, 6.0, turned / 0.1
        watch.update(q, np.full(len(robot.pairs), 0.12))
        assert (check.max_safe_scale(q, np.zeros(3), v, 0.1, np.full(3, 1e4), 0.01) == 1.0) == clear


@pytest.mark.parametrize(("name", "base"), [("lola", "floating"), ("wabian2", "fixed"), nightly("suralp", "fixed")])
def test_no_distance_on_the_way_is_below_what_the_present_posture_says(name, base):
    """Joints go their ways one before the other, as they stop at different times; solids are among the shapes."""
    robot, rng = load_robot(name, base), np.random.default_rng(11)
    watch, later = ShapePairs(robot), ShapePairs(robot)
    table = StoppingPathCheck(robot, watch).packed.table
    bounds, everything = motion_bounds(robot)[:, robot.iv :], np.full(len(robot.pairs), np.inf)
    followers = {f for f, *_ in robot.mimic}
    tightest, helped, pairs = np.inf, 0, 0
    for _ in range(40):
        q = random_q(robot, rng)
        moved = rng.normal(size=robot.n) * rng.choice([0.02, 0.1, 0.3]) * (rng.random(robot.n) < 0.7)
        moved[list(followers)] = 0.0
        found = watch.update(q, everything)
        watch.arrays.bounds.travel[:] = bounds @ np.abs(moved)
        says = np.array([least_distance_on_path(table, k, tuple(found.normal[k]), moved) for k in range(len(found))])
        closest = found.distance.copy()
        order = rng.uniform(0.3, 3.0, robot.n)
        for share in np.linspace(0.0, 1.0, 40):
            at = q.copy()
            at[robot.iq :] += moved * share**order
            closest = np.minimum(closest, later.update(at, everything).distance)
        assert (says <= closest + 1e-9).all()
        by_travel = found.distance - watch.arrays.bounds.travel
        moving = watch.arrays.bounds.travel > 1e-3
        helped, pairs = helped + int((says > by_travel + 0.01)[moving].sum()), pairs + int(moving.sum())
        near = (closest - says)[moving & (closest < 0.3)]
        tightest = min(tightest, near.min(initial=np.inf))
    assert helped > 0.3 * pairs, "nearer to the truth than by the travel"
    assert tightest < 0.01
