"""What MoveIt does with a configuration, from the public sources of srdfdom and moveit2, as far as tests need it.

`SrdfModel` follows srdfdom's model.cpp (what it skips with an error is an error here), `joints_of` RobotModel's
addJointModelGroup, `is_chain` JointModelGroup, and the keys those of the parameters that move_group declares.
"""

import math
import xml.etree.ElementTree as ET

KINEMATICS = {  # kinematics_parameters.yaml and kdl_kinematics_parameters.yaml
    "kinematics_solver": str,
    "kinematics_solver_search_resolution": float,
    "kinematics_solver_timeout": float,
    "epsilon": float,
    "max_solver_iterations": int,
    "orientation_vs_position": float,
    "position_only_ik": bool,
}
LIMITS = {  # robot_model_loader.cpp
    "has_velocity_limits": bool,
    "max_velocity": float,
    "has_acceleration_limits": bool,
    "max_acceleration": float,
    "has_jerk_limits": bool,
    "max_jerk": float,
    "min_position": float,
    "max_position": float,
}
CONTROLLER = {"type": str, "action_ns": str, "default": bool, "joints": list}  # moveit_simple_controller_manager.cpp
REASONS = {"Never", "Default", "Adjacent", "Always", "User"}


class Urdf:
    """Tree of a URDF: parent joint and parent link of each link."""

    def __init__(self, text: str) -> None:
        root = ET.fromstring(text)
        self.name = root.attrib["name"]
        self.links = [e.attrib["name"] for e in root.findall("link")]
        self.joints = {e.attrib["name"]: e for e in root.findall("joint")}
        self.solid = {e.attrib["name"] for e in root.findall("link") if e.find("collision") is not None}
        self.parent = {
            e.find("child").attrib["link"]: (name, e.find("parent").attrib["link"]) for name, e in self.joints.items()
        }

    def up(self, link: str):
        """Links from a link to the root."""
        yield link
        while link in self.parent:
            link = self.parent[link][1]
            yield link


class SrdfModel:
    """srdf::Model; an assertion where it logs an error or a warning.

    Attributes:
        groups: name -> dict of links, joints, chains, subgroups.
        states: (posture, group) -> joint -> value.
    """

    def __init__(self, urdf: Urdf, text: str) -> None:
        root = ET.fromstring(text)
        assert root.tag == "robot" and root.attrib["name"] == urdf.name, "not specified for the same robot"
        self.urdf, self.groups, self.states = urdf, {}, {}
        self.virtual = [e.attrib for e in root.findall("virtual_joint")]
        for v in self.virtual:
            assert v["child_link"] in urdf.links and v["type"] in ("planar", "floating", "fixed") and v["parent_frame"]
        for e in root.findall("group"):
            self._group(e)
        for e in root.findall("group_state"):
            assert e.attrib["group"] in self.groups, "that group is not known"
            values = {j.attrib["name"]: float(j.attrib["value"]) for j in e.findall("joint")}
            assert values.keys() <= urdf.joints.keys() and all(map(math.isfinite, values.values()))
            self.states[e.attrib["name"], e.attrib["group"]] = values
        self.end_effectors = [e.attrib for e in root.findall("end_effector")]
        for e in self.end_effectors:
            assert e["group"] in self.groups and e["parent_link"] in urdf.links
        self.disabled = [e.attrib for e in root.findall("disable_collisions")]
        for e in self.disabled:
            assert {e["link1"], e["link2"]} <= set(urdf.links) and e["reason"] in REASONS
        known = {"virtual_joint", "group", "group_state", "end_effector", "disable_collisions"}
        assert {e.tag for e in root} <= known

    def _group(self, e: ET.Element) -> None:
        links = [x.attrib["name"] for x in e.findall("link")]
        joints = [x.attrib["name"] for x in e.findall("joint")]
        chains = [(x.attrib["base_link"], x.attrib["tip_link"]) for x in e.findall("chain")]
        subgroups = [x.attrib["name"] for x in e.findall("group")]
        assert set(links) <= set(self.urdf.links) and set(joints) <= self.urdf.joints.keys()
        for base, tip in chains:
            assert {base, tip} <= set(self.urdf.links)
            assert set(self.urdf.up(base)) & set(self.urdf.up(tip)), "do not form a chain"
        assert links or joints or chains or subgroups, "is empty"
        assert set(subgroups) <= self.groups.keys(), "unsatisfied subgroups"
        self.groups[e.attrib["name"]] = {"links": links, "joints": joints, "chains": chains, "subgroups": subgroups}

    def joints_of(self, group: str) -> set[str]:
        """All joints of a group, fixed ones too."""
        g, out = self.groups[group], set()
        for base, tip in g["chains"]:
            path = [*self.urdf.up(tip)]
            assert base in path, "a solver of a chain needs one that descends"
            out |= {self.urdf.parent[link][0] for link in path[: path.index(base)]}
        out |= set(g["joints"]) | {self.urdf.parent[link][0] for link in g["links"]}
        for sub in g["subgroups"]:
            out |= self.joints_of(sub)
        assert out, "must have at least one valid joint"
        return out

    def moving(self, group: str) -> set[str]:
        """Joints of a group that are neither fixed nor mimic others."""
        joints = self.urdf.joints
        return {
            j for j in self.joints_of(group) if joints[j].attrib["type"] != "fixed" and joints[j].find("mimic") is None
        }

    def links_of(self, group: str) -> set[str]:
        """Child links of the joints of a group."""
        return {self.urdf.joints[j].find("child").attrib["link"] for j in self.joints_of(group)}


def check_keys(row: dict, known: dict) -> None:
    """Raise where a parameter has another name or type than the declared one."""
    for key, value in row.items():
        assert key in known, f"{key} is no parameter"
        assert type(value) is known[key], f"{key}: {value!r}"
