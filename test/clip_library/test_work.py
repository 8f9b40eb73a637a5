"""One clip for one robot: the bytes are those of the package's own way, whatever ran before and wherever it runs."""

import io
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.clip_library import (
    LibraryClip,
    LibrarySettings,
    WorkerRobot,
    do_job,
    find_clips,
    library_jobs,
    work,
)
from humanoid_control.errors import UnknownNameError
from humanoid_control.evaluation.stretching import stretched
from humanoid_control.mocap import load_body_points, load_clip, synthetic_dance
from humanoid_control.paths import share_dir
from humanoid_control.performing import DynamicMotion, FeasibilitySettings, make_feasible
from humanoid_control.retargeting import INTERCHANGE, WholeBodyTask, retarget_whole_body
from humanoid_control.robots import load_robot
from test.dance_library import trc_text

BAD = "walk/broken.bvh"


@pytest.fixture(scope="module")
def jobs(small_library, hrp2, whole):
    return library_jobs(find_clips(str(small_library)), [hrp2], whole)[0]


@pytest.fixture(scope="module")
def outcome(jobs):
    return do_job(jobs[1])


def test_the_result_is_what_the_package_gives_by_itself(jobs, outcome):
    robot = load_robot("hrp2", "floating")
    known = retarget_whole_body(load_body_points(jobs[1].clip.path), robot)
    with np.load(io.BytesIO(outcome.content)) as file:
        assert (file["positions"] == known.positions).all() and (file["contacts"] == known.contacts).all()
        assert file["joint_names"].tolist() == list(robot.joint_names)
    record = outcome.record
    assert record["grade"] in "ABCDF" and record["bytes"] == len(outcome.content) and not record["failed"]
    assert record["output"] == "hrp2/a/clip_002.trc.npz" and outcome.memory > 1e7


def test_the_same_bytes_after_other_clips_and_on_another_disk(jobs, outcome, hrp2):
    for job in (jobs[3], jobs[0]):
        do_job(job)
    again = do_job(jobs[1])
    travelled = do_job(replace(jobs[1], files=jobs[1].clip.packed(), clip=replace(jobs[1].clip, path="/gone/x.trc")))
    for other in (again, travelled):
        assert other.content == outcome.content
        same = {k: v for k, v in other.record.items() if k != "seconds"}
        assert same == {k: v for k, v in outcome.record.items() if k != "seconds"}


def test_a_robot_of_ones_own_travels_with_its_files(jobs, outcome, tmp_path):
    for name in ("hrp2.urdf", "hrp2.yaml", "hrp2.drives.yaml"):
        if (share_dir() / "urdf" / name).exists():
            shutil.copy(share_dir() / "urdf" / name, tmp_path / name.replace("hrp2", "mine"))
    own = WorkerRobot.of(str(tmp_path / "mine.urdf")).packed()
    assert own.name == "hrp2" and {"mine.urdf", "mine.yaml"} <= set(own.files)
    assert own.digest == jobs[1].robot.digest, "it is the same robot, wherever its files lie"
    work._kept.robots.clear()
    shutil.rmtree(tmp_path)
    assert do_job(replace(jobs[1], robot=own)).content == outcome.content


def test_a_worker_with_another_robot_refuses(jobs, hrp2):
    work._kept.robots.clear()
    other = do_job(replace(jobs[1], robot=replace(hrp2, digest="0" * 64)))
    assert other.record["failed"] == work.BAD_INPUT and "different files of this robot" in other.record["reason"]


def test_whatever_a_robot_is_made_of_is_in_its_digest(tmp_path):
    text = (share_dir() / "urdf" / "hrp2.urdf").read_text()
    rest = (share_dir() / "urdf" / "hrp2.yaml").read_text()
    faster = text.index('velocity="') + len('velocity="')
    texts = [
        (text, rest),
        (f"{text[:faster]}9{text[faster:]}", rest),
        (text, rest.replace("[0, 0, 0]", "[0, 0, 0.001]", 1)),
    ]
    digests = set()
    for urdf, more in texts:
        (tmp_path / "hrp2.urdf").write_text(urdf)
        (tmp_path / "hrp2.yaml").write_text(more)
        digests.add(WorkerRobot.of(str(tmp_path / "hrp2.urdf")).digest)
    assert len(set(texts)) == len(digests) == 3


def test_every_setting_and_the_content_make_another_job(jobs, whole):
    job = jobs[0]
    settings = [
        replace(whole, whole_body=False),
        replace(whole, acceleration=20.0),
        replace(whole, speed=0.5),
        replace(whole, raw=True),
        replace(whole, format=".csv"),
        replace(whole, marker_set="plug_in_gait"),
        replace(whole, marker_file=b"x"),
        replace(whole, unit="mm"),
        replace(whole, scale=1.1),
        replace(whole, rate=60.0),
        replace(whole, solver=replace(whole.solver, margin=0.02)),
    ]
    others = [replace(job, settings=s) for s in settings] + [replace(job, digest="x"), jobs[1]]
    assert len({j.key for j in (job, *others)}) == len(others) + 1
    assert replace(job, files={}, deliver="x://y").key == job.key, "where it runs is nothing of it"


def test_a_clip_that_cannot_be_read_says_why_without_its_place(small_library, hrp2, whole, tmp_path):
    whole_text = (small_library / "a" / "clip_000.trc").read_text()
    (tmp_path / "cut.trc").write_text(whole_text[:2000])
    (tmp_path / "empty.bvh").write_text("")
    jobs, failed = library_jobs(find_clips(str(tmp_path)), [hrp2], whole)
    assert not failed
    for job in jobs:
        for one in (job, replace(job, files=job.clip.packed(), clip=replace(job.clip, path="/gone"))):
            record = do_job(one).record
            assert record["failed"] == work.BAD_INPUT and str(tmp_path) not in record["reason"]
            assert record["reason"].startswith(job.clip.name) and "/clip_" not in record["reason"]


def test_the_given_rate_serves_the_clips_that_state_none(small_library, hrp2, whole, tmp_path):
    dance = synthetic_dance(duration=12, rate=50)
    np.savez(tmp_path / "silent.npz", positions=dance.positions, labels=dance.labels)
    shutil.copy(small_library / "a" / "clip_000.trc", tmp_path / "stating.trc")
    jobs, failed = library_jobs(find_clips(str(tmp_path)), [hrp2], replace(whole, rate=50.0))
    assert not failed
    rates = {job.clip.name: work._read_body(job).rate for job in jobs}
    assert rates == {"silent.npz": 50.0, "stating.trc": load_clip(tmp_path / "stating.trc").rate}


def test_a_fault_of_the_package_is_one_failure(jobs, monkeypatch):
    monkeypatch.setattr(work, "measure_clip", lambda *_: 1 / 0)
    record = do_job(jobs[0]).record
    assert record["failed"] == work.UNEXPECTED and "ZeroDivisionError" in record["reason"]

    def starved(*_):
        raise MemoryError

    monkeypatch.setattr(work, "measure_clip", starved)
    assert do_job(jobs[0]).record["failed"] == work.NO_MEMORY


def test_without_legs_the_upper_body_moves_and_it_is_said(hrp2, whole):
    job = library_jobs([LibraryClip("gentle_dance", "")], [hrp2], replace(whole, speed=20.0))[0][0]
    body = load_body_points("gentle_dance")
    arms = replace(
        body,
        names=tuple(n for n in body.names if n not in ("l_toe", "r_toe")),
        positions=body.positions[:, [k for k, n in enumerate(body.names) if n not in ("l_toe", "r_toe")]].copy(),
        missing=body.missing[[k for k, n in enumerate(body.names) if n not in ("l_toe", "r_toe")]].copy(),
    )
    work._kept.bodies[f"{job.clip.name} {job.digest} {job.settings.text()}"] = arms
    record = do_job(job).record
    assert "only the upper body is retargeted" in record["warnings"][-1] and "slip_mm" not in record["numbers"]


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_files_of_each_format_are_the_same_twice(jobs, ending):
    job = replace(jobs[2], settings=LibrarySettings(format=ending))
    assert do_job(job).content == do_job(job).content


def test_a_robot_that_is_not_there_is_refused_at_once():
    with pytest.raises(UnknownNameError, match="did you mean hrp2"):
        WorkerRobot.of("hpr2")


def test_a_feasible_job_is_what_make_feasible_gives(small_library, hrp2, whole):
    """Frames, numbers and grade of the feasible motion; another setting is another job."""
    settings = replace(whole, feasible=True, method="clip", pace=1.0)
    feasible, _ = library_jobs(find_clips(str(small_library)), [hrp2], settings)
    plain, _ = library_jobs(find_clips(str(small_library)), [hrp2], replace(settings, feasible=False))
    assert feasible[1].key != plain[1].key
    outcome, robot = do_job(feasible[1]), load_robot("hrp2", "floating")
    retargeted = retarget_whole_body(load_body_points(feasible[1].clip.path), robot, method="clip")
    known = make_feasible(retargeted, robot, FeasibilitySettings(pace=1.0))
    with np.load(io.BytesIO(outcome.content)) as file:
        assert np.array_equal(file["positions"], known.q[:, 7:]) and float(file["rate"]) == known.rate
        assert len(file["targets"]) == len(known)
    numbers = outcome.record["numbers"]
    assert not outcome.record["failed"] and numbers["missing_percent"] < 5 and numbers["way_percent"] > 50
    assert numbers["infeasible_percent"] < 20 and outcome.record["grade"] in "ABCDF"


@pytest.mark.parametrize("layout", ["gmr", "mujoco"])
def test_the_layout_of_another_program_is_that_of_a_single_clip(jobs, whole, layout, tmp_path):
    job = replace(jobs[1], settings=replace(whole, layout=layout))
    robot = load_robot("hrp2", "floating")
    INTERCHANGE[layout].write(
        tmp_path / "known.npz", retarget_whole_body(load_body_points(job.clip.path), robot), robot
    )
    outcome = do_job(job)
    assert not outcome.record["failed"], outcome.record["reason"]
    with np.load(io.BytesIO(outcome.content)) as file, np.load(tmp_path / "known.npz") as known:
        assert set(file) == set(known)
        for name in known:
            np.testing.assert_array_equal(file[name], known[name])


@pytest.mark.nightly
def test_a_feasible_library_holds_forces_and_begins_from_rest(jobs, whole, tmp_path):
    settings = replace(whole, feasible=True, method="clip", pace=1.0, layout="dynamic", lead_in=True)
    outcome, robot = do_job(replace(jobs[1], settings=settings)), load_robot("hrp2", "floating")
    assert not outcome.record["failed"], outcome.record["reason"]
    (tmp_path / "motion.npz").write_bytes(outcome.content)
    motion = DynamicMotion.read(tmp_path / "motion.npz")
    np.testing.assert_allclose(motion.q[0, 7:], robot.postures["neutral"], atol=5e-3)
    assert np.abs(motion.v[0]).max() < 0.01 and np.abs(motion.forces[0]).max() > 10.0
    plain = do_job(replace(jobs[1], settings=replace(settings, lead_in=False)))
    with np.load(io.BytesIO(plain.content)) as file:
        assert len(file["q"]) < len(motion)


def test_a_library_is_slowed_locally_and_its_records_say_so(jobs, whole):
    job, robot = replace(jobs[1], settings=replace(whole, stretch=True, speed=3.0)), load_robot("hrp2", "floating")
    outcome = do_job(job)
    known = stretched(WholeBodyTask.of(load_body_points(job.clip.path), robot, 3.0).solve(), robot)
    numbers = outcome.record["numbers"]
    assert numbers["stretch_slowed_percent"] == known.row["slowed_percent"] > 0
    assert numbers["stretch_seconds"] > numbers["stretch_seconds_before"] and 0 < numbers["stretch_least_pace"] < 1
    assert any(f"grade before: {known.row['grade_before']}" in w for w in outcome.record["warnings"])
    with np.load(io.BytesIO(outcome.content)) as file:
        np.testing.assert_array_equal(file["positions"], known.motion.trajectory.positions)
        assert len(file["targets"]) == len(file["positions"])
    feasible = do_job(replace(job, settings=replace(whole, stretch=True, feasible=True, method="clip")))
    numbers = feasible.record["numbers"]
    assert numbers["stretch_seconds"] > numbers["stretch_seconds_before"] and "slowest_pace" in numbers


def test_a_clip_without_legs_has_no_root_to_write(small_library, hrp2, whole, tmp_path):
    dance = load_clip("dance")
    arms = [k for k, label in enumerate(dance.labels) if not re.search("knee|ank|toe|heel|foot|leg", label.lower())]
    labels = [dance.labels[k] for k in arms]
    (tmp_path / "arms.trc").write_text(trc_text(labels, dance.rate, dance.positions[:200, arms]))
    (upper,), _ = library_jobs(find_clips(str(tmp_path)), [hrp2], whole)
    outcome = do_job(upper)
    assert not outcome.record["failed"] and any("has no legs" in w for w in outcome.record["warnings"])
    refused = do_job(replace(upper, settings=replace(whole, layout="gmr"))).record
    assert (refused["failed"], refused["reason"]) == ("bad input", "has no legs, and --format gmr has a root")
