"""Maps of who falls where: ladders, the least of the seeds, what is kept, tables and the picture."""

import importlib

import numpy as np
import pytest

from evidence.studies.report import KeptOutcomes
from evidence.studies.walking import maps
from evidence.studies.walking.rows import random_twists
from evidence.studies.walking.study import run_study
from humanoid_control.errors import ConfigError, UnknownNameError


def row(kind, direction, most, fell_at=None, seed=0, speed=0.2):
    return {
        "kind": kind, "robot": "lola", "speed": speed, "direction": direction, "seed": seed, "most": most,
        "fell_at": fell_at,
    }  # fmt: skip


@pytest.fixture
def rows():
    out = [row(k, d, most) for k, most in ((maps.PUSHES, 40.0), (maps.SLOPES, 15.0)) for d in maps.DIRECTIONS[k]]
    out += [row(maps.PUSHES, 90, 10.0, 15.0, seed=1)]
    return [*out, *({**r, "speed": s} for s in (0.4, 0.6) for r in out)]


def test_a_ladder_is_climbed_until_the_fall(monkeypatch):
    tried = []

    def falls(kind, robot, speed, direction, seed, rung):
        tried.append((kind, rung))
        return rung >= 20.0

    monkeypatch.setattr(maps, "falls", falls)
    found = maps.climb((maps.PUSHES, "lola", 0.2, 45, 3))
    assert (found["most"], found["fell_at"], found["seed"]) == (15.0, 20.0, 3)
    assert tried == [(maps.PUSHES, r) for r in (5.0, 10.0, 15.0, 20.0)]
    assert maps.climb((maps.SLOPES, "lola", 0.2, 0, 0))["fell_at"] is None


@pytest.mark.nightly
def test_a_push_that_nobody_stands_makes_a_real_robot_fall_and_a_light_one_does_not():
    assert maps.falls(maps.PUSHES, "lola", 0.2, 180, 0, 150.0)
    assert not maps.falls(maps.PUSHES, "lola", 0.2, 180, 0, 5.0)


def test_tables_tell_the_least_of_the_seeds_in_every_direction(rows):
    pushes, slopes = maps.map_tables(rows)
    assert list(pushes.columns)[2:] == list(maps.WORDS)
    assert list(slopes.columns)[2:] == ["ahead", "left", "back", "right"]
    assert [line[0] for line in pushes.rows] == ["lola"] * 3
    assert list(pushes.rows[0])[2:] == ["40+", "40+", "10", "40+", "40+", "40+", "40+", "40+"]


def test_the_picture_is_a_png(rows):
    assert maps.map_picture(rows).startswith(b"\x89PNG")


def test_what_is_kept_is_not_walked_again(tmp_path, monkeypatch, rows):
    (tmp_path / "directions_of_a_test.py").write_text("def direction(job):\n    return {'direction': job[3]}\n")
    monkeypatch.syspath_prepend(tmp_path)  # a worker process imports it
    outcome = importlib.import_module("directions_of_a_test").direction
    file = tmp_path / "maps.jsonl"
    kept = KeptOutcomes(file, "maps")
    jobs = [("push", "lola", 0.2, 45, 0), ("push", "lola", 0.2, 90, 0)]
    shares = []
    assert list(kept.all(jobs[:1], outcome, 1, shares.append)) == [{"direction": 45}]
    again = KeptOutcomes(file, "maps")
    assert list(again.all(jobs, outcome, 1, shares.append)) == [{"direction": 45}, {"direction": 90}]
    assert shares == [1.0, 0.5, 1.0]
    assert len(file.read_text().splitlines()) == 2
    assert list(again.all(jobs, _never, 1, shares.append)) == [{"direction": 45}, {"direction": 90}]
    file.write_text("nothing of the kind\n")
    with pytest.raises(ConfigError, match="contains no results of maps"):
        KeptOutcomes(file, "maps")


def _never(job):
    raise AssertionError("it was known")


def test_what_cannot_be_asked_for_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="leave out all other parts"):
        run_study(only=["maps", "speed"])
    with pytest.raises(UnknownNameError, match="robot of the maps"):
        maps.walk_maps(["armar3"])


def test_random_velocities_change_in_time_and_are_the_same_for_a_seed():
    most = (0.4, 0.1, 0.3)
    program, again, other = (random_twists(most, seed) for seed in (1, 1, 2))
    assert not np.any(program(1.9))
    seen = np.array([program(2.0 + 1.5 * k + 0.7) for k in range(200)])
    np.testing.assert_array_equal(seen, [again(2.0 + 1.5 * k + 0.1) for k in range(200)])
    assert not np.array_equal(seen, [other(2.0 + 1.5 * k + 0.7) for k in range(200)])
    assert (seen.max(axis=0) <= most).all() and (seen.min(axis=0) >= [-0.2, -0.1, -0.3]).all()
    assert np.ptp(seen, axis=0) == pytest.approx([0.6, 0.2, 0.6], rel=0.1)
