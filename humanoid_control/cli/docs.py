"""`humanoid docs`: pages and default parameter files generated from code."""

from __future__ import annotations

import argparse
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.nodes.base.qualifying_fields import qualifying_fields_table
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.paths import share_dir
from humanoid_control.session.stacks import NODES, STACKS
from humanoid_control.terminal import console

EXAMPLES = """examples:
  humanoid docs            update docs/parameters.md, docs/topics.md and config/*.yaml
  humanoid docs --check    list outdated files without writing (exit code 1)
"""

TOPICS = {
    "targets": (
        "visualization_msgs/MarkerArray",
        "target poses: ns is the name of a point or link, pose the target in `world` or the root link; "
        "whole_body_ik also accepts link frames, and with tf2_ros frames with a transform to `world`; at "
        "most 256 markers per message",
    ),
    "targets/NAME": (
        "geometry_msgs/PoseStamped",
        "target of one point (position) or link (pose), for each name in `pose_targets`; frames as for "
        "`targets`. Its first source owns the target until it is silent for 0.5 s. With `tf_targets`, the "
        "frames `target/NAME` on /tf are targets, too",
    ),
    "goals": (
        "visualization_msgs/MarkerArray",
        "a reached goal: id is its number, text its kind (reachable, far, inside)",
    ),
    "ik_markers": (
        "visualization_msgs/MarkerArray",
        "with subscribers only: collision shapes coloured by distance, near pairs, centre of mass, momentum",
    ),
    "joint_commands": (
        "sensor_msgs/JointState",
        "position and velocity of every joint, inside the limits (with `feedback` only velocities, from "
        "whole_body_controller only efforts). The simulator also accepts only velocities or only efforts, for the "
        "named joints; an effort with a position is feed-forward",
    ),
    "reference_joint_states": (
        "sensor_msgs/JointState",
        "position and velocity for every joint, solved by the streamer itself (`solve`); steps of exactly 1 / rate",
    ),
    "joint_states": (
        "sensor_msgs/JointState",
        "measured position, velocity and torque; values beyond range or speed are rejected until three in a row agree; "
        "wrong or absent stamps are corrected or replaced by the arrival time, and reported",
    ),
    "CONTROLLER/commands": (
        "std_msgs/Float64MultiArray",
        "`output` forward: positions for the joints that the controller names, in its order",
    ),
    "CONTROLLER/joint_trajectory": (
        "trajectory_msgs/JointTrajectory",
        "`output` trajectory: one point, two periods ahead, with velocities",
    ),
    "joint_trajectory": (
        "trajectory_msgs/JointTrajectory",
        "trajectory that starts at its stamp (zero: now) from the present reference, with linear, cubic or "
        "quintic segments; rejected if the robot does not follow commands or the stamp has passed; an empty "
        "trajectory stops the active one",
    ),
    "applied_commands": (
        "sensor_msgs/JointState",
        "commands on powered buses, after interpolation, blend and limits; in the simulator, the references of its "
        "drives",
    ),
    "hardware_state": (
        "std_msgs/String",
        "power state and its reason, for late subscribers: OFFLINE, MONITOR, ENABLING, HOLD, BLEND, RUN, STOPPING, "
        "FAULT, ESTOP",
    ),
    "emergency_stop": (
        "std_msgs/Bool",
        "true stops the robot. The stop is released (then `robot_driver/clear_faults`) when each publisher "
        "of true has sent false or has disappeared. Each message is a heartbeat",
    ),
    "estimated_joint_states": ("sensor_msgs/JointState", "filtered position and velocity"),
    "tendon_states": (
        "sensor_msgs/JointState",
        "tendons: name, position = total path length [m], effort = tension [N]; missing tendons are "
        "omitted (simulator: `tendons`); winches: position = wire length, velocity = its rate [m/s]",
    ),
    "tendon_commands": (
        "sensor_msgs/JointState",
        "winch commands, by the filled fields: velocity (of the wire length [m/s]) and effort [N]: hybrid; "
        "effort: tension; position [m] and effort: length. Without commands the drives hold their wires",
    ),
    "tendon_tensions": (
        "sensor_msgs/JointState",
        "effort = tensions [N] of sensors that are not on the bus of the drives, by tendon",
    ),
    "body_image": (
        "std_msgs/Float64MultiArray",
        "learnt body image of the tendons, latched; its label is the hash of the routing",
    ),
    "tendon_controller/missed": ("sensor_msgs/JointState", "effort = torque deficit of the tendons [N m]"),
    "tendon_controller/references": ("sensor_msgs/JointState", "position = references of the joints [rad]"),
    "tendon_markers": (
        "visualization_msgs/MarkerArray",
        "with subscribers only: tendons, green if consistent, red if contradicting, violet if excluded; "
        "with `colour` tension from blue (lowest) to red (highest)",
    ),
    "state_estimator/covariance": (
        "std_msgs/Float64MultiArray",
        "with subscribers only, `source` tendons: covariance of the joints in the label of both dimensions [rad^2]",
    ),
    "state_estimator/jae_error": (
        "sensor_msgs/JointState",
        "with subscribers only, `side_by_side`: position = relative minus absolute estimate of each joint [rad]",
    ),
    "imu": ("sensor_msgs/Imu", "orientation, angular velocity and specific force of the root link"),
    "battery": (
        "sensor_msgs/BatteryState",
        "once a second from each bus with measured supply, `location` is the bus; unmeasured values are NaN",
    ),
    "ground_truth/odometry": (
        "nav_msgs/Odometry",
        "true pose and twist of the root link in the frame `world`; not used by controllers",
    ),
    "cmd_vel": (
        "geometry_msgs/Twist or TwistStamped",
        "commanded velocity: linear.x forward, linear.y to the left, angular.z turning to the left; outdated after "
        "`cmd_vel_timeout`",
    ),
    "footsteps": (
        "visualization_msgs/MarkerArray, geometry_msgs/PoseArray or nav_msgs/Path",
        "poses of the next soles, in the frame of `odom` or in `base_footprint`. Markers: ns is l_foot or "
        "r_foot (text `append` in the first: after the previous ones). Other types: the feet alternate. "
        "While a list or goal of one node is active, other nodes are rejected",
    ),
    "footsteps/status": ("diagnostic_msgs/KeyValue", "accepted or refused, with the bad footstep and the reason"),
    "footsteps/planned": (
        "visualization_msgs/MarkerArray",
        "with subscribers only: planned soles (ns l_foot, r_foot), support polygon, commanded zero-moment "
        "point, divergent component of motion, centre of mass; whole_body_controller adds the forces on "
        "both feet (ns l_force, r_force), zmp (measured) and zmp_planned",
    ),
    "footprint": (
        "geometry_msgs/Polygon",
        "once a second: outline of the standing robot on the ground, in the frame `base_footprint`, for "
        "the topic of the same name of Nav2 costmaps",
    ),
    "odom": (
        "nav_msgs/Odometry",
        "pose and twist of the root link, estimated from joints, IMU and soles, with covariance",
    ),
    "reference_odometry": (
        "nav_msgs/Odometry",
        "pose and twist of the root link for `reference_joint_states`; `odom` in the stack `whole_body`",
    ),
    "contacts": (
        "visualization_msgs/MarkerArray",
        "edges of the soles (ns l_heel, l_toe, r_heel, r_toe); text is `on` while an edge is in contact",
    ),
    "contact/FOOT": ("std_msgs/Bool", "whether a foot (`l_foot`, `r_foot`) touches the ground"),
    "goal_pose": (
        "geometry_msgs/PoseStamped",
        "final pose of the middle of the feet, in the frame of `odom` or in `base_footprint`; answered on "
        "`footsteps/status`",
    ),
    "joy": (
        "sensor_msgs/Joy",
        "a gamepad: sticks (`joy_axes`) move the robot while a button (`joy_held`) is held; another button "
        "(`joy_stop`) stops it immediately",
    ),
    "simulator/paused": ("std_msgs/Bool", "whether simulated time is paused, for late subscribers"),
    "performing/state": (
        "std_msgs/String",
        "state of the performer, for late subscribers: WAITING, STAND, PERFORM, STOP, FALLEN, OFF",
    ),
    "reference_wrench/FOOT": (
        "geometry_msgs/WrenchStamped",
        "planned force and torque on each foot (`l_foot`, `r_foot`), about its sole, in the axes of `odom`",
    ),
    "walking/state": (
        "std_msgs/String",
        "state of the walker, for late subscribers: WAITING, STAND, WALK, STOP, FALLEN, OFF",
    ),
    "joint_gains": (
        "sensor_msgs/JointState",
        "gains of the command with the same stamp: position = kp [N m/rad], velocity = kd [N m s/rad]. A "
        "position with gains is a torque command: it passes the gate, but is neither interpolated nor "
        "limited; silence lowers the joints. After its first gains, a publisher sends gains with each command; an "
        "empty list: no joint has gains",
    ),
    "body_commands": (
        "sensor_msgs/JointState",
        "positions by another controller for joints that the policy does not drive; without this topic "
        "these joints are held",
    ),
    "policy/state": (
        "std_msgs/String",
        "state of the policy, for late subscribers: WAITING, STAND_IN, RUN, HANDOVER, CATCH, SIT, DAMP",
    ),
    "policy/terms": (
        "std_msgs/Float64MultiArray",
        "with subscribers only: the observation of the policy, scaled; one named dimension per term",
    ),
    "wrench/FOOT": (
        "geometry_msgs/WrenchStamped",
        "force and torque that the ground exerts on a foot (at rest: upward), about the origin of the frame in the "
        "header: `FOOT_sole` (also if empty), with the axes of its link and the origin in the middle of the sole, or a "
        "link of the leg. FOOT is a name under `feet` of the robot file (base: floating)",
    ),
    "/clock": ("rosgraph_msgs/Clock", "simulated time, with `stamp: sim` only"),
    "/tf": (
        "tf2_msgs/TFMessage",
        "the root link in `world` (simulator, `publish_tf`) or in `odom`, with `base_footprint` below it (walker), "
        "and the frames `FOOT_sole`; the segments of a person, `human/BODY` (human_motion); where ROS has tf2_msgs "
        "(the wheels do not)",
    ),
    "/tf_static": (
        "tf2_msgs/TFMessage",
        "the frames of REP 120 that are not links of the robot: `base_link`, `torso`, `gaze`, `l_wrist`, "
        "`l_gripper`, `l_ankle`, `l_sole` and the right side; where ROS has tf2_msgs",
    ),
    "simulator/set_state": (
        "sensor_msgs/JointState",
        "put joints, by name, to positions and velocities; a topic, because std_srvs has no service with data",
    ),
    "simulator/set_base": ("geometry_msgs/PoseStamped", "put the root link at a pose in the frame `world`, at rest"),
    "simulator/push": (
        "geometry_msgs/WrenchStamped",
        "push the link in `frame_id`, at its origin and in its axes, for `push_duration`",
    ),
    "robot_description": ("std_msgs/String", "the URDF, for late subscribers"),
    "markers": (
        "visualization_msgs/MarkerArray or geometry_msgs/PoseArray",
        "live markers [m] (`source` live): text or ns is the label, or the place in `live_labels`",
    ),
    "plates/plateN": (
        "geometry_msgs/WrenchStamped",
        "force on the person and torque about the origin of the plate frame, with z as the normal; the "
        "pose of the frame comes from /tf or `plate_frames`",
    ),
    "human/joint_states": (
        "sensor_msgs/JointState",
        "coordinates of the person, named as in its model [rad, m]; effort is NaN if plates and weight do "
        "not explain the motion. /diagnostics reports the delay of velocity and effort",
    ),
    "human/residual": (
        "geometry_msgs/WrenchStamped",
        "residual of markers, plates and masses: force and moment about the origin of the first segment",
    ),
    "human/points": (
        "visualization_msgs/MarkerArray",
        "joint centres of the person, ns is l_hip, r_wrist and so on: live markers for trajectory_streamer",
    ),
    "human/markers": (
        "visualization_msgs/MarkerArray",
        "with subscribers only: measured markers (hollow), fitted ones (full), errors, bones, forces on the feet",
    ),
    "dancer": ("visualization_msgs/MarkerArray", "the dancer as a stick figure next to the robot"),
    "clip/time": ("std_msgs/Float64", "time in the clip [s]"),
    "clip/duration": ("std_msgs/Float64", "length of the clip [s], for late subscribers"),
    "clip/seek": ("std_msgs/Float64", "seek to this time in the clip [s]"),
    "/diagnostics": (
        "diagnostic_msgs/DiagnosticArray",
        "once a second from each node, and immediately when a problem begins or ends: rates, times, ages, problems",
    ),
}
SERVICES = {
    "simulator/reset": "reset time, the neutral posture at rest, and the random number generators of the sensors",
    "simulator/pause": "std_srvs/SetBool: pause or resume simulated time",
    "simulator/step": "while paused: advance by `step_periods` (a live parameter) periods of the joint states",
    "robot_driver/enable": (
        "std_srvs/SetBool: switch power on, or resume after `robot_driver/stop`; false: come to rest and "
        "switch power off. A refusal lists its reasons"
    ),
    "robot_driver/stop": "come to rest and hold; commands are not followed until `robot_driver/enable`",
    "robot_driver/emergency_stop": "std_srvs/SetBool: stop by the drives alone, then switch power off; false releases",
    "robot_driver/clear_faults": "after the cause of a fault or emergency stop is gone: measure again, without power",
    "robot_driver/home": "in HOLD: drives with `homing` in the hardware file search for their zeros, one joint per "
    "group at a time; commands are followed only afterwards",
    "robot_driver/set_zero": "calibrate: set the present position of `zero_joints` to `zero_posture`; written next to "
    "the hardware file",
    "robot_driver/release_brake": "std_srvs/SetBool: release or engage the brake of `brake_joint`, without power",
    "tendon_driver/enable": "std_srvs/SetBool: switch power on, or follow commands again after `tendon_driver/stop`; "
    "false: hold the wires, engage the brakes and switch power off. A refusal lists its reasons",
    "tendon_driver/stop": "hold all wires; commands are not followed until `tendon_driver/enable`",
    "tendon_driver/emergency_stop": "std_srvs/SetBool: stop by the drives alone, then switch power off; false releases",
    "tendon_driver/clear_faults": "after the cause of a fault or stop is gone: measure again, without power",
    "tendon_controller/hold": "std_srvs/SetBool: hold all wires (true), or follow commands again (false)",
    "tendon_controller/relax": "reduce all tensions to 5 N; the robot sinks",
    "tendon_controller/tension_up": "raise the tensions, one winch after another in each group, then follow commands",
    "state_estimator/reset": "discard the estimate",
    "state_estimator/zero": "`source` tendons: calibrate, with the robot standing in `zero_posture`",
    "state_estimator/learn": (
        "std_srvs/SetBool, `source` tendons: correct a neural mapping with measurements, or freeze it"
    ),
    "human_motion/calibrate": (
        "record `calibration` seconds of any motion, and estimate body sizes and marker places from them"
    ),
    "whole_body_ik/resync": "resume from the present posture after a joint fault",
    "trajectory_streamer/play": "resume",
    "trajectory_streamer/pause": "hold the present frame",
    "trajectory_streamer/restart": "restart with the lead-in; with live markers: calibrate again",
    "whole_body_controller/start": "perform from the present position as soon as the robot stands; cancels a stop",
    "whole_body_controller/stop": "come to rest with the next posture on both feet; stay there until `start`",
    "whole_body_controller/emergency_stop": "same as `stop`",
    "whole_body_controller/reset": "restart: wait until the robot stands at rest on its feet",
    "whole_body_controller/play": "same as `start`",
    "whole_body_controller/pause": "same as `stop`",
    "whole_body_controller/restart": "come to rest, step to the first posture, and perform from the beginning",
    "whole_body_streamer/play": "resume",
    "whole_body_streamer/pause": "hold the present frame",
    "whole_body_streamer/restart": "step to the beginning of the clip, and continue",
    "trajectory_streamer/calibrate": "calibrate live markers again; the targets are held meanwhile",
    "trajectory_streamer/resync": "resume from the present posture after a joint fault; with `solve`",
    "policy/start": "move the robot to the first posture, then run the policy",
    "policy/stop": "lower the robot: stiffness fades, damping grows",
    "policy/switch": "hand over to the other policy (`second`) within 0.3 s, by torques",
    "walker/stop": "come to rest with the next step, and stay there until `walker/stand`",
    "walker/emergency_stop": "come to rest as fast as possible, within two steps, and stay there until `walker/stand`",
    "walker/stand": "stand, ready to walk again after a stop",
    "walker/resync": "same as `walker/reset`, with the service name of other nodes: after a joint fault",
    "walker/reset": "restart, such as after a fall: stand when the robot rests on its feet; odometry restarts at zero",
    "NODE/change_state": "lifecycle transitions of every node (`ros2 lifecycle set`)",
}
ACTIONS = {
    "follow_joint_trajectory": (
        "control_msgs/FollowJointTrajectory",
        "action of robot_driver, if ROS has control_msgs (the wheels do not): a trajectory as on "
        "`joint_trajectory`, with tolerances and an outcome ([hardware.md](hardware.md#trajectories))",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="report outdated files; write nothing")


def run(args: argparse.Namespace) -> int:
    require_ros()
    if not (share_dir() / "setup.py").is_file():
        raise EnvironmentProblem("docs are generated in a source checkout; this is an installed copy")
    stale = []
    for relative, text in generated_pages().items():
        path = share_dir() / relative
        if path.exists() and path.read_text() == text:
            continue
        stale.append(relative)
        if not args.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        console.print(f"{'out of date' if args.check else 'written'}: {relative}")
    return 1 if stale and args.check else 0


def generated_pages() -> dict[Path, str]:
    """Return path below the source tree -> text."""
    from humanoid_control.nodes.base.parameters import default_yaml

    pages = {Path("docs/parameters.md"): _parameters_page(), Path("docs/topics.md"): _topics_page()}
    for name, spec in NODES.items():
        pages[Path("config") / f"{name}.yaml"] = default_yaml(name, spec.parameter_class())
    return pages


def _parameters_page() -> str:
    from humanoid_control.nodes.base.parameters import docs_table

    parts = [
        "# Parameters\n\nGenerated by `humanoid docs` from the parameter dataclass of each node. Set them with "
        "`humanoid up STACK --set node.parameter=value`, in a parameter file (defaults: `config/`), or, those marked "
        "live, with `ros2 param set`.\n"
    ]
    for name, spec in NODES.items():
        parts.append(f"## {name}\n\n{spec.task[0].upper()}{spec.task[1:]}.\n\n{docs_table(spec.parameter_class())}\n")
    parts.append(f"## Observation terms of a policy\n\n{_terms_table()}\n")
    return "\n".join(parts)


def _terms_table() -> str:
    from humanoid_control.policy.terms import ACTIONS as PER_ACTION
    from humanoid_control.policy.terms import JOINTS, KINDS, size_of

    sizes: dict[int | str, str] = {JOINTS: "one per joint", PER_ACTION: "one per action"}
    rows = [
        "Each `term` of a policy description ([policy.md](policy.md#a-description-of-your-own)) has one of these "
        "names. Unit and frame are those before the scale of the term. Where the table says any, `size` of the term is "
        "the count. The source is `KINDS` in `humanoid_control/policy/terms.py`.\n",
        "| term | numbers | unit | frame | other names in files |",
        "|---|---|---|---|---|",
    ]
    for name, kind in KINDS.items():
        size = sizes.get(kind.size) or kind.size or ("two per joint" if size_of(name, 1, 1) else "any")
        names = ", ".join(f"`{other}`" for other in kind.names if other != name)
        refused = f"; refused: {kind.refused}" if kind.refused else ""
        rows.append(f"| `{name}` | {size} | {kind.unit} | {kind.frame} | {names}{refused} |")
    return "\n".join(rows)


def _topics_page() -> str:
    rows = ["| topic | type | content | published by | read by |", "|---|---|---|---|---|"]
    for topic, (kind, content) in TOPICS.items():
        out = ", ".join(n for n, s in NODES.items() if topic in s.publishes or topic == "/diagnostics")
        into = ", ".join(n for n, s in NODES.items() if topic in s.subscribes)
        rows.append(f"| `{topic}` | {kind} | {content} | {out} | {into} |")
    services = ["| service | action |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in SERVICES.items())]
    actions = ["| action | type | content |", "|---|---|---|"]
    actions += [f"| `{name}` | {kind} | {content} |" for name, (kind, content) in ACTIONS.items()]
    stacks = ["| stack | nodes | task |", "|---|---|---|"]
    stacks += [f"| {s.name} | {', '.join(n.executable for n in s.nodes)} | {s.task} |" for s in STACKS.values()]
    return "\n".join(
        [
            "# Topics, services, actions, stacks\n",
            "Generated by `humanoid docs`. Names without a slash are relative: namespaces separate",
            "robots. All messages are standard.\n",
            *rows,
            "\n## Services\n",
            *services,
            "\n## Fields that qualify values\n",
            "These fields give the frame and time of the values of a message, and mark unmeasured values.\n",
            *qualifying_fields_table(),
            "\n## Actions\n",
            *actions,
            "\n## Stacks\n\n`humanoid up NAME`, or `ros2 launch humanoid_control NAME.launch.py`.\n",
            *stacks,
            "",
        ]
    )
