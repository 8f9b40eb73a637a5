"""A small skeleton in ASF, motions for it, and its forward kinematics by a plain program."""

from __future__ import annotations

from humanoid_control.mocap.formats.asf_amc import parse_amc

# Bones in another order than the hierarchy, dof and axis orders of every kind, a length unit of 1/0.45 inch.
ASF = """# comment
:version 1.10
:name TEST
:units
  mass 1.0
  length 0.45
  angle deg
:root
   order TZ TX TY RY RZ RX
   axis XZY
   position 1 2 3
   orientation 10 20 -30
:bonedata
  begin
     id 2
     name shin
     direction 0 -2 0
     length 14.0
     axis 15 -25 35 ZXY
    dof rz rx
    limits (-10 170)
           (-10 170)
  end
  begin
     id 1
     name thigh
     direction 0.34202 -0.939693 0
     length 7.0
     axis 0 0 20 XYZ
    dof rx ry rz
  end
  begin
     id 3
     name foot
     direction 0 0 1
     length 2.0
     axis 0 0 0 XYZ
  end
  begin
     id 4
     name head
     direction 0 1 0
     length 5.0
     axis 5 6 7 YZX
    dof ry
  end
:hierarchy
  begin
    root head thigh
    thigh shin
    shin foot
  end
"""


ORDER = {"root": 6, "thigh": 3, "shin": 2, "head": 1}


def amc(frames, head=":FULLY-SPECIFIED\n:DEGREES\n"):
    lines = []
    for number, frame in enumerate(frames, start=1):
        lines += [str(number), *(f"{bone} {' '.join(str(v) for v in values)}" for bone, values in frame.items())]
    return ("#!OML:ASF x\n" + head + "\n".join(lines) + "\n").encode()


def parsed(frames, asf=ASF, **more):
    return parse_amc(amc(frames), "x.amc", asf.encode(), "x.asf", 120.0, **more)


def still(n=3):
    return [{bone: [0.0] * k for bone, k in ORDER.items()}] * n
