"""Tables and ExternalLoads of OpenSim: the traps of real files, and what bad ones say."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.human.forces.loads import read_loads, read_storage

# Order as in real files: both torques after both forces; point of the unloaded plate nowhere.
LABELS = (
    "time R_fvx R_fvy R_fvz R_px R_py R_pz L_fvx L_fvy L_fvz L_px L_py L_pz R_torque_x R_torque_y R_torque_z Tx Ty Tz"
)
ROWS = np.array(
    [
        [0.50, 0, 0, 0, 346.1, 0, 96.4, 0, 90, 0, 0.2, 0, 0.3, 0, 0, 0, 0, 1, 0],
        [0.51, 0, 0, 0, 344.1, 0, 95.8, 0, 80, 0, 0.2, 0, 0.3, 0, 0, 0, 0, 1, 0],
        [0.52, 10, 500, -20, 0.1, 0.02, 0.4, 0, 70, 0, 0.2, 0, 0.3, 0, 5, 0, 0, 1, 0],
    ]
)


def force(name, f, p, t, body="calcn_r", more=""):
    return (
        f'<ExternalForce name="{name}"><applied_to_body> {body} </applied_to_body>{more}'
        f"<force_identifier> {f} </force_identifier><point_identifier>{p}</point_identifier>"
        f"<torque_identifier>{t}</torque_identifier></ExternalForce>"
    )


RIGHT, LEFT = force("right", "R_fv", "R_p", "R_torque"), force("left", "L_fv", "L_p", "T", "/bodyset/calcn_l")


def mot(rows=ROWS, labels=LABELS, head="forces\nversion=1\nnRows=3\nnColumns=19\ninDegrees=yes\n"):
    return head + "endheader\n" + labels.replace(" ", "\t") + "\n" + "\n".join("\t".join(map(str, r)) for r in rows)


@pytest.fixture
def files(tmp_path):
    def write(forces=RIGHT + LEFT, table=None, datafile="../ExpData/grf.mot", head=""):
        (tmp_path / "grf.mot").write_text(mot() if table is None else table)
        path = tmp_path / "loads.xml"
        path.write_text(
            f'<?xml version="1.0"?><OpenSimDocument Version="40000"><ExternalLoads name="x">{head}<objects>{forces}'
            f"</objects><datafile> {datafile} </datafile></ExternalLoads></OpenSimDocument>"
        )
        return path

    return write


def test_moment_is_that_about_the_origin_sample_by_sample(files):
    right, left = read_loads(files())
    assert (right.name, right.body, left.body) == ("right", "calcn_r", "calcn_l")
    np.testing.assert_allclose(
        right.moment, [[0, 0, 0], [0, 0, 0], np.cross([0.1, 0.02, 0.4], [10, 500, -20]) + [0, 5, 0]]
    )
    np.testing.assert_allclose(left.moment[0], np.cross([0.2, 0, 0.3], [0, 90, 0]) + [0, 1, 0])
    np.testing.assert_allclose(right.center_of_pressure()[2], [0.1, 0.02, 0.4], atol=1e-12)
    assert right.normal.tolist() == [0, 1, 0]
    # Half way into the strike the moment is half of that of the first loaded sample: no spike of the point at 344 m.
    between = right.resampled(np.array([0.515]))
    np.testing.assert_allclose(between.moment[0], right.moment[2] / 2, atol=1e-9)


def test_point_that_is_no_number_beside_no_force_means_nothing(files):
    rows = ROWS.copy()
    rows[:2, 4] = np.nan
    right, _ = read_loads(files(table=mot(rows)))
    assert np.isfinite(right.moment).all() and right.warnings == ()
    rows[2, 4] = np.nan
    right, _ = read_loads(files(table=mot(rows)))
    assert np.isnan(right.moment[2]).any() and "non-numeric in 1 of 3" in right.warnings[0]


@pytest.mark.parametrize(
    ("folder", "xml", "span", "bodies"),
    [
        ("gait2354_walk", "subject01_walk1_grf", (0.0, 2.5), ["calcn_r", "calcn_l"]),
        ("rajagopal_run", "grf_run", (0.23, 5.32), ["calcn_r", "calcn_l"]),
        ("rajagopal_walk", "grf_walk", (0.0, 2.3885), ["calcn_r", "calcn_l"]),
        ("addbiomechanics_subject4", "walking2_external_forces", (0.0, 1.31), ["talus_r", "talus_r"]),
        ("opensim_core_tests/id", "subject01_walk1_grf", (0.0, 15.0133), ["calcn_r", "calcn_l"]),
    ],
)
def test_real_files(model_file, folder, xml, span, bodies):
    path = model_file(f"human_motion/{folder}/{xml}.xml")
    wrenches = read_loads(path)
    assert [w.body for w in wrenches] == bodies
    for wrench in wrenches:
        assert (wrench.times[0], wrench.times[-1]) == pytest.approx(span)
        assert 600 < wrench.normal_force.max() < 3000 and wrench.normal.tolist() == [0, 1, 0]
        # p x F of a foot in the laboratory; the rubbish points alone would give thousands of N m.
        assert np.abs(wrench.moment).max() < 4.0 * np.abs(wrench.force).max()
        sole = wrench.center_of_pressure()[wrench.normal_force > 100]
        assert np.abs(sole).max() < 3.0 and np.ptp(sole[:, 1]) < 1e-9
    # By the names of the columns alone the same forces are found.
    alone = read_loads(next(path.parent.glob("*grf*.mot")) if "core" in folder else path.with_name(
        {"walking2_external_forces": "walking2_grf"}.get(xml, xml) + ".mot"))  # fmt: skip
    for ours, declared in zip(alone, wrenches, strict=True):
        np.testing.assert_array_equal(ours.moment, declared.moment)
        assert ours.body == ""


def test_first_loaded_frame_has_no_spike(model_file):
    """Points of an unloaded plate lie 346 m away: between unloaded and loaded samples they must not count."""
    right, _ = read_loads(model_file("human_motion/rajagopal_walk/grf_walk.xml"))
    frames = np.arange(0, 2.38, 0.01) + 0.00031
    at = right.resampled(frames)
    pressed = at.normal_force > 0
    assert np.abs(at.center_of_pressure()[pressed]).max() < 2.5


def test_export_of_opensim_in_millimetres_must_be_called_so(model_file):
    path = model_file("human_motion/force_plates/reference/std_cop_walking2_grfs.sto")
    with pytest.raises(ClipError, match=r"f1' acts .* are its points in millimetres"):
        read_loads(path)
    f1, f2 = read_loads(path, unit="mm")
    assert (f1.name, f2.name) == ("f1", "f2") and f1.normal.tolist() == [0, 0, 1]
    np.testing.assert_allclose(
        f1.moment_about(f1.center_of_pressure())[:, 2], read_storage(path).values[:, 8] / 1e3, atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "degrees", "rows"),
    [
        ("gait2354_walk/reference/subject01_walk1_ik.mot", True, 73),
        ("opensim_core_tests/id/subject01_walk1_ik.mot", True, 211),  # in prose only
        ("rajagopal_walk/grf_walk.mot", False, 4778),
        ("rajagopal_run/grf_run.mot", None, 5091),
    ],
)
def test_headers_of_every_kind(model_file, name, degrees, rows):
    table = read_storage(model_file(f"human_motion/{name}"))
    assert (table.in_degrees, len(table.times), table.warnings) == (degrees, rows, ())


def test_header_that_lies_about_rows_is_said(files):
    right, _ = read_loads(files(table=mot().replace("nRows=3", "nRows=100")))
    assert "declares 100 rows, the file contains 3" in right.warnings[0]


def test_force_that_is_switched_off_is_left_out(files):
    off = force("off", "L_fv", "L_p", "T", more="<isDisabled>true</isDisabled>")
    (right,) = read_loads(files(RIGHT + off))
    assert "'off' is switched off" in right.warnings[0]
    with pytest.raises(ClipError, match="contains no force"):
        read_loads(files(force("off", "L_fv", "L_p", "T", more="<appliesForce>false</appliesForce>")))


def test_defaults_are_no_forces(files):
    assert len(read_loads(files(head=f"<defaults>{force('default', 'a', 'b', 'c')}</defaults>"))) == 2


@pytest.mark.parametrize(
    ("forces", "says"),
    [
        (force("right", "R_fw", "R_p", ""), "'R_fw' begins 0 columns .* did you mean R_fv"),
        (force("right", "R_", "R_p", ""), "'R_' begins 0 columns"),
        (force("right", "R_fv", "", ""), "no point_identifier"),
        (force("right", "", "", ""), "neither force nor torque"),
        (force("right", "R_fv", "R_p", "", more="<force_expressed_in_body>tibia_r</force_expressed_in_body>"),
         r"expressed in tibia_r \(force_expressed_in_body\): only ground"),
    ],
)  # fmt: skip
def test_forces_that_cannot_be_used_are_named(files, forces, says):
    with pytest.raises(ClipError, match=says):
        read_loads(files(forces))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("nothing", "no line 'endheader'"),
        (mot(labels=LABELS.replace("time", "t")), "time first"),
        (mot()[:-4], "line 10 has 18 cells for 19 labels"),
        (mot(rows=[]), "no rows"),
        (mot().replace("344.1", "oops"), "non-numeric"),
        (mot(rows=ROWS[[0, 2, 1]]), "line 10: the time does not increase"),
    ],
)
def test_tables_that_cannot_be_read_say_where(files, table, says):
    with pytest.raises(ClipError, match=says):
        read_loads(files(table=table))


def test_files_that_are_not_there_or_not_xml(files, tmp_path):
    with pytest.raises(ClipError, match=r"datafile other\.mot was not found, nor next to it"):
        read_loads(files(datafile="other.mot"))
    with pytest.raises(ClipError, match="contains no datafile"):
        read_loads(files(datafile="Unassigned"))
    assert len(read_loads(files(datafile="Unassigned"), tmp_path / "grf.mot")) == 2
    broken = tmp_path / "x.xml"
    broken.write_text("<ExternalLoads>")
    with pytest.raises(ClipError, match=r"x\.xml: not ExternalLoads, XML error"):
        read_loads(broken)
    broken.write_text("<a/>")
    with pytest.raises(ClipError, match="contains no ExternalLoads"):
        read_loads(broken)
    with pytest.raises(ClipError, match="cannot be read"):
        read_loads(tmp_path / "no.mot")
    with pytest.raises(UnknownNameError, match="unknown unit 'feet'"):
        read_loads(files(), unit="feet")


# -------- columns, times and units of others

FORCE = "ground_force_1_vx ground_force_1_vy ground_force_1_vz ground_force_1_px ground_force_1_py ground_force_1_pz"


def plain(tmp_path, labels, row, head="x\n", times=(0.0, 0.01, 0.02), between=""):
    path = tmp_path / "grf.mot"
    rows = "\n".join("\t".join(map(str, [t, *row])) for t in times)
    path.write_text(f"{head}endheader\n{between}time\t" + "\t".join(labels.split()) + "\n" + rows)
    return path


@pytest.mark.parametrize(
    "moment",
    [
        "ground_torque_1_x ground_torque_1_y ground_torque_1_z",
        "ground_moment_1_mx ground_moment_1_my ground_moment_1_mz",
        "ground_moment_1_x ground_moment_1_y ground_moment_1_z",
        "ground_force_1_mx ground_force_1_my ground_force_1_mz",
    ],
)
def test_the_moment_has_many_names(moment, tmp_path):
    (load,) = read_loads(plain(tmp_path, f"{FORCE} {moment}", [70, 700, 0, 0.2, 0, 0.1, 0, 12, 0]))
    assert load.free_moment() == pytest.approx([12.0] * 3) and load.warnings == ()


def test_columns_that_no_load_takes_are_named(tmp_path):
    odd = "ground_twist_1_x ground_twist_1_y ground_twist_1_z"
    (load,) = read_loads(plain(tmp_path, f"{FORCE} {odd}", [70, 700, 0, 0.2, 0, 0.1, 0, 12, 0]))
    assert any("ignored: ground_twist_1_x, ground_twist_1_y, ground_twist_1_z" in w for w in load.warnings)
    second = "2_ground_force_vx 2_ground_force_vy 2_ground_force_vz"
    (load,) = read_loads(plain(tmp_path, f"{FORCE} {second}", [70, 700, 0, 0.2, 0, 0.1, 0, 9, 0]))
    assert any(
        "columns without a force with a point of application are ignored: 2_ground_force_vx" in w for w in load.warnings
    )
    cop = f"{second} 2_ground_cop_x 2_ground_cop_y 2_ground_cop_z"
    assert len(read_loads(plain(tmp_path, f"{FORCE} {cop}", [70, 700, 0, 0.2, 0, 0.1, 0, 9, 0, 0.3, 0, 0.2]))) == 2


def test_a_time_that_stands_twice_is_left_out_and_blank_lines_are_none(tmp_path):
    times = (0.0, 0.01, 0.01, 0.02)
    (load,) = read_loads(plain(tmp_path, FORCE, [70, 700, 0, 0.2, 0, 0.1], times=times, between="\n\n"))
    assert load.times.tolist() == [0.0, 0.01, 0.02]
    assert any("1 rows repeat the time of the previous row" in w for w in load.warnings)
    with pytest.raises(ClipError, match="the time does not increase"):
        read_loads(plain(tmp_path, FORCE, [70, 700, 0, 0.2, 0, 0.1], times=(0.0, 0.02, 0.01)))


def test_millimetres_are_told_by_the_unit(tmp_path):
    labels = "f1_x f1_y f1_z m1_x m1_y m1_z p1_x p1_y p1_z"
    path = plain(tmp_path, labels, [70, 700, 0, 0, 12000, 0, 200, 0, 100])
    (load,) = read_loads(path, unit="mm")
    np.testing.assert_allclose(load.center_of_pressure()[0], [0.2, 0, 0.1], atol=1e-12)
    with pytest.raises(ClipError, match="give --forces-unit mm"):
        read_loads(path)


@pytest.mark.parametrize(("far", "ok"), [(49.0, True), (51.0, False)])
def test_a_force_more_than_50_m_from_the_origin_is_in_another_unit(files, far, ok):
    table = mot([[*row[:4], far if row[2] else 0.0, *row[5:]] for row in ROWS])
    if ok:
        assert len(read_loads(files(table=table))) == 2
    else:
        with pytest.raises(ClipError, match="acts 51 m from the origin"):
            read_loads(files(table=table))


def standing(times):
    """A table of one force, in rows of some times."""
    rows = [[t, 0, 700, 0, 0.1, 0, 0.2] for t in times]
    return mot(rows, "time f_vx f_vy f_vz f_px f_py f_pz", "forces\n")


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds")])
@pytest.mark.parametrize("rate", [100, 1000, 2000])
def test_forces_in_another_unit_of_time_are_known_by_the_rate_and_reported(tmp_path, factor, unit, rate):
    path = tmp_path / "grf.mot"
    path.write_text(standing((2.0 + np.arange(500) / rate) * factor))
    (load,) = read_loads(path)
    np.testing.assert_allclose(load.times, 2.0 + np.arange(500) / rate, atol=1e-9)
    assert any(f"the time column counts {unit}" in w for w in load.warnings)
    path.write_text(standing(2.0 + np.arange(500) / rate))
    (load,) = read_loads(path)
    assert load.times[-1] == pytest.approx(2.0 + 499 / rate) and not any("counts" in w for w in load.warnings)


def test_forces_at_times_of_no_unit_or_of_two_recordings_are_refused(tmp_path):
    path = tmp_path / "grf.mot"
    path.write_text(standing(np.arange(100) * 0.2))
    with pytest.raises(ClipError, match="is not 10 to 4000 Hz in any unit: write times in seconds"):
        read_loads(path)
    times = np.arange(200) / 100
    path.write_text(standing(np.where(times < 1, times, times + 3600)))
    with pytest.raises(ClipError, match=r"no row from 0\.99 to 3601\.00 s"):
        read_loads(path)
    path.write_text(standing([0.0, 10.0]))
    assert read_loads(path)[0].times[-1] == 10.0, "a constant force that somebody wrote"


def test_words_for_nothing_decimal_commas_and_weak_forces_are_understood(tmp_path):
    names = "time ground_force_vx ground_force_vy ground_force_vz ground_force_px ground_force_py ground_force_pz"
    rows = [f"{k / 100:.2f} 70.0 700.0 0.0 0.2 0.0 0.1" for k in range(30)]

    def read(lines):
        path = tmp_path / "x.mot"
        path.write_text("\n".join(["x", "endheader", names, *lines]))
        return read_loads(path)[0]

    plain = read(rows)
    np.testing.assert_array_equal(read([r.replace(".", ",") for r in rows]).moment, plain.moment)
    lost = read([*rows[:9], rows[9].replace("700.0", "1.#QNAN"), *rows[10:]])
    assert np.flatnonzero(~np.isfinite(lost.force).all(axis=1)).tolist() == [9]
    weak = read([r.replace("70.0 700.0", "0.07 0.7") for r in rows])
    assert any("0.703 N: are the forces in kN" in w for w in weak.warnings) and not plain.warnings
    for cell, says in (
        ("abc", "line 13 contains a non-numeric value"),
        ("nan", "line 13: the time is not a number"),
    ):
        with pytest.raises(ClipError, match=says):
            read([*rows[:9], rows[9].replace("0.09", cell, 1), *rows[10:]])
