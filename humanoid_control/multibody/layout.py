"""Offsets in the flat arrays of the compiled recursions.

Row 0 of the work array is the environment, row i + 1 body i. Spatial quantities are angular first, in body axes at the
body origin O (Schwienbacher 2014, eq. (2.32)).
"""

from __future__ import annotations

# Integers of a body.
PARENT = 0  # work row of the parent
MOTION = 1  # REVOLUTE, PRISMATIC, FREE, FREE_EULER
COUPLING = 2  # function from coordinates to the angle
NC = 3  # number of coordinates
COORD = 4  # .. 9 velocity coordinates
QPOS = 10  # first entry in q of a free joint
PAR = 11  # offset of the coupling's parameters
SPIN = 12  # 1: a massless leaf, symmetric about its axis; its angle moves no inertia
GROUP = 13  # node of the body if it is a group, else -1
LEVEL = 14  # 1: the parent is a member of the same group
GROUP_JACOBIAN = 15  # offset of the body's Jacobian in the group's coordinates
LOCAL = 16  # .. 21 the coordinates as columns of the group
NI = 22

MAX_COORDINATES = 6

REVOLUTE, PRISMATIC, FREE, FREE_EULER = 0, 1, 2, 3

# Constant real numbers of a body.
TURN_0 = 0  # .. 8 constant rotation from the parent to the joint, A_k'p, by rows
ORIGIN_0 = 9  # .. 11 joint's origin in the parent
MASS = 12
FIRST_MOMENT = 13  # .. 15 mass times centre of gravity
BODY_INERTIA = 16  # .. 21 inertia about O: xx xy xz yy yz zz
PARENT_INERTIA = 22  # .. 27 inertia in the parent's frame, of a spinning body
NF = 28

# Real numbers of a body, written by the recursions.
TURN = 0  # .. 8 from parent axes to body axes, A_kp, by rows
ORIGIN = 9  # .. 11 origin in the parent, r_PO
OMEGA = 12  # .. 14
VEL = 15  # .. 17
GRAVITY = 18  # .. 20
DRIFT = 21  # .. 26 velocity-dependent acceleration, eq. (2.37)
ROT = 27  # .. 35 rotation from the body to the environment, by rows
POS = 36  # .. 38 origin in the environment
GRAD = 39  # .. 44 derivative of the angle by the coordinates
RATE = 45  # rate of the angle
BIAS = 46  # acceleration of the angle at constant coordinate rates
INERTIA = 47  # .. 52 articulated inertia, angular block
CROSS = 53  # .. 61 angular by linear block
LINEAR = 62  # .. 67 linear block
FORCE = 68  # .. 73 impressed, gyroscopic and child forces
UNIT_FORCE = 74  # .. 79 force for a unit acceleration of the joint, M J
JOINT_INERTIA = 80  # J^T M J and added inertia
FREE_ACCELERATION = 81  # of the joint if the parent does not accelerate
ACC = 82  # .. 87 acceleration
GROUP_TURN = 88  # .. 96 rotation from the group's frame
GROUP_ORIGIN = 97  # .. 99 origin in the group's frame
GROUP_DRIFT = 100  # .. 105 velocity-dependent acceleration relative to the group's frame
NW = 106

# Nodes, one per recursion step.
KIND = 0  # SINGLE, ROTOR, GEARED, SUBSYSTEM
FIRST = 1  # first entry in the list of members
LAST = 2  # one past the last
COLUMNS = 3  # first entry in the list of the group's coordinates
NCOLUMNS = 4
OUTSIDE = 5  # work row of the outside parent
WORK = 6  # offset in the groups' work array
NN = 7

SINGLE = 0  # a body with one own coordinate
ROTOR = 1  # a spinning leaf with one own coordinate
GEARED = 2  # a body with one coordinate, and spinning leaves on its parent that share it
SUBSYSTEM = 3  # anything else: shared coordinates, free joints
