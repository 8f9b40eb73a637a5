"""The link between two hosts does what it is told, before anything is judged by it."""

import sys
import time

import pytest

from evidence.studies.hosts.link import ADDRESSES, TwoHosts, why_not
from test.places import domain

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

ECHO = "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.bind(('',5005));print('up',flush=True)\n"
ECHO += "while True:\n d,a=s.recvfrom(2000);s.sendto(d,a)"
ASK = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.3)
for k in range(int(sys.argv[2])):
    t = time.monotonic(); s.sendto(b'%d' % k, (sys.argv[1], 5005)); got = None
    try:
        while got != b'%d' % k:
            got = s.recv(2000)
    except TimeoutError:
        pass
    print(time.monotonic() - t if got else -1.0, flush=True)
"""


def asked(hosts, count):
    """Round trips from host 0 to host 1 and back [s]; -1 where nothing came back."""
    asking = hosts.start(0, [sys.executable, "-c", ASK, ADDRESSES[1], str(count)], stdout=-1, text=True)
    return [float(x) for x in asking.communicate(timeout=60)[0].split()]


def test_frames_are_carried_delayed_lost_and_cut():
    with TwoHosts(domain("nodes")) as hosts:
        echo = hosts.start(1, [sys.executable, "-u", "-c", ECHO], stdout=-1, text=True)
        assert echo.stdout.readline().strip() == "up"
        quick = asked(hosts, 10)
        assert min(quick) > 0 and sorted(quick)[5] < 0.02
        hosts.faults(delay=0.05, jitter=0.005)
        slow = asked(hosts, 10)
        assert min(slow) > 0.089 and sorted(slow)[5] < 0.13
        hosts.faults(delay=0.0, jitter=0.0, loss=0.5)
        assert 2 <= sum(x < 0 for x in asked(hosts, 12)) <= 12
        hosts.faults(loss=0.0, cut=True)
        assert asked(hosts, 2) == [-1.0, -1.0]
        hosts.faults(cut=False)
        begin = time.monotonic()
        while not (back := [x for x in asked(hosts, 1) if x > 0]):
            assert time.monotonic() - begin < 5.0
        assert back
