"""OpenSim's models: versions that hold the same, what is left out and said, what is refused by its name."""

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.human import read_osim
from humanoid_control.human.osim import parse_osim

SMALL = """<?xml version="1.0"?>
<OpenSimDocument Version="40000"><Model name="small"><gravity>0 0 -9.8</gravity>
<BodySet><objects>
 <Body name="a"><mass>1</mass><mass_center>0 0.1 0</mass_center><inertia>1 2 3 0.1 0.2 0.3</inertia></Body>
 <Body name="b"><mass>2</mass><mass_center>0 0 0</mass_center><inertia>1 1 1 0 0 0</inertia>
  <components><PhysicalOffsetFrame name="tip"><translation>0 -1 0</translation><orientation>0 0 0</orientation>
  </PhysicalOffsetFrame></components></Body>
</objects></BodySet>
<JointSet><objects>
 <FreeJoint name="root"><socket_parent_frame>/ground</socket_parent_frame>
  <socket_child_frame>/bodyset/a</socket_child_frame>
  <coordinates><Coordinate name="rx"/><Coordinate name="ry"/><Coordinate name="rz"/>
   <Coordinate name="tx"/><Coordinate name="ty"/><Coordinate name="tz"/></coordinates></FreeJoint>
 <PinJoint name="pin"><socket_parent_frame>outer</socket_parent_frame>
  <socket_child_frame>/bodyset/b</socket_child_frame>
  <coordinates><Coordinate name="k"><range>-1 2</range><clamped>true</clamped></Coordinate></coordinates>
  <frames>
   <PhysicalOffsetFrame name="inner"><socket_parent>/bodyset/a</socket_parent><translation>1 0 0</translation>
    <orientation>0 0 1.5707963267948966</orientation></PhysicalOffsetFrame>
   <PhysicalOffsetFrame name="outer"><socket_parent>inner</socket_parent><translation>1 0 0</translation>
    <orientation>0 0 0</orientation></PhysicalOffsetFrame>
  </frames></PinJoint>
</objects></JointSet>
<MarkerSet><objects>
 <Marker name="m"><socket_parent_frame>/bodyset/b/tip</socket_parent_frame><location>0.5 0 0</location>
  <fixed>true</fixed></Marker>
 <Marker name="floor"><socket_parent_frame>/ground</socket_parent_frame><location>0 0 0</location></Marker>
</objects></MarkerSet></Model></OpenSimDocument>"""


def test_frames_within_frames_and_joints_of_few_words():
    person = parse_osim(SMALL, "small.osim")
    assert person.names == ("rx", "ry", "rz", "tx", "ty", "tz", "k") and np.allclose(person.gravity, [0, 0, -9.8])
    assert [c.rotational for c in person.coordinates] == [True] * 3 + [False] * 3 + [True]
    assert [m.name for m in person.markers] == ["m"] and person.markers[0].anatomical
    # b's origin is at (1, 1, 0), turned by 90 degrees; there its marker at (0.5, -1, 0) lies at (2, 1.5, 0).
    q = np.zeros((2, 7))
    q[1, 3:] = 0.0, 0.0, 3.0, -np.pi / 2
    markers = person.marker_positions(q)[:, 0]
    assert np.allclose(markers, [[2, 1.5, 0], [1.5, 0, 3]])
    assert np.allclose(person.bodies[0].inertia, [[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 3]])
    k = person.coordinates[6]
    assert (k.lower, k.upper, k.clamped, k.locked) == (-1, 2, True, False)


# The second one was rounded to six digits on its way.
@pytest.mark.parametrize("test, error", [("ik/subject01_simbody", 1e-12), ("id/subject01", 2e-6)])
def test_old_versions_hold_the_same_as_those_converted_by_opensim(human_motion, test, error):
    old = read_osim(human_motion(f"opensim_core_tests/{test}.osim"))
    new = read_osim(human_motion(f"opensim_core_tests/{test}_converted_40600.osim"))
    assert old.names == new.names and old.body_names == new.body_names
    q = np.random.default_rng(3).uniform(-0.5, 0.5, (4, old.n))
    assert np.allclose(old.marker_positions(q), new.marker_positions(q), rtol=0, atol=error)
    for a, b in zip(old.bodies, new.bodies, strict=True):
        assert a.mass == b.mass and np.allclose(a.com, b.com) and np.allclose(a.inertia, b.inertia)
    bounds = [[(c.lower, c.upper, c.clamped, c.locked) for c in person.coordinates] for person in (old, new)]
    assert np.allclose(*bounds)


def test_what_is_left_out_is_counted(walker):
    assert walker.notes == ("ignored: 17 forces, 80 muscles, 40 wrap objects",)


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("PinJoint", "ConstantCurvatureJoint", "'pin': ConstantCurvatureJoint is not supported: it is a type"),
        ("PinJoint", "EllipsoidJoint", "'pin': EllipsoidJoint is not supported"),
        ('Version="40000"', 'Version="10901"', "version 10901, before 20302"),
        ('Version="40000"', "", "contains no version"),
        ("OpenSimDocument", "Document", "not an OpenSim model"),
        ("<mass>2</mass>", "<mass>much</mass>", "'b': mass must be a number, got 'much'"),
        ("<mass>2</mass>", "<mass>inf</mass>", "'b': mass must be a number"),
        ("<inertia>1 2 3 0.1 0.2 0.3", "<inertia>1 2 3", "'a': inertia must be 6 numbers"),
        ("-1 2", "2 -1", "range of 'k' is 2.0 to -1.0: swap"),
        ("inner</socket_parent>", "outer</socket_parent>", "belongs to no body"),
        ("/bodyset/a</socket_parent>", "/bodyset/arm</socket_parent>", "names the body 'arm', which does not exist"),
        ("<Coordinate name=\"tz\"/>", "", "a FreeJoint has 6 coordinates, the file gives 5"),
        ("</Model>", "", "XML error"),
        ("<clamped>", "<reverse>true</reverse><clamped>", None),
        ("</frames>", "</frames><reverse>true</reverse>", "is reversed"),
        ("<MarkerSet>", "<ConstraintSet><objects><WeldConstraint name='w'/></objects></ConstraintSet><MarkerSet>",
         "constraint 'w': WeldConstraint is not supported"),
        ("<MarkerSet>", "<ConstraintSet><objects><PointConstraint name='w'><isEnforced>false</isEnforced>"
         "</PointConstraint></objects></ConstraintSet><MarkerSet>", None),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_by_its_name(old, new, told):
    assert old in SMALL
    text = SMALL.replace(old, new)
    if told is None:
        parse_osim(text, "small.osim")
        return
    with pytest.raises(RobotError, match=told) as refused:
        parse_osim(text, "small.osim")
    assert str(refused.value).startswith("small.osim: ") and "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(RobotError, match=r"no\.osim: cannot be read"):
        read_osim(tmp_path / "no.osim")


def prescribed(function, on="true"):
    more = f"<prescribed_function>{function}</prescribed_function><prescribed>{on}</prescribed>"
    return SMALL.replace('<Coordinate name="k">', f'<Coordinate name="k">{more}')


def test_a_constant_that_prescribes_a_coordinate_locks_it_there():
    k = next(
        c
        for c in parse_osim(prescribed("<Constant><value>1.2</value></Constant>"), "x").all_coordinates
        if c.name == "k"
    )
    assert k.locked and k.default == 1.2
    free = parse_osim(prescribed("<Constant><value>1.2</value></Constant>", "false"), "x").all_coordinates
    assert not any(c.locked for c in free)


def test_a_function_of_time_that_prescribes_is_refused_by_the_name():
    line = "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"
    with pytest.raises(RobotError, match="coordinate 'k' is prescribed by a function of time"):
        parse_osim(prescribed(line), "x")
    with pytest.raises(RobotError, match="prescribed without a function"):
        parse_osim(prescribed(""), "x")
