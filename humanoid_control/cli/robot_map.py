"""`humanoid robots map`: the robot file of an unknown URDF, guessed and written beside it."""

from __future__ import annotations

from humanoid_control.cli.output import console, print_json, table, warn
from humanoid_control.errors import ConfigError
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.robots.mapping_file import map_urdf


def write_map(robot: str | None, as_json: bool) -> int:
    """Guess the robot file of a URDF, write it, and print what was found; the exit code."""
    if robot is None:
        raise ConfigError("give the path of the URDF: humanoid robots map my_robot.urdf")
    path, mapping = map_urdf(urdf_path(robot))
    xyz = {name: [round(float(v), 4) + 0.0 for v in p.xyz] for name, p in mapping.points.items()}
    if as_json:
        points = [
            {"point": name, "link": p.link, "xyz": xyz[name], "found": p.how, "guess": p.weak}
            for name, p in mapping.points.items()
        ]
        print_json({"file": str(path), "points": points, "imitation_joints": mapping.imitation_joints})
        return 0
    columns = ["point", "link", "xyz m", "found", "guess"]
    cells = [
        [name, p.link, " ".join(f"{v:g}" for v in xyz[name]), p.how, "guess" if p.weak else ""]
        for name, p in mapping.points.items()
    ]
    table("tracked points", columns, cells)
    console.print(f"{len(mapping.imitation_joints)} joints: {', '.join(mapping.imitation_joints)}")
    if any(p.weak for p in mapping.points.values()):
        warn("points marked 'guess' follow human proportions, not the robot's structure: correct them")
    console.print(f"written: {path}")
    console.print(f"check it, then try: humanoid retarget dance --robot {robot}")
    return 0
