"""The vendor's simulator (Python version) without its window: `python vendor_simulator.py SIMULATOR SDK DOMAIN SCENE`.

SIMULATOR and SDK are the folders of unitree_mujoco and unitree_sdk2_python. Bridge, messages, robot and the elastic
band that carries it are the vendor's; the loop is that of its `unitree_mujoco.py`. A line on standard input ends it.
"""

import sys
import threading
import time
import types
from pathlib import Path

STEP = 0.005  # [s], the default of the vendor's


def main(simulator, sdk, domain, scene):
    root = Path(simulator)
    sys.path[:0] = [str(root / "simulate_python"), sdk]
    sys.modules["config"] = types.SimpleNamespace(ROBOT="g1", SIMULATE_DT=STEP)
    sys.modules.setdefault("pygame", types.ModuleType("pygame"))  # of a joystick, which is not used
    import mujoco
    from unitree_sdk2py.core.channel import ChannelFactoryInitialize
    from unitree_sdk2py_bridge import ElasticBand, UnitreeSdk2Bridge

    model = mujoco.MjModel.from_xml_path(str(root / "unitree_robots" / "g1" / scene))
    data = mujoco.MjData(model)
    model.opt.timestep = STEP
    mujoco.mj_forward(model, data)
    ChannelFactoryInitialize(int(domain), "lo")
    UnitreeSdk2Bridge(model, data)
    band, torso = ElasticBand(), model.body("torso_link").id
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    print("ready", flush=True)
    due = time.perf_counter()
    while not ended.is_set():
        data.xfrc_applied[torso, :3] = band.Advance(data.qpos[:3], data.qvel[:3])
        mujoco.mj_step(model, data)
        due = max(due + STEP, time.perf_counter() - 0.05)
        time.sleep(max(0.0, due - time.perf_counter()))
    import os

    os._exit(0)  # its threads run for ever


if __name__ == "__main__":
    main(*sys.argv[1:])
