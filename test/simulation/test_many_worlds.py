"""Many worlds at once: the same outcomes in one process and in two, in order, and mistakes that name their world."""

import importlib
import multiprocessing
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from evidence.studies.standing_worlds import make_observer, make_world, standing_study
from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.simulation.engine import SimulationConfig
from humanoid_control.simulation.many_worlds import name_of, simulate_many

CONFIG = SimulationConfig(robot="suralp", step=0.002)
VARIED = [
    {"stiffness": 60.0},
    {"friction": 0.1, "push_y": 250.0},
    {"gravity": 20.0},
    {"push_x": 4000.0},
    {"slope_deg": 2.0},
]


@pytest.mark.nightly
def test_outcomes_do_not_depend_on_the_number_of_workers():
    told = []
    alone = standing_study(CONFIG, VARIED, 1.6, workers=1)
    pooled = standing_study(CONFIG, VARIED, 1.6, workers=2, progress=lambda *args: told.append(args))
    assert [o.variation for o in pooled] == VARIED, "in the order asked for"
    assert [replace(o, real_time_factor=0) for o in pooled] == [replace(o, real_time_factor=0) for o in alone]
    assert sorted(t[0] for t in told) == [1, 2, 3, 4, 5] and {t[2] for t in told} == {name_of(v) for v in VARIED}
    assert nobody_left()

    stands = [o.result for o in alone]
    assert [s.stood for s in stands] == [True, True, True, False, True]
    assert 1.0 < stands[3].fell_at < 1.6
    assert stands[1].drift > 2 * stands[0].drift, "pushed on ice"
    assert stands[2].torque_share == pytest.approx(20 / 9.81 * stands[0].torque_share, rel=0.25), "twice the weight"
    assert np.degrees(stands[4].tilt) > 1.5, "a slope of two degrees turns it"
    assert all(o.real_time_factor > 0.1 for o in alone)


MEETING = """import os
import time
from pathlib import Path


class Meeting:
    '''Observer that waits until the other world is being simulated too, for as long as it may.'''

    def __init__(self, folder, me, other, patience):
        self.me, self.other, self.patience, self.met = Path(folder) / me, Path(folder) / other, patience, False

    def observe(self, engine):
        self.me.touch()
        end = time.monotonic() + self.patience
        while not self.met and time.monotonic() < end:
            self.met = self.other.exists()
            time.sleep(0.005)

    def result(self):
        return self.met, os.getpid()


def meet(folder, patience, variation):
    pair = ("a", "b") if variation["friction"] < 0.5 else ("b", "a")
    return Meeting(folder, *pair, patience)
"""


@pytest.mark.nightly
def test_worlds_are_simulated_at_the_same_time(tmp_path, monkeypatch):
    """Each of two worlds goes on only when the other has begun, which one after the other they cannot both."""
    (tmp_path / "meeting_of_worlds.py").write_text(MEETING)  # a module that workers can import
    monkeypatch.syspath_prepend(tmp_path)
    meet = importlib.import_module("meeting_of_worlds").meet
    varied = [{"friction": 0.4}, {"friction": 0.6}]
    run = partial(simulate_many, partial(make_world, CONFIG), varied, 0.004)
    (tmp_path / "pooled").mkdir()
    pooled = [o.result for o in run(partial(meet, str(tmp_path / "pooled"), 120.0), workers=2)]
    assert [met for met, _ in pooled] == [True, True] and len({pid for _, pid in pooled}) == 2
    alone = [o.result for o in run(partial(meet, str(tmp_path), 0.1), workers=1)]
    assert [met for met, _ in alone] == [False, True] and len({pid for _, pid in alone}) == 1


def nobody_left():
    """No worker after at most five seconds: one that was killed may still be listed for a moment on a busy machine."""
    end = time.monotonic() + 5.0
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.02)
    return not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistake_names_its_world(workers):
    with pytest.raises(HumanoidError, match=r"variation step=0.5: simulation step must be between"):
        simulate_many(partial(make_world, CONFIG), [{}, {"step": 0.5}], 0.01, make_observer, workers)
    assert nobody_left()


class Broken:
    def observe(self, engine):
        if engine.time > 0.02:
            raise ZeroDivisionError("in an observer")


def test_an_exception_in_a_world_is_named_too():
    with pytest.raises(HumanoidError, match=r"variation friction=0\.5: ZeroDivisionError: in an observer"):
        simulate_many(partial(make_world, CONFIG), [{"friction": 0.5}], 0.1, lambda v: Broken(), 1)


def test_a_configuration_makes_the_world_it_names():
    assert type(CONFIG.build()).__name__ == "MultibodyWorld"
    driven = replace(CONFIG, robot="lola", step=0.001, drives="rigid", stiffness=40.0, friction=0.5).build()
    assert type(driven).__name__ == "DrivenWorld" and driven.settings.contact.friction == 0.5
    assert driven.gains.kp == pytest.approx(40 * driven.robot.effort)
    with pytest.raises(HumanoidError, match="drives"):
        replace(CONFIG, drives="rigid").build()
    with pytest.raises(ConfigError, match="need engine 'multibody'"):
        replace(CONFIG, robot="lola", drives="rigid", engine="mujoco").build()
    with pytest.raises(UnknownNameError, match="did you mean elastic"):
        replace(CONFIG, drives="elastik").build()


def test_what_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean friction"):
        standing_study(CONFIG, [{"fricton": 0.5}], 2.0)
    with pytest.raises(ConfigError, match="simulate longer, got 1 s"):
        standing_study(CONFIG, [{}], 1.0)
    with pytest.raises(ConfigError, match="must be importable"):
        simulate_many(lambda v: CONFIG.build(), [{}, {}], 0.1, make_observer, 2)
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        simulate_many(partial(make_world, CONFIG), [{}], 0.1, make_observer, 0)
    with pytest.raises(ConfigError, match="simulated time must be positive"):
        simulate_many(partial(make_world, CONFIG), [{}], np.nan, make_observer)
    with pytest.raises(ConfigError, match="contact friction must be 0 or more"):
        CONFIG.changed({"friction": -1.0}).build()
    assert simulate_many(partial(make_world, CONFIG), [], 0.1, make_observer) == []
