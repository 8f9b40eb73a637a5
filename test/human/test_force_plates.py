"""Force plates of C3D: OpenSim's expected values, an independent reader, each type by forces in its sensors."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.human.forces.force_plates import force_plates, read_force_plates
from humanoid_control.mocap.formats.c3d import decode_c3d
from test.c3d_writer import c3d_file

N = 40
SIZE = (0.6, 0.4)  # [m]
A, B, DEPTH = 0.21, 0.12, 0.05  # [m] sensors of type 3 from the middle; of any type below the surface


def sto(path):
    lines = path.read_text().splitlines()
    return np.array([line.split() for line in lines[lines.index("endheader") + 2 :]], dtype=float)


@pytest.mark.parametrize("k", [0, 1])
def test_wrench_is_the_one_that_opensim_expects(model_file, k):
    """Every 100th sample, about the centre of the plate and about the centre of pressure [N, mm, N mm]."""
    wrench = read_force_plates(model_file("human_motion/force_plates/walking2.c3d"))[k]
    about_centre = sto(model_file("human_motion/force_plates/reference/std_walking2_grfs.sto"))
    about_pressure = sto(model_file("human_motion/force_plates/reference/std_cop_walking2_grfs.sto"))
    rows = np.abs(wrench.times - about_centre[:, :1]).argmin(axis=1)
    pressure = wrench.center_of_pressure()
    for table, point in ((about_centre, np.tile(wrench.surface, (len(wrench.times), 1))), (about_pressure, pressure)):
        np.testing.assert_allclose(wrench.times[rows], table[:, 0], atol=1e-9)
        force, where, moment = np.split(table[:, 1 + 9 * k : 10 + 9 * k], 3, axis=1)
        np.testing.assert_allclose(wrench.force[rows], force, rtol=0, atol=1e-6)
        np.testing.assert_allclose(1e3 * point[rows], where, rtol=0, atol=1e-6)
        np.testing.assert_allclose(1e3 * wrench.moment_about(point)[rows], moment, rtol=0, atol=1e-6)
    np.testing.assert_allclose(1e3 * wrench.free_moment()[rows], about_pressure[:, 9 + 9 * k], rtol=0, atol=1e-6)
    assert wrench.warnings == () and np.ptp(wrench.normal_force) > 500


@pytest.mark.parametrize("name", ["FP_Type1", "FP_Type3", "type4_upside_down", "walking2"])
def test_agrees_with_an_independent_reader(model_file, name):
    ezc3d = pytest.importorskip("ezc3d")
    path = model_file(f"human_motion/force_plates/{name}.c3d")
    theirs = ezc3d.c3d(str(path), extract_forceplat_data=True)["data"]["platform"]
    wrenches = read_force_plates(path)
    assert len(wrenches) == {"FP_Type1": 1, "type4_upside_down": 4}.get(name, 2)
    for wrench, plate in zip(wrenches, theirs, strict=False):
        unit = 1e-3 if plate["unit_position"] == "mm" else 1.0
        np.testing.assert_allclose(wrench.force, plate["force"].T, atol=1e-9)
        # It crosses force and point of type 1 the other way round; its point and free moment are right.
        sign = -1 if name == "FP_Type1" else 1
        np.testing.assert_allclose(sign * wrench.moment_about(wrench.surface), unit * plate["moment"].T, atol=1e-9)
        pressed = np.abs(wrench.normal_force) > 2
        # Its centre of pressure lies in a level plane, ours in the plate's, which is tilted by a tenth of a degree.
        np.testing.assert_allclose(
            wrench.center_of_pressure()[pressed], unit * plate["center_of_pressure"].T[pressed], atol=6e-4
        )


def test_corners_that_are_no_plate_are_left_out_and_said(model_file):
    wrenches = read_force_plates(model_file("human_motion/force_plates/FP_Type1.c3d"))
    assert [w.name for w in wrenches] == ["force plate 1"]
    assert [w for w in wrenches[0].warnings if "corners of force plate 3" in w]


# -------- one plate, by the forces in its sensors


def geometry(up=1.0):
    """Corners (4, 3) [m], rotation with z down, centre."""
    yaw = 0.5
    x = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    z = np.array([0.0, 0.0, -up])
    R = np.stack([x, np.cross(z, x), z], axis=1)
    centre = np.array([0.3, -0.8, 0.1])
    signs = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    return centre + (signs * np.array(SIZE) / 2) @ R[:, :2].T, R, centre


def contact():
    """Force on a person [N], its point on the plate in plate axes [m], and the free moment [N m]; world z up."""
    s = np.linspace(0, 1, N)
    force = np.stack([40 * np.sin(7 * s), 30 * s, 600 + 300 * s], axis=1)
    point = np.stack([0.2 * s - 0.1, 0.05 * np.cos(5 * s), 0 * s], axis=1)
    return force, point, 5 * s - 2


def channels(kind, R, lift=1.0):
    """Samples [N, N m, m] that a plate's sensors, DEPTH below its surface, give for the contact."""
    force, point, free = contact()
    F = lift * force @ R
    M = np.cross(point, F)
    M[:, 2] += lift * -free  # about z, which points down
    if kind == 1:
        return np.column_stack([F, point[:, :2], -lift * free])
    if kind == 3:
        # Any four forces in the corners with the right sum and moment; sensors lie at (+-A, +-B, DEPTH).
        r = np.array([(A, B, DEPTH), (-A, B, DEPTH), (-A, -B, DEPTH), (A, -B, DEPTH)])
        G = np.vstack([np.hstack([np.eye(3)] * 4), np.hstack([np.cross(np.eye(3), p).T @ -np.eye(3) for p in r])])
        for p, block in zip(r, np.hsplit(G[3:], 4), strict=True):
            np.testing.assert_allclose(block @ [1.0, 2.0, 3.0], np.cross(p, [1.0, 2.0, 3.0]))
        f = (np.linalg.pinv(G) @ np.hstack([F, M]).T).T.reshape(-1, 4, 3)
        x, y, z = f[..., 0], f[..., 1], f[..., 2]
        return np.column_stack([x[:, 0] + x[:, 1], x[:, 2] + x[:, 3], y[:, 0] + y[:, 3], y[:, 1] + y[:, 2], z])
    sensor = np.array([0.01, -0.02, DEPTH])
    return np.hstack([F, M - np.cross(sensor, F)])


def plate_file(kind, unit="mm", lift=1.0, up=1.0, points=None, **changes):
    corners, R, _ = geometry(up)
    length = {"mm": 1e3, "m": 1.0}[unit]
    v = channels(kind, R, lift)
    units = ["N"] * 8 if kind == 3 else ["N"] * 3 + [f"N{unit}"] * 3
    if kind == 1:
        units[3:5] = [unit, unit]
    origin = {1: (0, 0, 0), 3: (A, B, -DEPTH)}.get(kind, (-0.01, 0.02, -DEPTH))
    v = v * [length if u != "N" else 1.0 for u in units[: v.shape[1]]]
    parameters = {}
    if kind == 4:
        cal = np.eye(6) * 2 + np.random.default_rng(0).normal(scale=0.2, size=(6, 6))
        v = v @ np.linalg.inv(cal).T
        parameters["FORCE_PLATFORM:CAL_MATRIX"] = cal[:, :, None]
        units = ["V"] * 6
    parameters |= {
        "POINT:UNITS": [unit],
        "ANALOG:UNITS": units[: v.shape[1]],
        "FORCE_PLATFORM:USED": np.array([1]),
        "FORCE_PLATFORM:TYPE": np.array([kind]),
        "FORCE_PLATFORM:CORNERS": length * corners.T[:, :, None],
        "FORCE_PLATFORM:ORIGIN": length * np.array(origin, dtype=float)[:, None],
        "FORCE_PLATFORM:CHANNEL": np.arange(1, v.shape[1] + 1)[:, None],
    }
    return c3d_file(v, {**parameters, **changes}, points=None if points is None else length * points)


def wrench_of(*args, **kwargs):
    (wrench,) = force_plates(decode_c3d(plate_file(*args, **kwargs), "x.c3d"), "x.c3d")
    return wrench


def check(wrench, force, point, free):
    _, R, centre = geometry()
    np.testing.assert_allclose(wrench.force, force, atol=1e-3)  # numbers of 32 bits
    np.testing.assert_allclose(wrench.center_of_pressure(), point @ R.T + centre, atol=1e-5)
    np.testing.assert_allclose(wrench.free_moment(), free, atol=1e-3)
    about_world = np.cross(point @ R.T + centre, force) + np.outer(free, [0, 0, 1])
    np.testing.assert_allclose(wrench.moment, about_world, atol=2e-3)


@pytest.mark.parametrize("unit", ["mm", "m"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_type_by_the_forces_in_its_sensors(kind, unit):
    wrench = wrench_of(kind, unit)
    check(wrench, *contact())
    assert wrench.warnings == () and wrench.normal.tolist() == pytest.approx([0, 0, 1])
    np.testing.assert_allclose(wrench.times, np.arange(N) / 1000)


def test_origin_written_the_other_way_round_is_the_same():
    origin = 1e3 * np.array([[0.01], [-0.02], [DEPTH]])
    check(wrench_of(2, **{"FORCE_PLATFORM:ORIGIN": origin}), *contact())


@pytest.mark.parametrize("kind", [2, 3])
def test_force_that_points_down_is_turned_round_with_a_warning(kind):
    wrench = wrench_of(kind, lift=-1.0)
    check(wrench, *contact())
    assert "points down: reversed" in wrench.warnings[0]


def test_up_is_where_the_markers_are():
    points = np.tile([[0.3, -0.8, -1.0], [0.2, -0.8, -0.3]], (N // 10, 1, 1))  # z of the laboratory points down
    wrench = wrench_of(2, up=-1.0, points=points)
    assert wrench.normal.tolist() == pytest.approx([0, 0, -1])
    assert (wrench.normal_force < 0).sum() == 0 and "reversed" in wrench.warnings[0]


def test_calibration_stored_by_rows():
    cal = np.eye(6) * 2 + np.random.default_rng(0).normal(scale=0.2, size=(6, 6))
    rows = {"FORCE_PLATFORM:CAL_MATRIX": cal.T[:, :, None], "FORCE_PLATFORM:MATRIX_STORE": ["BYROW"]}
    check(wrench_of(4, **rows), *contact())


def test_channel_at_its_limit_is_flagged():
    data = bytearray(plate_file(2))
    samples = np.frombuffer(data[-N * 24 :], dtype="<f4").reshape(N, 6).copy()
    samples[:, 2] = np.where(np.arange(N) % 20 < 5, samples[:, 2].min() - 200, samples[:, 2])
    data[-N * 24 :] = samples.tobytes()
    (wrench,) = force_plates(decode_c3d(bytes(data), "x.c3d"), "x.c3d")
    np.testing.assert_allclose(wrench.saturated, [(0.0, 0.004), (0.02, 0.024)])
    assert "at its limit from 0.000 to 0.004 s, from 0.020 to 0.024 s" in wrench.warnings[0]


def test_samples_that_are_no_numbers_stay_missing_and_are_said():
    data = bytearray(plate_file(2))
    samples = np.frombuffer(data[-N * 24 :], dtype="<f4").reshape(N, 6).copy()
    samples[3, 4], samples[5, 0], samples[7, 2] = np.nan, np.inf, 1e30
    data[-N * 24 :] = samples.tobytes()
    (wrench,) = force_plates(decode_c3d(bytes(data), "x.c3d"), "x.c3d")
    assert np.flatnonzero(np.isnan(wrench.force).any(axis=1)).tolist() == [3, 5, 7]
    assert "non-numeric in 3 of 40 samples" in wrench.warnings[0] and wrench.saturated == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"FORCE_PLATFORM:USED": np.array([0])}, "no force plates"),
        ({"FORCE_PLATFORM:TYPE": np.array([7])}, "type 7: only types 1 to 4"),
        ({"FORCE_PLATFORM:CORNERS": np.zeros((3, 4, 1))}, "corners of force plate 1 are invalid"),
        ({"FORCE_PLATFORM:CORNERS": np.zeros((3, 3, 1))}, "CORNERS holds 9 numbers for 1 plate"),
        ({"FORCE_PLATFORM:CHANNEL": np.arange(2, 8)[:, None]}, r"\[2, 3, 4, 5, 6, 7\] of 6"),
        ({"FORCE_PLATFORM:CHANNEL": np.arange(0, 6)[:, None]}, r"\[0, 1, 2, 3, 4, 5\] of 6"),
        ({"FORCE_PLATFORM:ORIGIN": np.full((3, 1), np.nan)}, "ORIGIN holds"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(changes, says):
    with pytest.raises(ClipError, match=says):
        wrench_of(2, **changes)


def test_type_4_needs_its_matrix():
    with pytest.raises(ClipError, match="without a CAL_MATRIX"):
        wrench_of(4, **{"FORCE_PLATFORM:CAL_MATRIX": np.zeros((6, 6, 1))})


def test_file_that_is_not_there():
    with pytest.raises(ClipError, match=r"nowhere\.c3d: cannot be read"):
        read_force_plates("nowhere.c3d")


def drifted(zero, offset, standing):
    """A plate that reads an offset [N], in which somebody stands in the middle, or at first; frames of ZERO."""
    n = 400
    v = np.zeros((n, 6))
    v[:, 2] = -offset
    v[slice(100, 300) if standing == "later" else slice(0, 200), 2] -= 700.0
    corners, _, _ = geometry()
    parameters = {
        "POINT:UNITS": ["m"],
        "ANALOG:UNITS": ["N"] * 3 + ["Nm"] * 3,
        "FORCE_PLATFORM:USED": np.array([1]),
        "FORCE_PLATFORM:TYPE": np.array([2]),
        "FORCE_PLATFORM:CORNERS": corners.T[:, :, None],
        "FORCE_PLATFORM:ORIGIN": np.array([0.0, 0, -0.04])[:, None],
        "FORCE_PLATFORM:CHANNEL": np.arange(1, 7)[:, None],
        "FORCE_PLATFORM:ZERO": np.array(zero),
    }
    (wrench,) = force_plates(decode_c3d(c3d_file(v, parameters), "x.c3d"), "x.c3d")
    return wrench


def test_the_file_says_when_the_plate_was_unloaded():
    """A drift of 120 N is beyond what is found without it."""
    said = drifted([1, 15], 120.0, "later")
    assert said.unloaded is not None
    peak = np.abs(said.zeroed().normal_force).max()
    assert peak == pytest.approx(700.0, abs=1e-3)
    assert any("reads 120.0 N unloaded: subtracted" in w for w in said.zeroed().warnings)
    guessed = drifted([0, 0], 120.0, "later")
    assert guessed.unloaded is None and np.abs(guessed.zeroed().normal_force).max() == pytest.approx(820.0, abs=1e-3)


def test_a_person_who_stands_on_it_at_that_time_is_not_taken_out():
    standing = drifted([1, 15], 0.0, "first")
    zeroed = standing.zeroed()
    assert np.abs(zeroed.normal_force).max() == pytest.approx(700.0, abs=1e-3)
    assert any("is loaded while the file states it is not" in w for w in zeroed.warnings)
