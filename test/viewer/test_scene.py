"""The layer of markers: what a message says is what the page is told, and what is gone is not seen."""

import socket
import time
from types import SimpleNamespace as N

import numpy as np
import pinocchio as pin
import pytest

viser = pytest.importorskip("viser")

from humanoid_control.robots import load_robot
from humanoid_control.viewer.scene import (
    ARROW,
    CUBE,
    CYLINDER,
    LINE_LIST,
    SPHERE,
    SPHERE_LIST,
    MarkerLayer,
    Scene,
    _unit,
)


def v(x, y, z):
    return N(x=x, y=y, z=z)


def marker(kind, ns="a", at=(0, 0, 0), size=(0.1, 0.2, 0.3), color=(1, 0.5, 0, 0.4), points=(), action=0):
    pose = N(position=v(*at), orientation=N(x=0.0, y=0.6, z=0.0, w=0.8))
    rgba = N(**dict(zip("rgba", color, strict=True)))
    points = [v(*p) for p in points]
    return N(
        type=kind,
        ns=ns,
        pose=pose,
        scale=v(*size),
        color=rgba,
        colors=[rgba] * len(points),
        points=points,
        action=action,
    )


def test_solids_lines_and_arrows_are_where_the_message_has_them(server):
    layer = MarkerLayer(server, "/one")
    ends = [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]
    message = [
        marker(SPHERE, at=(1, 2, 3)),
        marker(CUBE, at=(4, 5, 6), color=(0, 0, 1, 1)),
        marker(CYLINDER, at=(7, 8, 9)),
        marker(SPHERE_LIST, points=ends),
        marker(LINE_LIST, points=ends),
        marker(ARROW, "momentum", points=ends[:2]),
        marker(9, "text that is ignored"),
    ]
    layer.draw(message)
    balls, boxes = layer._solids[SPHERE], layer._solids[CUBE]
    assert np.allclose(balls.batched_positions, [(1, 2, 3), *ends])
    assert np.allclose(boxes.batched_positions, [(4, 5, 6)]) and np.allclose(boxes.batched_wxyzs, [(0.8, 0, 0.6, 0)])
    assert np.allclose(boxes.batched_scales, [(0.1, 0.2, 0.3)])
    assert np.array_equal(boxes.batched_colors, [(0, 0, 255)]) and np.allclose(balls.batched_opacities[0], 0.4)
    (lines,) = layer._lines.values()
    assert np.allclose(lines.points.reshape(-1, 3), ends)
    assert np.allclose(layer._arrows["momentum"].points[0], ends[:2])

    message[1].pose.position.x = -4.0
    layer.draw(message)
    assert layer._solids[CUBE] is boxes, "the same handle, told the new place"
    assert np.allclose(boxes.batched_positions, [(-4, 5, 6)])
    thin = marker(LINE_LIST, "thin", points=ends[:2])
    thin.scale.x = 0.004
    layer.draw([*message, thin])
    assert len(layer._lines) == 2 and layer._lines[0.004].points.shape == (1, 2, 3), "each width by itself"


@pytest.mark.parametrize(("kind", "volume"), [(CUBE, 1.0), (CYLINDER, np.pi / 4), (SPHERE, np.pi / 6)])
def test_the_solid_of_a_marker_has_its_form_and_width_one(kind, volume):
    solid = _unit(kind)
    assert solid.volume == pytest.approx(volume, rel=0.05)
    assert solid.extents == pytest.approx([1.0, 1.0, 1.0], rel=0.02)


def test_what_a_message_deletes_or_leaves_out_is_not_seen(server):
    layer = MarkerLayer(server, "/two")
    ends = [(0, 0, 0), (0, 0, 1)]
    solids = [marker(kind, at=(0, 0, k)) for k, kind in enumerate((SPHERE, CUBE, CYLINDER))]
    others = [marker(LINE_LIST, points=ends), marker(ARROW, "m", points=ends)]
    layer.draw([*solids, *others])
    handles = [*layer._solids.values(), *layer._lines.values(), *layer._arrows.values()]
    assert all(h.visible for h in handles)
    others[0].action = 2
    layer.draw([solids[0], others[0]])
    assert [h.visible for h in handles] == [h is layer._solids[SPHERE] for h in handles]
    layer.show(False)
    layer.draw([*solids, marker(LINE_LIST, points=ends)])
    assert not any(h.visible for h in (*layer._solids.values(), *layer._lines.values())), "hidden stays hidden"


def test_each_error_is_a_line_from_the_target_to_the_point_and_nothing_stands_on_the_joint(server):
    scene = Scene(server, load_robot("we4rii", "fixed"))
    targets = np.array([[0.1, 0.2, 1.0], [0.3, -0.2, 1.1], [0.0, 0.0, 0.9]])
    reached = targets + [[0.05, 0.0, 0.0], [0.0, 0.0, -0.2], [np.nan, np.nan, np.nan]]
    scene.draw_targets(targets, reached)
    lines = scene._errors.points
    assert np.allclose(lines[:, 0], targets) and np.allclose(lines[:2, 1], reached[:2])
    assert np.allclose(lines[2, 1], targets[2]), "nothing is known of where this point is"
    crosses = scene._targets.points.reshape(3, 3, 2, 3)  # target, axis, end
    assert np.allclose(crosses.mean(axis=(1, 2)), targets), "the middle of a cross is its target"
    assert np.allclose(np.linalg.norm(crosses[:, :, 0] - crosses[:, :, 1], axis=-1), 0.18)
    crossed, errors = scene._targets, scene._errors
    scene.draw_targets(targets + 0.01, reached)
    assert scene._targets is crossed and scene._errors is errors, "the same handles, told the new places"
    scene.show("targets", False)
    assert not crossed.visible and not errors.visible
    scene.draw_targets(targets[:2], reached[:2] * np.nan)
    assert not scene._targets.visible and not scene._errors.visible, "hidden stays hidden"


def odometry(x, y, z):
    return N(pose=N(pose=N(position=v(x, y, z), orientation=N(x=0.0, y=0.0, z=np.sin(0.25), w=np.cos(0.25)))))


@pytest.fixture
def page():
    from humanoid_control.viewer.page import ViewerPage
    from humanoid_control.viewer.panel import PanelActions

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    made = ViewerPage("127.0.0.1", port, load_robot("hrp2", "fixed"), PanelActions(*[lambda *_: None] * 5), hidden=())
    yield made
    made.stop()


def test_a_robot_that_walks_is_drawn_where_it_thinks_it_is_and_everything_goes_along(page):
    from humanoid_control.viewer.page import ViewState

    robot = page.robot
    state = ViewState(robot)
    state.on_joints(N(name=list(robot.joint_names), position=robot.postures["neutral"].tolist()))
    root = robot.X_world_root.translation
    state.on_truth(odometry(5.0, 5.0, root[2]))
    assert state.root_pose().translation[0] == 5.0, "the simulator's, while nobody estimates"
    state.on_odometry(odometry(2.0, -1.0, root[2]))
    page._draw_robot(robot.postures["neutral"], state.root_pose())
    X = state.root_pose() * robot.X_world_root.inverse() * robot.link_poses(robot.q())["l_foot"]
    assert np.allclose(page.scene._links["l_foot"].position, X.translation)
    assert page.scene._floor.position[:2].tolist() == [2.0, -1.0], "the floor goes along by whole cells"
    com = robot.center_of_mass(robot.q())
    turned = [np.cos(0.5) * com[0] - np.sin(0.5) * com[1] + 2.0, np.sin(0.5) * com[0] + np.cos(0.5) * com[1] - 1.0]
    assert np.allclose(page.scene._com.position[:2], turned) and np.allclose(page.scene._com.position[2], com[2])


def test_an_estimate_that_is_silent_gives_way_to_the_truth(page, monkeypatch):
    from humanoid_control.viewer.page import STALE, ViewState

    state, now = ViewState(page.robot), time.monotonic()
    state.on_odometry(odometry(2.0, -1.0, 0.9))
    monkeypatch.setattr(time, "monotonic", lambda: now + 2 * STALE)
    assert state.root_pose().translation[0] == 2.0, "nobody knows better"
    state.on_truth(odometry(5.0, 5.0, 0.2))
    assert state.root_pose().translation[2] == 0.2, "fallen, while the walker is gone"
    state.on_odometry(odometry(3.0, -1.0, 0.9))
    assert state.root_pose().translation[0] == 3.0


def test_the_world_moves_so_that_the_robot_stays_before_the_cameras(page):
    from humanoid_control.viewer.page import FOLLOW_SHARE

    neutral, world = page.robot.postures["neutral"], page.scene._world

    def walk_to(x, y, z):
        o = odometry(x, y, z).pose.pose
        page._draw_robot(neutral, pin.SE3(np.eye(3), np.array([o.position.x, o.position.y, o.position.z])))

    eye = np.array(page.server.initial_camera.position)
    walk_to(4.0, -1.0, 0.9)
    assert np.allclose(world.position, [-4.0, 1.0, 0.0]), "far away: at once, and not up or down"
    walk_to(4.5, -1.0, 1.0)
    assert np.allclose(world.position, [-4.0 - 0.5 * FOLLOW_SHARE, 1.0, 0.0]), "a step: smoothly"
    for _ in range(100):
        walk_to(4.5, -1.0, 1.0)
    assert np.allclose(world.position, [-4.5, 1.0, 0.0], atol=1e-3)
    page.scene.show("follow", False)
    walk_to(8.0, -1.0, 1.0)
    assert np.allclose(world.position, [-4.5, 1.0, 0.0], atol=1e-3)
    page.scene.show("follow", True)
    walk_to(8.0, -1.0, 1.0)
    assert np.allclose(world.position, [-8.0, 1.0, 0.0]), "found again"
    assert np.array_equal(page.server.initial_camera.position, eye), "no camera was touched"


def test_nothing_is_drawn_for_nobody_but_the_first_picture(page, monkeypatch):
    from humanoid_control.viewer.page import ViewState

    drawn, state = [], ViewState(page.robot)
    state.on_joints(N(name=list(page.robot.joint_names), position=page.robot.postures["neutral"].tolist()))
    monkeypatch.setattr(page, "_draw_robot", lambda *_: drawn.append(1))
    for clients, count in (({}, 1), ({}, 1), ({}, 1), ({1: None}, 2)):
        monkeypatch.setattr(page.server, "get_clients", lambda c=clients: c)
        page.draw(state, 0.0, 0.0)
        assert len(drawn) == count


def test_on_a_phone_the_camera_has_the_robot_in_the_middle_of_what_the_panel_leaves_free(page):
    from humanoid_control.viewer.page import FREE_SHARE, PAIR_MIDDLE, PAIR_WIDTH

    moves = []
    wide, tall = (N(camera=N(aspect=a, fov=1.2, position=None, on_update=moves.append)) for a in (1.5, 0.46))
    page._look_from_a_phone(wide)
    assert wide.camera.position is None, "wider than tall: as it is"
    page._look_from_a_phone(tall)
    eye, at = np.array(tall.camera.position), np.array(tall.camera.look_at)
    ahead = (at - eye) / np.linalg.norm(at - eye)
    up = np.cross(np.cross(ahead, [0, 0, 1]), ahead)
    middle = np.array([0.0, PAIR_MIDDLE, 0.6 * page.robot.height]) - eye
    height = middle @ up / np.linalg.norm(up) / (middle @ ahead) / np.tan(0.6)  # -1 below, 1 on top
    assert height == pytest.approx(1 - FREE_SHARE, abs=1e-6)
    assert PAIR_WIDTH / 2 / eye[0] / (0.46 * np.tan(0.6)) == pytest.approx(1.0), "as wide as the page"

    (moved,) = moves
    tall.camera.position = np.array(page.server.initial_camera.position)
    moved(tall.camera)
    assert np.allclose(tall.camera.position, eye), "a page that loads slowly puts its first camera after ours"
    tall.camera.position = np.array([9.0, 0.0, 1.0])
    moved(tall.camera)
    assert np.allclose(tall.camera.position, [9.0, 0.0, 1.0]), "whom a finger moved stays there"


def test_what_hangs_is_named_also_where_no_joint_states_come(page, monkeypatch):
    """A simulator that hangs: that no joint states come is half of it, the other half is why."""
    from humanoid_control.viewer.page import SLOW_EVERY, ViewState

    monkeypatch.setattr(page.server, "get_clients", lambda: {1: None})
    state = ViewState(page.robot)
    state.on_diagnostics(N(status=[N(name="/simulator", level=b"\x02", message="a contact is not finite", values=[])]))
    for known, age in ((False, 0.0), (True, 12.0), (True, 0.0)):
        if known:
            neutral = page.robot.postures["neutral"].tolist()
            state.on_joints(N(name=list(page.robot.joint_names), position=neutral))
        for k in range(SLOW_EVERY):
            page.draw(state, age, 0.1 * k)
        first, second = page.panel._status.content.split("\n\n")
        assert ("live" in first) == (known and age == 0.0) and ("for 12 s" in first) == (age == 12.0)
        assert second == "**simulator**: a contact is not finite"


def test_nodes_that_hang_fail_or_warn_are_named_the_worst_first():
    from humanoid_control.viewer.page import SILENT, ViewState

    def told(**levels):
        messages = {0: "ok", 1: "target 'l_elbow' is silent: held", 2: "a * < b"}
        return N(status=[N(name=f"/{n}", level=bytes([k]), message=messages[k], values=[]) for n, k in levels.items()])

    state = ViewState(load_robot("hrp2", "fixed"))
    assert state.troubles() == []
    state.on_diagnostics(told(simulator=0, whole_body_ik=1, state_estimator=2))
    assert state.troubles() == [
        r"**state_estimator**: a \* &lt; b",
        "**whole_body_ik**: target 'l_elbow' is silent: held",
    ]
    state.on_diagnostics(told(whole_body_ik=0, state_estimator=0))
    assert state.troubles() == [], "what is over is gone"
    lines = state.troubles(time.monotonic() + SILENT + 1)
    assert len(lines) == 3 and lines[0] == "**simulator has been silent for 6 s**"
