"""Files without which two nodes do not start: winches of a tendon driver, and a public policy with its robot."""

from importlib.util import find_spec

from humanoid_control.paths import test_data

WINCHES = """schema: humanoid_hardware/1
robot: kengoro_upper
rate: 50
buses:
  left: {transport: loopback, watchdog: 10.0}
tendons:
  l_biceps: {bus: left, id: 1, ratio: 2.0e-3, zero: 0.30, sensor: true, inertia: 0.01}
"""


def winch_parameters(folder):
    """Parameters of `tendon_driver`, with a hardware file that is written here."""
    path = folder / "winches.hardware.yaml"
    path.write_text(WINCHES)
    return "robot:=kengoro_upper", f"hardware:={path}"


def policy_parameters():
    """Parameters of `policy`, or None where there is no public policy, or nothing that runs it."""
    urdf, network = test_data("policies/twist2/g1_29dof.urdf"), test_data("policies/holosoma/ppo_g1_29dof.onnx")
    if urdf is None or network is None or find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return None
    return f"robot:={urdf}", f"policy:={network}"
