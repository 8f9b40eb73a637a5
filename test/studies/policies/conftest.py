"""The G1 of the tests of policies."""

from test.policy.conftest import g1 as g1
from test.policy.conftest import g1_urdf as g1_urdf
