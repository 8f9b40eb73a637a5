"""Retarget many clips to several robots, with a progress bar; what is done already is skipped when it is run again.

python examples/many_clips.py                                        built-in dances, two robots, into trajectories/
python examples/many_clips.py clips/*.bvh --robot hrp2,wabian2,my_robot.urdf -o out
"""

import argparse
from pathlib import Path

from rich.progress import Progress

from humanoid_control.errors import HumanoidError
from humanoid_control.mocap import clean, find_body_points, load_clip, synthetic_dance
from humanoid_control.retargeting import retarget_clip, scale_to_robot
from humanoid_control.robots import load_robots

parser = argparse.ArgumentParser()
parser.add_argument("clips", nargs="*", type=Path, help="files of any format (default: three built-in dances)")
parser.add_argument("--robot", default="hrp2,wabian2", help="names, or paths of URDF files, separated by commas")
parser.add_argument("-o", "--output", default="trajectories", type=Path, help="folder")
args = parser.parse_args()

clips = {path.stem: path for path in args.clips} or {f"dance_{seed}": seed for seed in (1, 2, 3)}
robots = load_robots(args.robot.split(","), "fixed")
args.output.mkdir(parents=True, exist_ok=True)
failed = []
with Progress() as progress:
    task = progress.add_task("clips", total=len(clips) * len(robots))
    for name, source in clips.items():
        outputs = {robot: args.output / f"{name}_{robot.name}.csv" for robot in robots}
        missing = [robot for robot in robots if not outputs[robot].exists()]
        progress.advance(task, len(robots) - len(missing))
        if not missing:
            continue
        try:
            clip, _ = clean(synthetic_dance(seed=source) if isinstance(source, int) else load_clip(source))
            body = find_body_points(clip)
        except HumanoidError as error:  # one bad file does not stop the others
            failed.append(f"{name}: {error}")
            progress.advance(task, len(missing))
            continue
        for robot in missing:
            try:
                trajectory = retarget_clip(scale_to_robot(body, robot), robot)
                trajectory.write_csv(outputs[robot])  # appears whole or not at all, so an interrupted run can go on
                error = 100 * trajectory.errors.mean()
                progress.console.print(f"{name} by {robot.name}: {error:.1f} cm from the targets in the mean")
            except HumanoidError as error:
                failed.append(f"{name} by {robot.name}: {error}")
            progress.advance(task)
for text in failed:
    print("not done:", text)
