"""The loop of a winch's drive on a wire to a wall: kinds of commands, guards, limits, a deaf sensor (TC-21)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, HumanoidError, NotANumberError, SizeError, UnknownNameError
from humanoid_control.tendons.control.commands import (
    HOLD,
    HYBRID,
    LENGTH,
    OFF,
    PAY_OUT,
    TENSION,
    WinchCommand,
    WinchStates,
)
from humanoid_control.tendons.control.winch_loop import LoopGains, WinchLoop, winding_speeds
from humanoid_control.tendons.unit import MuscleUnit, WinchMotor, unit_of_motor

H = 1e-3
LEAST, MOST = 10.0, 300.0


class Bench:
    """One winch whose wire is tied to a spring: path length l0 + T / k_wall, integrated in steps of 0.1 ms."""

    def __init__(self, unit=None, wall=np.inf, gains=None, tension=50.0):
        self.unit, self.wall = unit or MuscleUnit(), wall
        self.loop = WinchLoop(("wire",), (self.unit,), np.array([LEAST]), np.array([MOST]), gains)
        self.k = 1 / (1 / self.unit.stiffness + 1 / wall)
        self.length, self.w, self.deaf, self.noise = 1.0, 0.0, False, 0.0
        self.x = self.length - tension / self.k
        self.loop.begin(np.array([tension]))
        self.rng = np.random.default_rng(0)
        self.fastest = 0.0

    @property
    def T(self):
        return max(0.0, self.k * (self.length - self.x))

    def command(self, kind, speed=0.0, tension=0.0, length=0.0):
        self.loop.command(WinchCommand(np.array([kind]), *np.array([[speed], [tension], [length]])))

    def run(self, seconds):
        u = self.unit
        for _ in range(round(seconds / H)):
            seen = 0.0 if self.deaf else self.T + self.noise * self.rng.standard_normal()
            states = WinchStates(*np.array([[self.x], [self.w], [seen]]))
            F = float(self.loop.run(states, H)[0])
            for _ in range(10):
                h, rate = H / 10, u.viscous + u.friction / max(abs(self.w), 1e-3)
                self.w = (u.mass * self.w + h * (F - self.T)) / (u.mass + h * rate)
                self.x -= h * self.w
            self.fastest = max(self.fastest, abs(self.w))


def test_an_admittance_brings_the_tension_within_friction_of_the_command():
    bench = Bench(wall=2e4)
    for f in (20.0, 120.0, 60.0):
        bench.command(HYBRID, tension=f)
        bench.run(0.8)
        assert pytest.approx(f, abs=1.0) == bench.T and abs(bench.w) < 2e-3


def test_a_winding_speed_is_kept_against_friction_and_load():
    bench = Bench(wall=100.0)
    bench.command(HYBRID, speed=-0.05, tension=50.0)
    bench.x, bench.length = 1.0, 1.5
    start = bench.x
    bench.run(0.2)
    lead = 1e-3 * (50.0 - bench.T)
    assert bench.w == pytest.approx(-0.05 + lead, abs=2e-3) and bench.x > start + 5e-3


def test_the_tension_loop_holds_within_friction_and_never_hunts():
    bench = Bench(wall=2e4)
    bench.command(TENSION, tension=80.0)
    bench.run(1.0)
    rest = []
    for _ in range(300):
        bench.run(H)
        rest.append(bench.T)
    assert pytest.approx(80.0, abs=15.0 / 5 + 1) == bench.T and np.ptp(rest) < 0.5


def test_a_length_is_servoed_and_gives_way_to_an_overload():
    bench = Bench()
    bench.command(LENGTH, tension=50.0, length=bench.x)
    bench.run(0.3)
    at = bench.x
    bench.command(LENGTH, tension=80.0, length=at - 5e-4)
    bench.run(0.5)
    assert bench.x == pytest.approx(at - 5e-4, abs=2e-5)
    bench.length += 0.012  # the path gets longer: 600 N more
    bench.run(1.0)
    assert bench.T < 1.25 * MOST
    bench.length -= 0.012
    bench.run(1.0)
    assert bench.x == pytest.approx(at - 5e-4, abs=5e-5), "what was paid out is taken in again"


def test_hold_keeps_the_wire_where_it_was_when_it_was_commanded():
    bench = Bench(wall=5e3)
    bench.command(HYBRID, speed=0.0, tension=70.0)
    bench.run(0.5)
    at, T = bench.x, bench.T
    bench.command(HOLD)
    bench.run(0.5)
    bench.loop.hold()
    bench.run(0.5)
    assert bench.x == pytest.approx(at, abs=5e-5) and pytest.approx(T, abs=1.0) == bench.T


def test_paying_out_is_slow_and_ends_at_the_tension_commanded():
    bench = Bench(wall=2e3, tension=120.0)
    bench.command(PAY_OUT, tension=5.0)
    bench.fastest = 0.0
    bench.run(4.0)
    assert bench.fastest < 0.021 and pytest.approx(5.0, abs=1.5) == bench.T


def test_the_slack_guard_takes_up_although_the_command_pays_out():
    slack = []
    for least in (LEAST, 0.0):
        bench = Bench()
        bench.loop.record.least[:] = least  # 0: no guard, the mutation
        bench.command(HYBRID, speed=-0.04, tension=0.0)
        bench.run(0.5)
        slack.append(bench.x - bench.length)
    assert slack[0] < 1e-3 and slack[1] > 1e-2


def test_noise_around_the_least_tension_does_not_become_drift():
    """The guard acts below half of T_min, not at it: a loop that is led to T_min stays there on average."""
    bench = Bench(wall=2e4, tension=LEAST)
    bench.noise = 1.0
    bench.command(HYBRID, tension=LEAST)
    bench.run(1.0)
    seen = []
    for _ in range(1000):
        bench.run(H)
        seen.append(bench.T)
    assert np.mean(seen) == pytest.approx(LEAST, abs=0.5)


def test_the_over_tension_guard_pays_out_although_the_command_winds():
    bench = Bench(tension=250.0)
    bench.command(HYBRID, speed=0.1, tension=MOST)
    bench.run(0.5)
    assert bench.T < MOST + 0.1 / 10e-3 + 5


def test_no_command_is_faster_than_nine_tenths_of_the_unloaded_speed_and_nothing_winds_up():
    bench = Bench(wall=1.0)
    bench.x = bench.length + 0.5
    bench.loop.begin(np.array([0.0]))
    bench.command(HYBRID, speed=9.0, tension=MOST)
    bench.run(0.3)
    assert 0.8 * 0.405 < bench.fastest <= 0.42
    bench.command(HYBRID, speed=0.0, tension=0.0)
    integral = abs(float(bench.loop.record.integral[0]))
    bench.run(0.2)
    assert integral <= 300.0 and abs(bench.w) < 0.06, "only the guard winds on"


def test_a_blocked_motor_stops_integrating():
    weak = MuscleUnit(force=40.0)
    bench = Bench(unit=weak, tension=30.0)
    bench.command(HYBRID, speed=0.2, tension=30.0)
    bench.run(2.0)
    assert float(bench.loop.record.force[0]) == pytest.approx(40.0, rel=0.05)
    assert abs(float(bench.loop.record.integral[0])) < 60.0


def test_a_deaf_sensor_is_told_by_the_current_and_latched():
    """Without it the guard would wind against a sensor that says nothing, to the end of the motor's force."""
    peaks = {}
    for hears in (True, False):
        bench = Bench(wall=2e4, tension=60.0)
        bench.command(HYBRID, tension=60.0)
        bench.run(0.3)
        bench.deaf = True
        peak = 0.0
        for _ in range(1000):
            if not hears:
                bench.loop.record.doubtful[:] = 0.0  # the mutation
            bench.run(H)
            peak = max(peak, bench.T)
        peaks[hears] = peak
        assert bool(bench.loop.deaf[0]) == hears
    assert peaks[True] < 110.0 and peaks[False] > 400.0
    bench = Bench(wall=2e4, tension=60.0)
    bench.command(HYBRID, tension=60.0)
    bench.deaf = True
    bench.run(0.5)
    assert pytest.approx(60.0, abs=20.0) == bench.T, "by the current, but for friction"
    bench.deaf = False
    bench.run(0.1)
    assert bench.loop.deaf[0], "latched"
    bench.loop.reset()
    assert not bench.loop.deaf[0]


def test_a_torn_wire_is_not_taken_for_a_deaf_sensor():
    bench = Bench(wall=2e4, tension=60.0)
    bench.command(HYBRID, tension=60.0)
    bench.run(0.3)
    bench.k = 0.0
    bench.run(1.0)
    assert not bench.loop.deaf[0] and bench.T == 0.0


def test_off_gives_no_current():
    bench = Bench(tension=60.0)
    bench.command(OFF)
    bench.run(0.1)
    assert bench.loop.record.force[0] == 0.0 and bench.T < 30.0


def test_units_are_those_of_motor_gear_and_drum():
    motor = WinchMotor(
        rotor=5.5e-7, gear=29, drum=0.008, torque_constant=0.0136, efficiency=0.8, speed=1680, current=15
    )
    unit = unit_of_motor(motor, friction=20.0)
    assert unit.mass == pytest.approx(7.23, abs=0.01) and unit.speed == pytest.approx(0.4634, abs=1e-3)
    assert unit.force == pytest.approx(591.6, abs=0.1) and unit.friction == 20.0 and not unit.estimated
    with pytest.raises(ConfigError, match="drum must be above 0, got 0"):
        unit_of_motor(motor._replace(drum=0.0))
    with pytest.raises(ConfigError, match=r"efficiency must be in 0..1, got 1\.2"):
        unit_of_motor(motor._replace(efficiency=1.2))
    with pytest.raises(ConfigError, match="friction must not be negative, got -1"):
        MuscleUnit(friction=-1.0)
    with pytest.raises(ConfigError, match="thermal must be four numbers"):
        MuscleUnit(thermal=(1.0, 2.0, 3.0, 0.0))


def test_what_cannot_be_is_said():
    light = MuscleUnit(mass=3.0)
    loop = WinchLoop(("a", "b"), (light, light), np.full(2, 5.0), np.full(2, 100.0))
    with pytest.raises(ConfigError, match=r"tendon 'a': tension damping 4000 N s/m times a period of 1 ms"):
        loop.check_period(1e-3)
    loop.check_period(5e-4)
    with pytest.raises(ConfigError, match="got 4 ms"):
        loop.check_period(4e-3)
    with pytest.raises(ConfigError, match="tendon 'b': needs 0 <= minimum <= maximum tension, got 5 and 4 N"):
        WinchLoop(("a", "b"), (light, light), np.full(2, 5.0), np.array([10.0, 4.0]))
    with pytest.raises(SizeError, match="2 tendons, 1 units"):
        WinchLoop(("a", "b"), (light,), np.full(2, 5.0), np.full(2, 9.0))
    with pytest.raises(UnknownNameError, match="kind of winch command"):
        loop.command(WinchCommand(np.array([1, 9]), *np.zeros((3, 2))))
    with pytest.raises(NotANumberError, match="not a number for b"):
        loop.command(WinchCommand(np.full(2, LENGTH), np.zeros(2), np.ones(2), np.array([0.3, np.nan])))
    assert loop.record.kind.tolist() == [LENGTH, OFF]
    with pytest.raises(ConfigError, match="guard must not be negative, got -1"):
        LoopGains(guard=-1.0)


def two():
    return WinchLoop(("a", "b"), (MuscleUnit(), MuscleUnit()), np.full(2, 5.0), np.full(2, 100.0))


def test_the_fields_of_a_command_say_its_kind():
    loop = two()
    loop.take(["b", "a"], [], [0.02, np.nan], [30.0, 40.0])
    r = loop.record
    assert r.kind.tolist() == [OFF, HYBRID] and r.speed.tolist() == [0.0, -0.02] and r.tension.tolist() == [0.0, 30.0]
    loop.take(["a"], [], [], [12.0])
    assert r.kind.tolist() == [TENSION, HYBRID] and r.tension.tolist() == [12.0, 30.0]
    loop.take(["a", "b"], [0.3, 0.4], [], [])
    assert (
        r.kind.tolist() == [LENGTH, LENGTH] and r.length.tolist() == [0.3, 0.4] and r.tension.tolist() == [12.0, 30.0]
    )


@pytest.mark.parametrize(
    "given,text",
    [
        ((["a", "c"], [], [], [1.0, 2.0]), "no tendon named 'c'"),
        ((["a", "a"], [], [], [1.0, 2.0]), "contains 'a' twice"),
        ((["a", "b"], [], [], [1.0]), "1 numbers of effort for 2 tendons"),
        ((["a"], [], [0.1], []), "needs effort"),
        ((["a"], [0.3], [0.1], []), "position and velocity cannot be combined"),
        ((["a", "b"], [], [], [10.0, -3.0]), "tension of b is -3 N"),
        ((["a"], [320.0], [], [5.0]), "length of a is 320 m; is it in mm"),
    ],
)
def test_a_command_by_name_that_makes_no_sense_is_refused_whole(given, text):
    loop = two()
    with pytest.raises(HumanoidError) as e:
        loop.take(*given)
    assert text in str(e.value) or (text.startswith("no tendon") and "'c'" in str(e.value))
    assert loop.record.kind.tolist() == [OFF, OFF] and not loop.record.tension.any()


def test_speeds_for_drives_with_a_velocity_loop_are_those_of_the_kernel():
    """F = T + Kv (w* - w) + b w* + I with I from zero, solved for w*, at random states."""
    rng, m = np.random.default_rng(3), 200
    units = [MuscleUnit(force=1e6, speed=5.0)] * m
    loop = WinchLoop([f"t{k}" for k in range(m)], units, np.full(m, LEAST), np.full(m, MOST))
    kinds = np.where(np.arange(m) % 2, HYBRID, PAY_OUT)
    command = WinchCommand(kinds, rng.uniform(-0.2, 0.2, m), rng.uniform(0, 200, m), np.zeros(m))
    states = WinchStates(np.full(m, 0.3), rng.uniform(-0.1, 0.1, m), rng.uniform(0, 350, m))
    loop.command(command)
    force, g, b = loop.run(states, H).copy(), loop.gains, 60.0
    expected = (force - states.tension + (g.speed + H * g.speed_integral) * states.speed) / (
        g.speed + b + H * g.speed_integral
    )
    loop.reset()
    loop.command(command)
    assert winding_speeds(loop, states, H) == pytest.approx(expected, abs=1e-9)
