"""The whole body over the whole clip: smoother than frame by frame, with feet that stay, every limit kept."""

import functools
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from humanoid_control.errors import UnknownNameError
from humanoid_control.evaluation import measure_clip, measure_ground_contact
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import ClipRetargeter, WholeBodyScaler, retarget_whole_body
from humanoid_control.retargeting.whole_body import clip_retargeter
from humanoid_control.retargeting.whole_body.clip_retargeter import (
    ContactSchedule,
    frames_from,
    lowered,
    runs,
    steady,
    unturned,
)
from humanoid_control.retargeting.whole_body.clip_solver import ClipPostures, advance, frame_costs, newton_step
from humanoid_control.retargeting.whole_body.contacts import ContactRules, sole_corners
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind, nightly
from test.walking_person import RATE, walking_person

BIPEDS = ("lola", "hrp2", "suralp", "wabian2")
REAL = ("dance_markers/walk1.trc", "cmu_bvh/05_02.bvh", "dance_markers/dance1.trc")


@pytest.fixture(scope="module")
def walk():
    return walking_person()


@pytest.fixture(scope="module")
def walks(walk):
    """Return a function that gives the walk of a robot, frame by frame and whole, each made once."""

    @functools.cache
    def made(name):
        return [retarget_whole_body(walk[0], load_robot(name, "floating"), method=m) for m in ("live", "clip")]

    return made


def keeps_limits(robot, t):
    inside = (t.positions >= robot.lower - 1e-9).all() and (t.positions <= robot.upper + 1e-9).all()
    return inside and (np.abs(t.velocities) <= robot.velocity * (1 + 1e-9)).all()


def largest(t, order):
    """99th percentile of the derivatives of an order of all joints."""
    return np.percentile(np.abs(np.diff(t.positions, order, axis=0)) * t.rate**order, 99)


# -------- plan of the contacts


def test_contacts_are_steady():
    flags = np.array([0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1], dtype=bool)
    assert runs(steady(flags, 1, 2)) == [(1, 7), (14, 15)]
    assert runs(steady(flags, 1, 6)) == [(14, 15)]
    assert runs(steady(flags, 0, 0)) == runs(flags) == [(1, 4), (5, 7), (10, 11), (14, 15)]


def test_a_foot_that_is_still_raised_is_not_yet_down():
    flags, height = np.ones(10, dtype=bool), np.zeros(10)
    flags[[0, 9]] = False
    height[[1, 2, 3, 8]] = 0.03
    assert runs(lowered(flags, height, 5)) == [(4, 8)]
    assert runs(lowered(flags, height, 2)) == [(3, 8)]
    assert runs(lowered(flags, np.full(10, 0.03), 20)) != []


def test_a_foot_that_pivots_on_its_toe_is_let_go_between():
    yaw, on = np.linspace(0.0, 2.0, 101), np.tile([False, True], (101, 1))
    parts = unturned(0, 101, yaw + 2 * np.pi * (np.arange(101) > 50), on, 0.35, RATE)
    assert len(parts) == 3 and parts[0][0] == 0 and parts[-1][1] == 101
    assert all(np.ptp(yaw[a:b]) <= 0.71 for a, b in parts)
    assert all(later[0] - sooner[1] == 12 for sooner, later in pairwise(parts))
    assert unturned(0, 101, yaw, np.ones((101, 2), dtype=bool), 0.35, RATE) == [(0, 101)]


def test_a_foot_that_turns_all_the_time_is_never_held_for_less_than_two_frames():
    """A contact of no frames has no place: its mean was no number, and the window around it stayed as it was."""
    rng, on = np.random.default_rng(3), np.tile([False, True], (200, 1))
    for _ in range(50):
        yaw = np.cumsum(rng.normal(0.0, 0.2, 200))
        first, end = sorted(rng.choice(200, 2, replace=False).tolist())
        parts = unturned(first, end, yaw, on, 0.35, RATE)
        assert all(first <= a and b <= end and b - a >= 2 for a, b in parts), parts
        assert all(later[0] >= sooner[1] for sooner, later in pairwise(parts)), parts


def test_frames_from_the_nearest():
    assert frames_from(np.array([0, 0, 1, 0, 0, 0, 1], dtype=bool)).tolist() == [2, 1, 0, 1, 2, 1, 0]
    assert (frames_from(np.zeros(4, dtype=bool)) >= 4).all()


@pytest.mark.parametrize(("rate", "lift", "glide"), [(RATE, 10, 20), (30.0, 3, 6), (4.0, 1, 1), (2.0, 1, 1)])
def test_edges_and_feet_take_their_time_at_every_rate_and_a_frame_at_least(walk, rate, lift, glide):
    robot = load_robot("hrp2", "floating")
    targets = replace(WholeBodyScaler(walk[0], robot).targets(walk[0]), rate=rate)
    plan = ContactSchedule.of(targets, ClipRetargeter(robot).legs.soles, ContactRules())
    assert (plan.lift, plan.glide) == (lift, glide)
    near = frames_from(plan.edge[:, 0])
    free = np.maximum(plan.free[:, 0, 3], 0.0)
    assert plan.height[near >= lift, 0, 0] == pytest.approx(free[near >= lift])
    between = (near > 0) & (near < lift) & (free > 1e-3)
    assert (plan.height[between, 0, 0] < free[between]).all() and (between.any() or lift < 5)


def test_soles_stand_where_the_person_does_and_go_there_without_a_jump(walk):
    robot = load_robot("hrp2", "floating")
    targets = WholeBodyScaler(walk[0], robot).targets(walk[0])
    soles = ClipRetargeter(robot).legs.soles
    plan = ContactSchedule.of(targets, soles, ContactRules())
    poses = plan.poses(0, len(targets))
    assert poses[300:400] == pytest.approx(plan.poses(300, 400), abs=1e-12)
    corners, off = np.empty((4, 3)), []
    for k, (a, b, f) in enumerate(zip(plan.first, plan.end, plan.foot, strict=True)):
        held = []
        for t in range(a, b):
            sole_corners(soles, f, poses[t, f], corners)
            on = np.repeat(plan.edge[t, 2 * f : 2 * f + 2], 2)
            held.append(np.where(on[:, None], corners, np.nan))
        assert np.nanmax(np.nanmax(held, axis=0) - np.nanmin(held, axis=0)) < 1e-9  # what is held does not move
        assert np.nanmax(np.abs(np.array(held)[:, :, 2])) < 1e-9
        off.append(np.abs(plan.place[k, :2] - np.median(targets.soles[a:b, f, :2], axis=0)).max())
    assert max(off) < 0.02
    assert np.abs(np.diff(poses[:, :, :2], axis=0)).max() * RATE < 3.0
    free = np.abs(np.diff(targets.soles[:, :, :2], axis=0)).max() * RATE
    assert np.abs(np.diff(poses[:, :, :2], axis=0)).max() * RATE < 1.2 * free
    still = walk[1]
    assert all((plan.edge[:, e] == still[:, e // 2]).mean() > 0.93 for e in range(4))


# -------- optimisation


@pytest.fixture(scope="module")
def window(walk):
    """A window of a walk: its windows, the state and goal of 60 frames, two of them fixed."""
    robot = load_robot("wabian2", "floating")
    targets = WholeBodyScaler(walk[0], robot).targets(walk[0])
    solver = ClipRetargeter(robot)
    frames = solver.inputs(targets)
    live = solver._begin(frames, targets)
    solver._solve_part(frames, 1, 160, 1 / RATE, live)
    plan = ContactSchedule.of(targets, solver.legs.soles, solver.rules)
    windows = clip_retargeter._Windows(solver, frames, plan, 1 / RATE)
    windows.work = clip_retargeter.ClipWork.room(windows.problem, 60)
    windows.rules = windows.rules._replace(hard=1e3, apart=1e4)
    state = ClipPostures(live.x[100:160].copy(), live.R[100:160].copy(), live.p[100:160].copy())
    state.x[:, :6] = 0.0
    return windows, state, windows._goal(100, 160, 1e4)


def cost_at(window, state):
    windows, _, goal = window
    assert newton_step(windows.problem, windows.rules, state, goal, 2, windows.scratch, windows.work)
    return windows.work.cost[2:60].sum()


def moved(window, state, step, share):
    to = ClipPostures(*(np.empty_like(a) for a in state))
    to.x[:, :6] = 0.0
    advance(window[0].problem, state, step, np.full(len(step), share), to)
    return to


def test_the_step_is_downhill_and_ends_where_the_cost_is_least(window):
    """By finite differences of the cost along random directions."""
    windows, state, goal = window
    rng, first = np.random.default_rng(0), cost_at(window, state)
    step = windows.work.step.copy()
    assert (step[:2] == 0).all()
    assert cost_at(window, moved(window, state, step, 1e-4)) < first
    directions = rng.normal(size=(6, *step.shape))
    directions[:, :2] = 0.0

    def slopes():
        ends = [[cost_at(window, moved(window, state, d, s * 1e-5)) for s in (1, -1)] for d in directions]
        return np.array([a - b for a, b in ends]) / 2e-5

    steepest = np.abs(slopes()).max()
    for _ in range(12):
        cost_at(window, state)
        state = moved(window, state, windows.work.step.copy(), 1.0)
    least = cost_at(window, state)
    assert least < 0.7 * first
    frame_costs(windows.problem, windows.rules, state, goal, 2, windows.scratch, windows.work)
    assert windows.work.cost[2:60].sum() == pytest.approx(least, rel=1e-12)
    assert np.abs(slopes()).max() < 0.05 * steepest


@pytest.mark.parametrize("name", by_kind(BIPEDS))
def test_a_walk_keeps_its_feet_and_every_limit_and_is_nearer_and_smoother(name, walks):
    robot = load_robot(name, "floating")
    live, clip = walks(name)
    contact = measure_ground_contact(robot, clip.q(), clip.contacts, clip.rate)
    assert len(contact.slip) >= 8 and (contact.contact_share > 0.4).all()
    assert contact.slip.max() < 1e-3 and contact.penetration.max() < 1e-3 and contact.floating.max() < 2e-3
    assert keeps_limits(robot, clip) and (clip.clearance >= 0).all()
    assert clip.errors[:, :12].mean() <= live.errors[:, :12].mean()
    assert largest(clip, 2) < largest(live, 2) and largest(clip, 3) < 1.25 * largest(live, 3)


def test_frames_that_violate_something_are_solved_again(walk, monkeypatch):
    """With limits and distances that cost nothing the optimisation breaks them; what is published does not."""
    for name in ("CHOOSING", "KEEPING", "MENDING"):
        free = tuple((1e-6, 1e-6, contact) for _, _, contact in getattr(clip_retargeter, name))
        monkeypatch.setattr(clip_retargeter, name, free)
    robot = load_robot("suralp", "floating")
    clip = retarget_whole_body(walk[0], robot, method="clip")
    assert keeps_limits(robot, clip) and (clip.clearance >= 0).all()
    assert (clip.used_fallback > 0).sum() >= 5


def test_windows_meet_without_a_seam(walk, walks, monkeypatch):
    monkeypatch.setattr(clip_retargeter, "WINDOW", 150)
    short, whole = retarget_whole_body(walk[0], load_robot("lola", "floating"), method="clip"), walks("lola")[1]
    assert np.abs(short.positions - whole.positions).max() < 0.1
    assert np.percentile(np.abs(short.positions - whole.positions), 95) < 0.02
    assert largest(short, 3) < 1.2 * largest(whole, 3)


@pytest.mark.nightly
def test_an_optimisation_without_a_step_leaves_the_start(walk, monkeypatch):
    """Feet then stand where the frame by frame solver puts them, or are let go."""
    monkeypatch.setattr(clip_retargeter, "newton_step", lambda *_: False)
    robot = load_robot("lola", "floating")
    clip = retarget_whole_body(walk[0], robot, method="clip")
    assert keeps_limits(robot, clip) and (clip.clearance >= 0).all() and np.isfinite(clip.q()).all()


@pytest.mark.parametrize("frames", [1, 2, 3, 40])
def test_the_shortest_clips(walk, frames):
    robot = load_robot("hrp2", "floating")
    targets = WholeBodyScaler(walk[0], robot).targets(walk[0])
    part = {
        f.name: value[100 : 100 + frames]
        for f in fields(targets)
        if isinstance(value := getattr(targets, f.name), np.ndarray)
    }
    clip = ClipRetargeter(robot).solve(replace(targets, **part))
    assert clip.positions.shape == (frames, robot.n) and np.isfinite(clip.q()).all() and keeps_limits(robot, clip)


def test_progress_ends_with_the_clip(walk):
    told = []
    retarget_whole_body(
        walk[0], load_robot("lola", "floating"), progress=lambda done, T: told.append((done, T)), method="clip"
    )
    T = walk[0].n_frames
    assert told[-1] == (T, T) and [d for d, _ in told] == sorted(d for d, _ in told)


def test_an_unknown_method_is_refused_with_those_there_are(walk):
    with pytest.raises(UnknownNameError, match=r"unknown method 'clpi'.*clip"):
        retarget_whole_body(walk[0], load_robot("hrp2", "floating"), method="clpi")


# -------- clips


@pytest.mark.parametrize("name", by_kind(BIPEDS))
@pytest.mark.parametrize("clip", [c if "walk1" in c else nightly(c) for c in REAL])
def test_recorded_people_keep_the_robots_feet_on_the_ground_and_are_followed_nearer(name, clip, mocap):
    robot, body = load_robot(name, "floating"), load_body_points(mocap(clip))
    live, whole = (retarget_whole_body(body, robot, method=m) for m in ("live", "clip"))
    numbers = measure_clip(robot, whole).numbers
    assert keeps_limits(robot, whole) and numbers["colliding_percent"] == 0
    contact = measure_ground_contact(robot, whole.q(), whole.contacts, whole.rate)
    assert contact.slip.max() < 2e-3 and contact.floating.max() < 5e-3
    assert np.quantile(contact.penetration, 0.99) < 1e-3 and contact.penetration.max() < 5e-3
    assert whole.errors[:, :12].mean() < live.errors[:, :12].mean()
