"""The law of one contact point against its own definition: cone, closure, power balance, continuity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.contact.points import ContactSettings, contact_point, contact_point_step

LAWS = (ContactSettings(), ContactSettings(friction=0.6, kinetic_friction=0.4), ContactSettings(friction=0.0))
H = 1e-3


def samples(n, seed=0):
    """(gap, v (3,), s (3,)) of points near the ground whose layer is not below it."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        s = rng.normal(size=3) * 10 ** rng.uniform(-5, -2.5)
        s[0] = abs(s[0])
        gap = -s[0] + (rng.exponential(1e-3) if rng.random() < 0.5 else 0.0)
        yield gap, rng.normal(size=3) * 10 ** rng.uniform(-4, 0), s


@pytest.mark.parametrize("law", LAWS)
def test_the_ground_never_pulls_and_the_force_stays_in_the_cone(law):
    par, slid, stuck = law.array(), 0, 0
    for gap, v, s in samples(2000):
        for f in (contact_point(gap, *v, s, par)[:3], contact_point_step(gap, v[1], v[2], H, s, par)[:3]):
            shear = np.hypot(f[1], f[2])
            assert f[0] >= 0 and shear <= law.friction * f[0] * (1 + 1e-12)
            slid += f[0] > 0 and shear >= 0.999 * (law.kinetic_friction or law.friction) * f[0]
            stuck += f[0] > 0 and shear < 0.999 * (law.kinetic_friction or law.friction) * f[0]
    assert slid > 100 and (stuck > 100 or law.friction == 0)


@pytest.mark.parametrize("law", LAWS)
def test_the_layer_passes_the_force_on_and_only_ever_dissipates(law):
    """f = k s + d ds/dt; what the point puts in is stored in the springs or lost, never gained."""
    par = law.array()
    k = np.array([law.stiffness, law.shear_stiffness, law.shear_stiffness])
    d = np.array([law.damping, law.shear_damping, law.shear_damping])
    side = np.array([1.0, -1.0, -1.0])  # the normal deflection grows against the normal, the others along the tangents
    for gap, v, s in samples(1500):
        out = np.array(contact_point(gap, *v, s, par))
        force, rate = out[:3], out[3:]
        assert side * force == pytest.approx(k * s + d * rate, rel=1e-9, abs=1e-9)
        lost = -force @ v - (k * s) @ rate
        assert lost >= -1e-9 * (np.abs(force) @ np.abs(v) + np.abs(k * s) @ np.abs(rate))
        slip = v[1:] - rate[1:]
        if np.linalg.norm(slip) > 1e-9:  # sliding: friction opposes it
            assert force[1:] @ slip <= 1e-12
            assert abs(force[1] * slip[1] - force[2] * slip[0]) < 1e-7 * max(1.0, np.linalg.norm(force))


def test_friction_falls_from_static_to_kinetic_with_the_sliding_speed():
    law = ContactSettings(friction=0.6, kinetic_friction=0.4, stribeck_speed=0.05)
    par, normal, seen = law.array(), 40.0, []
    s = np.array([normal / law.stiffness, 0.0, 0.0])
    for speed in np.linspace(0.0, 2.0, 400):
        f = contact_point(-s[0], 0.0, speed, 0.0, s, par)
        slip = speed - f[4]
        seen.append((slip, -f[1] / f[0]))
    slip, mu = np.array(seen).T
    fast = slip > max(0.05, 2 * 0.2 * normal / law.shear_damping)
    assert mu[fast] == pytest.approx(0.4, rel=1e-9) and fast.sum() > 100
    assert mu.max() == pytest.approx(0.6, abs=0.01)
    assert (np.diff(mu[slip > 1e-12]) <= 1e-12).all()


@settings(max_examples=80)
@given(st.integers(0, 10**6))
def test_the_force_is_a_continuous_function_of_the_state(seed):
    """Along any line in the space of states no jump: halving the spacing halves the largest change of force."""
    rng = np.random.default_rng(seed)
    law = LAWS[seed % 2]
    par, most = law.array(), []
    (g0, v0, s0), (g1, v1, s1) = samples(2, seed)
    bound = (law.damping * law.closure_rate + law.stiffness) * (abs(g1 - g0) + np.abs(s1 - s0).sum())
    bound = 4 * (1 + law.friction) * (bound + law.damping * np.abs(v1 - v0).sum())
    for n in (100, 200):
        x = np.sort(rng.random(n - 1))
        x = np.concatenate([[0], x, [1]])
        f = np.array([contact_point(g0 + a * (g1 - g0), *(v0 + a * (v1 - v0)), s0 + a * (s1 - s0), par) for a in x])
        most.append((np.abs(np.diff(f[:, :3], axis=0)).sum(axis=1) / np.diff(x)).max())
    assert max(most) <= bound


@pytest.mark.parametrize("law", LAWS)
def test_a_fixed_step_is_implicit_euler_with_exact_closure(law):
    par = law.array()
    k = np.array([law.stiffness, law.shear_stiffness, law.shear_stiffness])
    d = np.array([law.damping, law.shear_damping, law.shear_damping])
    side, loaded = np.array([1.0, -1.0, -1.0]), 0
    for gap, v, s in samples(3000, 3):
        out = np.array(contact_point_step(gap, v[1], v[2], H, s, par))
        force, after = out[:3], out[3:]
        assert gap + after[0] >= -1e-15, "the layer never ends below the ground"
        assert force[0] * (gap + after[0]) == pytest.approx(0, abs=1e-12), "and carries only where it touches"
        assert side * force == pytest.approx(k * after + d * (after - s) / H, rel=1e-8, abs=1e-7)
        if force[0] > 0 and np.hypot(force[1], force[2]) < 0.99 * (law.kinetic_friction or law.friction) * force[0]:
            assert after[1:] == pytest.approx(s[1:] + H * v[1:], abs=1e-15), "a sticking layer goes with its point"
            loaded += 1
    assert loaded > 50 or law.friction == 0


def test_small_steps_tend_to_the_continuous_law():
    par = ContactSettings(closure_rate=1e-6).array()
    for gap, v, s in samples(300, 5):
        gap = -s[0]  # closed
        rates = np.array(contact_point(gap, *v, s, par))
        wrong = []
        for h in (1e-5, 1e-6):
            moved = np.array(contact_point_step(gap + h * v[0], v[1], v[2], h, s, par))
            moved[3:] = (moved[3:] - s) / h
            wrong.append(np.abs(moved - rates) / (1 + np.abs(rates)))
        assert (wrong[1] <= 0.2 * wrong[0] + 1e-6).all()


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"stiffness": 0.0}, "stiffness must be positive"),
        ({"damping": float("nan")}, "damping must be positive"),
        ({"friction": -0.1}, "friction must be 0 or more"),
        ({"friction": 0.5, "kinetic_friction": 0.6}, "must not exceed friction 0.5"),
        ({"closure_rate": float("inf")}, "closure_rate"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(wrong, says):
    with pytest.raises(ConfigError, match=says) as e:
        ContactSettings(**wrong)
    assert "\n" not in str(e.value)
