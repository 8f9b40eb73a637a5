"""Dancers: what is shown is where pinocchio has the robot, slip is what is measured elsewhere, motions are whole."""

import numpy as np
import pytest

from humanoid_control.evaluation import measure_clip, measure_ground_contact
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS
from humanoid_control.robots import load_robot
from humanoid_control.viewer.dance.dancer import SEAM, UpperBodyDancer, WholeBodyDancer, advance, make_dancer
from test.walking_person import walking_person


@pytest.fixture(scope="module")
def dance():
    return find_body_points(load_clip("dance").crop(0.0, 6.0))


@pytest.fixture(scope="module")
def walk():
    return walking_person()[0]


def dancing(body, name="hrp2"):
    return WholeBodyDancer(body, load_robot(name, "floating"))


def test_what_is_shown_is_where_pinocchio_has_the_robot(dance):
    dancer = dancing(dance)
    for _ in range(200):
        dancer.step()
    view, robot = dancer.view(), load_robot("hrp2", "floating")
    q = robot.q(dancer.joints, dancer.solver.root)
    for link, X in robot.link_poses(q).items():
        assert view.poses[link].translation == pytest.approx(X.translation, abs=1e-9)
    named = [k for k, name in enumerate(BODY_POINTS) if name in robot.points]
    places = robot.point_positions(q, [BODY_POINTS[k] for k in named])
    assert len(named) > 5 and view.reached[named] == pytest.approx(places, abs=1e-9)
    assert view.error == pytest.approx(np.linalg.norm(view.targets - view.reached, axis=1).mean())
    assert 0.0 < view.error < 0.08
    assert view.contacts.any() and view.soles[:, 2].min() > -1e-3, "it stands on the floor, not in it"
    held = np.repeat(view.contacts, 2)
    assert np.abs(view.soles[held, 2]).max() < 5e-3


def test_slip_is_that_of_the_report(walk):
    dancer, q, contacts = dancing(walk), [], []
    for k in range(360):
        if k:
            dancer.step()
        q.append(dancer._q.copy())
        contacts.append(dancer.view().contacts)
    assert dancer.time < dancer.duration, "no seam in it"
    measured = measure_ground_contact(dancer.robot, np.array(q), np.array(contacts), 1.0 / dancer.dt)
    assert dancer.contacts_seen == len(measured.slip)
    assert dancer.worst_slip == pytest.approx(measured.slip.max(), abs=1e-7)
    assert dancer.worst_slip < 2e-3
    dancer.solver.root.translation[0] += 0.01  # a foot that is moved although it is held
    dancer._look()
    assert dancer.view().contacts.any() and dancer.worst_slip > 9e-3


def test_a_moment_that_is_sought_is_there_at_once(dance):
    dancer, whole = dancing(dance), retarget_whole_body(dance, load_robot("hrp2", "floating"))
    for moment in (4.0, 0.5, 5.2):
        dancer.begin(moment)
        assert dancer.time == pytest.approx(moment)
        assert dancer.view().error < 0.08
        for _ in range(30):
            dancer.step()
        frame = round(dancer.time * whole.rate)
        assert dancer.view().error < whole.errors[frame, : len(BODY_POINTS)].mean() + 0.01
    dancer.begin(1e9)
    assert dancer.time <= dancer.duration
    assert dancer._take is None, "a motion that was not seen from its beginning is not graded"


def test_who_dances_in_place_steps_over_to_the_beginning_and_who_walks_begins_there_again(dance, walk):
    for body, cuts in ((dance, None), (walk, True)):
        dancer = dancing(body)
        assert cuts is None or dancer._cuts == cuts
        dancer._cuts = dancer._cuts if cuts else False
        first = dancer.view().place
        begun, place = 0, [first]
        for _ in range(round((2 * dancer.duration + 3 * SEAM) / dancer.dt)):
            before = dancer.time
            dancer.step()
            begun += dancer.time < before
            place.append(dancer.view().place)
        assert begun == 2
        largest = np.linalg.norm(np.diff(place, axis=0), axis=1).max()
        assert (largest > 0.5) if cuts else (largest < 0.06), "a cut only where the way back is long"
        dancer.begin(0.0)
        away = [np.linalg.norm(p - first) for p in place]
        assert max(away) < 2.0, "nobody walks out of the picture, a loop after the other"


def test_a_motion_is_kept_once_it_has_been_seen_from_beginning_to_end(walk):
    dancer = dancing(walk)
    dancer.loop = False
    while not dancer.finished_take:
        dancer.step()
    trajectory = dancer.trajectory()
    assert len(trajectory.positions) == pytest.approx(walk.n_frames / walk.rate / dancer.dt, abs=3)
    quality = measure_clip(load_robot("hrp2", "floating"), trajectory)
    whole = measure_clip(load_robot("hrp2", "floating"), retarget_whole_body(walk, load_robot("hrp2", "floating")))
    assert quality.grade == whole.grade
    assert quality.numbers["error_cm"] == pytest.approx(whole.numbers["error_cm"], abs=0.3)
    assert quality.numbers["contacts"] == pytest.approx(whole.numbers["contacts"], abs=4)
    again = dancing(walk)
    again.loop = True
    again.step()
    again.play(True, 0.5)
    for _ in range(round(2.2 * again.duration / again.dt)):
        again.step()
    assert not again.finished_take, "its pace was changed on the way"
    for _ in range(round(2.2 * again.duration / again.dt)):
        again.step()
    assert again.finished_take, "this time it was not"


def test_paused_it_stands_still_and_a_clip_that_is_over_begins_again(dance):
    dancer = dancing(dance)
    dancer.loop = False
    for _ in range(30):
        dancer.step()
    dancer.play(False)
    now = dancer.time
    for _ in range(60):
        dancer.step()
    rest = dancer.joints.copy()
    dancer.step()
    assert dancer.time == now and np.abs(dancer.joints - rest).max() < 5e-4  # elbows still go back to rest
    dancer.play(True)
    for _ in range(round(7.0 / dancer.dt)):
        dancer.step()
    assert dancer.time == dancer.duration
    dancer.play(True)
    assert dancer.time == 0.0


def test_a_robot_without_legs_and_a_clip_without_them_move_the_upper_body(dance):
    wheels = make_dancer(dance, "armar3")
    assert isinstance(wheels, UpperBodyDancer) and "legs" in wheels.notes[-1]
    keep = [k for k, name in enumerate(dance.names) if "knee" not in name]
    bust = type(dance)(
        dance.name, dance.rate, tuple(dance.names[k] for k in keep), dance.positions[:, keep].copy(),
        dance.missing[keep].copy(),
    )  # fmt: skip
    dancer = make_dancer(bust, "hrp2")
    assert isinstance(dancer, UpperBodyDancer) and "knees" in dancer.notes[-1]
    for one in (wheels, dancer):
        one.loop = False
        while not one.finished_take:
            one.step()
        view = one.view()
        assert view.error < 0.15 and not view.contacts.any() and len(view.figure) > 10
        assert measure_clip(one.robot, one.trajectory()).grade in "ABCDF"
        one.begin(2.0)
        assert one.time == pytest.approx(2.0) and one.view().error < 0.15


def test_all_kinds_of_dancers_stay_together_over_seams_and_cuts(dance, walk):
    for body in (dance, walk):
        dancers = [dancing(body), UpperBodyDancer(body, load_robot("armar3", "fixed"))]
        for _ in range(round(2.3 * dancers[0].duration / dancers[0].dt)):
            for dancer in dancers:
                dancer.step()
            first, second = (d.time for d in dancers)
            assert abs(first - second) < 0.05 or abs(first - second) > dancers[0].duration - 0.05
            assert dancers[0].at_seam == dancers[1].at_seam or abs(first - second) < 0.05


def test_time_that_is_no_whole_step_is_kept(dance):
    dancer = dancing(dance)
    left = 0.0
    for _ in range(100):
        left = advance(dancer, left + 0.011)
    assert dancer.time == pytest.approx(1.1, abs=dancer.dt) and 0 <= left < dancer.dt
