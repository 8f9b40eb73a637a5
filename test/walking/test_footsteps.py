"""Footsteps: the same in every place and heading, mirrored for the other foot, within their limits; lists and goals."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.errors import ConfigError
from humanoid_control.walking.footsteps import MOST_STEPS, VelocityPlanner, check_list
from humanoid_control.walking.plane_geometry import middle_of, planar_exp, polygon_distance
from humanoid_control.walking.planning.step import Footstep, StepLimits, StepTimes

SOLE = np.array([[-0.1, -0.06], [0.17, -0.06], [0.17, 0.06], [-0.1, 0.06]])
LIMITS = StepLimits(width=0.19, gap=0.15, outlines=(SOLE, SOLE))
MIRROR = np.diag([1.0, -1.0, 1.0])
commands = st.tuples(st.floats(-2, 2), st.floats(-1, 1), st.floats(-3, 3)).map(np.array)


def planner(command=(0, 0, 0), limits=LIMITS, **times):
    p = VelocityPlanner(limits, StepTimes(**times))
    p.command = np.array(command, dtype=float)
    return p


def soles(width=0.19):
    return [pin.SE3(np.eye(3), np.array([0.0, s * width / 2, 0.0])) for s in (1, -1)]


def walk(p, stance, count, before=(0, 0, 0), ahead=1):
    """Steps taken one after the other, planned anew for each."""
    out, d = [], np.array(before, dtype=float)
    for _ in range(count):
        steps, d = p.next_steps(stance, d, ahead)
        out.append(steps[0])
        stance = steps[0]
    return out


def stance_at(foot=1, X=None):
    return Footstep(foot, X or soles()[foot], 0.0, 0.0, 0.0)


def yaw_of(X):
    return np.arctan2(X.rotation[1, 0], X.rotation[0, 0])


@settings(max_examples=25)
@given(commands, st.floats(-3, 3), st.floats(-50, 50), st.floats(-50, 50))
def test_the_same_steps_wherever_the_world_begins(command, turn, x, y):
    X = planar_exp([x, y, turn])
    here, there = walk(planner(command), stance_at(), 5), walk(planner(command), stance_at(1, X * soles()[1]), 5)
    for a, b in zip(here, there, strict=True):
        assert np.allclose((X * a.X).homogeneous, b.X.homogeneous, atol=1e-9)
        assert (a.foot, a.swing, a.double, a.limited) == (b.foot, b.swing, b.double, b.limited)


@settings(max_examples=25)
@given(commands)
def test_the_other_foot_makes_the_mirrored_step(command):
    here = walk(planner(command), stance_at(1), 5)
    there = walk(planner(command * [1, -1, -1]), stance_at(0), 5)
    for a, b in zip(here, there, strict=True):
        assert b.foot == 1 - a.foot
        assert np.allclose(MIRROR @ a.X.translation, b.X.translation, atol=1e-9)
        assert np.allclose(MIRROR @ a.X.rotation @ MIRROR, b.X.rotation, atol=1e-9)


@settings(max_examples=40)
@given(st.lists(commands, min_size=1, max_size=4), st.sampled_from([0, 1]))
def test_every_step_is_one_that_the_limits_accept(wanted, foot):
    """Whatever is asked for, and however it changes: no soles that meet, no step beyond the ellipsoid."""
    p, stance, at, d = planner(), stance_at(foot), soles(), np.zeros(3)
    for k in range(8):
        p.command = wanted[k % len(wanted)]
        steps, d = p.next_steps(stance, d, 4)
        for step in steps:
            assert LIMITS.refusal(step, stance.X) == ""
            stance = step
        stance = steps[0]
        X = at[1 - stance.foot].actInv(stance.X)
        corners = [SOLE @ Y.rotation[:2, :2].T + Y.translation[:2] for Y in (stance.X, at[1 - stance.foot])]
        assert polygon_distance(*corners) >= 0.02 - 1e-6
        assert (X.translation[1] > 0) == (stance.foot == 0)
        at[stance.foot] = stance.X


@pytest.mark.parametrize(
    "command", [(0.4, 0, 0), (-0.2, 0, 0), (0, 0.15, 0), (0, -0.12, 0), (0.2, 0.05, 0.2), (0, 0, 0.3)]
)
def test_the_middle_of_the_feet_moves_with_the_velocity(command):
    p, stance = planner(command), stance_at()
    steps = walk(p, stance, 14)
    feet = {s.foot: s for s in steps[7:9]}
    start, t = middle_of([feet[0].X, feet[1].X]), sum(s.swing + s.double for s in steps[9:13])
    feet = {s.foot: s for s in steps[11:13]}
    moved = start.actInv(middle_of([feet[0].X, feet[1].X]))
    wanted = planar_exp(np.array(command) * t)
    assert yaw_of(moved) == pytest.approx(yaw_of(wanted), abs=0.02)
    assert np.allclose(moved.translation, wanted.translation, atol=0.02 + 0.03 * np.linalg.norm(wanted.translation))


def test_steps_change_no_more_at_once_than_they_may():
    p = planner((0.5, 0, 0))
    ahead = [
        np.linalg.norm(np.diff([a.X.translation[0], b.X.translation[0]]))
        for a, b in zip([stance_at(), *walk(p, stance_at(), 5)], walk(p, stance_at(), 5), strict=False)
    ]
    assert np.allclose(ahead, [0.15, 0.3, 0.4, 0.4, 0.4])


def test_steps_get_quicker_beyond_the_comfortable_length():
    t = StepTimes(nominal=0.8, shortest=0.5, comfortable=0.3)
    assert t.of_speed(0.3 / 0.8) == pytest.approx(0.8)
    assert t.of_speed(0.5) == pytest.approx(0.6)
    assert t.of_speed(3.0) == 0.5
    p = planner((0.5, 0, 0), nominal=0.8, shortest=0.5, comfortable=0.3)
    last = walk(p, stance_at(), 8)
    assert last[-1].swing + last[-1].double == pytest.approx(0.6)
    assert last[-1].X.translation[0] - last[-2].X.translation[0] == pytest.approx(0.3)


def test_quick_steps_are_shorter_where_joints_are_slow():
    slow = StepLimits(quick=(0.5, 0.5, 0.5, 0.5), forward=0.4, nominal=0.8, shortest=0.5)
    assert slow.most(np.array([1.0, 0, 0]), 0.8, True)[0] == pytest.approx(0.4)
    assert slow.most(np.array([1.0, 0, 0]), 0.5, True)[0] == pytest.approx(0.2)
    assert slow.most(np.array([1.0, 0, 0]), 0.65, True)[0] == pytest.approx(0.3)
    assert slow.most(np.array([-1.0, 0, 0]), 2.0, True)[0] == pytest.approx(slow.backward)


def test_distance_of_polygons_is_that_of_their_nearest_points():
    rng = np.random.default_rng(3)
    for _ in range(40):
        X = planar_exp([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-3, 3)])
        other = SOLE @ X.rotation[:2, :2].T + X.translation[:2]
        # Points of both areas: the nearest pair of a fine grid is no nearer, and not much farther.
        u = np.linspace(0, 1, 16)
        grid = np.array([[a, b] for a in u for b in u])

        def fill(p, grid=grid):
            return p[0] + grid[:, :1] * (p[1] - p[0]) + grid[:, 1:] * (p[3] - p[0])

        d = np.linalg.norm(fill(SOLE)[:, None] - fill(other)[None], axis=2).min()
        assert d - 0.018 <= polygon_distance(SOLE, other) <= d + 1e-12


# -------- Lists


def straight(count, first=0, length=0.1, **changes):
    out = []
    for k in range(count):
        foot = (first + k) % 2
        X = pin.SE3(np.eye(3), np.array([length * (k + 1), 0.095 * (1 - 2 * foot), 0.0]))
        out.append(Footstep(foot, X, 0.64, 0.16, 0.05, **changes))
    return out


def test_a_list_is_walked_then_the_robot_stands():
    p, steps = planner((0.3, 0, 0)), straight(5)
    p.follow(steps, soles())
    assert p.moving
    assert p.first_foot == 0
    stance, d, made = stance_at(1), np.zeros(3), []
    while p.moving:
        nexts, d = p.next_steps(stance, d, 4)
        again, _ = p.next_steps(stance, d, 4)  # planning once more takes nothing from the list
        assert again[0] is nexts[0] or not p.moving
        assert nexts[1].foot != nexts[0].foot
        made.append(nexts[0])
        stance = nexts[0]
    assert made[:5] == steps
    assert len(made) == 6  # the last one closes
    assert np.allclose(made[5].X.translation[0], 0.5)
    assert d.tolist() == [0, 0, 0]


def test_lists_are_appended_and_replaced_from_the_step_that_has_not_begun():
    p, steps = planner(), straight(8)
    p.follow(steps[:4], soles())
    first, _ = p.next_steps(stance_at(1), np.zeros(3), 4)
    p.follow(steps[4:6], soles(), append=True)
    assert p.queue == steps[:6]
    other = straight(3, first=1, length=0.05)
    p.follow(other, [first[0].X, soles()[1]], swinging=0)
    assert p.queue == [steps[0], *other]  # the one in the air is made
    p.next_steps(first[0], np.zeros(3), 4)
    assert p.queue == other


@settings(max_examples=40)
@given(x=st.floats(-0.15, 0.15), inward=st.floats(0.02, 0.15), turn=st.floats(-0.3, 0.3))
def test_where_a_push_has_moved_the_foot_that_stands_a_listed_step_is_one_that_is_possible(x, inward, turn):
    """The one after it is where the list has it, or as near to that as can be."""
    p, steps = planner(), straight(4)
    p.follow(steps, soles())
    pushed = stance_at(1, soles()[1] * planar_exp(np.array([x, inward, turn])))
    assert LIMITS.refusal(steps[0], pushed.X) or inward < 0.06
    (step, following), _ = p.next_steps(pushed, np.zeros(3), 2)
    assert step.foot == 0 and not LIMITS.refusal(step, pushed.X) and not LIMITS.refusal(following, step.X)
    if not LIMITS.refusal(steps[0], pushed.X):
        assert step is steps[0]
    else:
        assert step.limited
        nearer, beside = steps[0].X.translation, p.make(pushed, np.zeros(3), 0.8).X.translation
        assert np.linalg.norm(step.X.translation - nearer) <= np.linalg.norm(beside - nearer) + 1e-9
    if not LIMITS.refusal(steps[1], step.X):
        assert following is steps[1]


def bad_lists():
    nan = pin.SE3(np.eye(3), np.array([np.nan, 0.1, 0.0]))
    tilted = pin.SE3(pin.exp3(np.array([0.8, 0, 0])), np.array([0.3, 0.095, 0]))
    turned = pin.SE3(pin.exp3(np.array([0, 0, 1.2])), np.array([0.2, 0.16, 0]))
    at = {
        "not finite": nan,
        "tilted": tilted,
        "turn": turned,
        "too far": pin.SE3(np.eye(3), np.array([0.9, 0.095, 0.0])),
        "cross": pin.SE3(np.eye(3), np.array([0.3, -0.3, 0.0])),
        "closer": pin.SE3(np.eye(3), np.array([0.3, 0.02, 0.0])),
        "too high": pin.SE3(np.eye(3), np.array([0.3, 0.095, 0.5])),
    }
    for why, X in at.items():
        steps = straight(5)
        steps[2] = Footstep(0, X, 0.64, 0.16, 0.05)
        yield pytest.param(steps, f"footstep 2: .*{why}", id=why)
    twice = straight(5)
    twice[3] = Footstep(0, twice[3].X, 0.64, 0.16, 0.05)
    yield pytest.param(twice, "footstep 3: the same foot", id="twice")
    quick = straight(5)
    quick[4] = Footstep(0, quick[4].X, 0.05, 0.16, 0.05)
    yield pytest.param(quick, "footstep 4: .*cannot take", id="quick")
    which = straight(2)
    which[1] = Footstep(2, which[1].X, 0.64, 0.16, 0.05)
    yield pytest.param(which, "footstep 1: foot must be", id="which")


@pytest.mark.parametrize(("steps", "why"), bad_lists())
def test_a_bad_list_is_refused_whole_with_the_first_bad_step(steps, why):
    p = planner((0.1, 0, 0))
    p.follow(straight(2), soles())
    before = list(p.queue)
    with pytest.raises(ConfigError, match=why):
        p.follow(steps, soles())
    assert p.queue == before


def test_a_foot_that_would_go_through_the_other_one_is_refused():
    """Both ends are clear, the way between them is not."""
    at = [pin.SE3(np.eye(3), np.array([-0.35, 0.15, 0.0])), pin.SE3.Identity()]
    far = StepLimits(width=0.19, gap=0.1, forward=1.0, backward=1.0, outlines=(SOLE, SOLE))
    step = Footstep(0, pin.SE3(np.eye(3), np.array([0.35, 0.1, 0.0])), 0.64, 0.16, 0.05)
    assert far.refusal(step, at[1]) == ""
    assert "pass" in far.refusal(step, at[1], at[0])


def test_too_many_and_the_wrong_foot():
    with pytest.raises(ConfigError, match=f"at most {MOST_STEPS}"):
        planner().follow(straight(MOST_STEPS + 1, length=0.01), soles())
    planner().follow(straight(MOST_STEPS, length=0.01), soles())
    with pytest.raises(ConfigError, match="footstep 0: the same foot"):
        planner().follow(straight(2), soles(), swinging=0)
    with pytest.raises(ConfigError, match="footstep 0"):
        check_list(LIMITS, straight(2, length=0.9), soles())


# -------- Goals


@settings(max_examples=40)
@given(st.floats(-6, 6), st.floats(-6, 6), st.floats(-3.14, 3.14), st.sampled_from([None, 0, 1]))
def test_the_way_to_a_goal_ends_on_it_and_can_be_walked(x, y, turn, swinging):
    goal, p = planar_exp([0, 0, turn]), planner()
    goal.translation = np.array([x, y, 0.0])
    steps = p.walk_to(goal, soles(), swinging)
    check_list(LIMITS, steps, soles(), swinging)
    end = middle_of([steps[-1].X, steps[-2].X])
    assert np.linalg.norm(end.translation[:2] - [x, y]) < 1e-6
    assert abs(yaw_of(end.actInv(goal))) < 1e-6
    most = 12 + np.hypot(x, y) / 0.12 + 2 * np.pi / 0.2
    assert len(steps) < most


def test_goals_that_cannot_be_walked_to():
    with pytest.raises(ConfigError, match="more than 1000 footsteps"):
        planner().walk_to(pin.SE3(np.eye(3), np.array([1e4, 0, 0])), soles())
    with pytest.raises(ConfigError, match="finite"):
        planner().walk_to(pin.SE3(np.eye(3), np.array([np.inf, 0, 0])), soles())


def creeping(aim):
    """Where a robot ends whose soles creep back by 4 cm, and turn, in each step of the way to a goal; steps made."""
    goal, p = planar_exp([1.2, 0.2, 0.3]), planner()
    feet = soles()
    p.follow(p.walk_to(goal, feet), feet)
    if aim:
        p.aim(goal)
    stance, d, made = stance_at(1 - p.first_foot), np.zeros(3), 0
    while p.queue and made < 60:
        for _ in range(3):  # planned anew in every tick
            (step, *_), new = p.next_steps(stance, d, 2)
        if not p.queue:
            break
        d, made = new, made + 1
        crept = replace(step, X=step.X * planar_exp([-0.04, 0.0, -0.03]) if len(p.queue) > 1 else step.X)
        feet[step.foot], stance = crept.X, crept
    left = middle_of(feet).actInv(goal)
    return float(np.linalg.norm(left.translation[:2])), abs(float(yaw_of(left))), made


def test_a_list_that_ends_away_from_its_goal_is_continued():
    """Where soles creep, the last steps are shortened, or stand elsewhere: there it ended, centimetres off."""
    assert creeping(False)[0] > 0.015
    off, turned, made = creeping(True)
    assert off < 0.03 and turned < 0.05 and made < 60


def test_the_last_step_of_a_way_to_a_goal_arrives_and_a_list_without_a_goal_never_does():
    goal = planar_exp([0.3, 0.0, 0.0])
    for aim in (True, False):
        p, feet = planner(), soles()
        p.follow(p.walk_to(goal, feet), feet)
        if aim:
            p.aim(goal)
        stance, d, arrived = stance_at(1 - p.first_foot), np.zeros(3), []
        for _ in range(12):
            (step, *_), d = p.next_steps(stance, d, 1)
            arrived.append(p.arrives())
            if arrived[-1] or not p.queue:
                break
            feet[step.foot], stance = step.X, step
        assert arrived.count(True) == aim and arrived[-1] is aim
        if aim:
            feet[step.foot] = step.X
            assert np.linalg.norm(middle_of(feet).actInv(goal).translation[:2]) < 0.015
            assert not p.queue and p.goal is None and not p.moving


STIFF_HIPS = StepLimits(width=0.19, gap=0.15, outlines=(SOLE, SOLE), turn_out=0.0, turn_in=0.0)


@pytest.mark.parametrize("speed", [0.1, 0.3, -0.2])
def test_legs_that_cannot_turn_walk_on_where_a_turn_is_asked(speed):
    straight = walk(planner((speed, 0.05, 0.0), STIFF_HIPS), stance_at(), 8)
    turning = walk(planner((speed, 0.05, 0.4), STIFF_HIPS), stance_at(), 8)
    assert abs(turning[-1].X.translation[0]) > 6 * abs(speed) * 0.5
    first = (turning[0].foot, straight[0].foot)
    assert first[0] == first[1]
    for a, b in zip(turning, straight, strict=True):
        assert np.allclose(a.X.homogeneous, b.X.homogeneous, atol=1e-9), "the turn alone is left out"
        assert a.limited and not b.limited, "and reported"


def test_legs_that_can_turn_one_way_only_are_asked_for_turns():
    assert StepLimits(turn_out=0.0, turn_in=0.2).possible.tolist() == [True, True, True]
    assert STIFF_HIPS.possible.tolist() == [True, True, False]
    assert StepLimits(sideways=0.0).possible.tolist() == [True, False, True]


@pytest.mark.parametrize("place", [(3.0, 0.0), (0.0, 1.0), (-2.0, 0.5)])
def test_legs_that_cannot_turn_reach_a_pose_of_the_same_heading(place):
    goal = pin.SE3(np.eye(3), np.array([*place, 0.0]))
    steps = planner(limits=STIFF_HIPS).walk_to(goal, soles())
    at = {s.foot: s.X for s in steps}
    assert np.allclose(middle_of([at[0], at[1]]).translation[:2], place, atol=1e-6)
    with pytest.raises(ConfigError, match="rotated by 90 deg: the legs cannot turn"):
        planner(limits=STIFF_HIPS).walk_to(planar_exp([1.0, 0.0, np.pi / 2]), soles())
