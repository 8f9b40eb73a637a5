"""CiA 402 drives for tests: durand answers SDO, NMT, PDO, SYNC, emergencies and heartbeats, the profile is added here.

The tables of the profile are those of the library canopen, not ours. `python -m test.hardware.can.durand_drives` runs
drives in a process of their own.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import sys
import threading
import time

import can
from canopen.profiles.p402 import State402
from durand import Array, MinimalNode, Record, Variable, set_scheduler
from durand.datatypes import DatatypeEnum as DT
from durand.network import NetworkABC
from durand.scheduler import AbstractScheduler
from durand.services.nmt import StateEnum

COUNTS, RATED, MODES = 4096, 2000, 0x3A0  # of an encoder; [mN m]; homing and cyclic modes
VENDOR, PRODUCT, REVISION = 0x9A, 0x30924, 0x10
BY_ITSELF = ("START", "NOT READY TO SWITCH ON", "FAULT REACTION ACTIVE")
BY_WORD = {(a, word): b for (a, b), word in State402.TRANSITIONTABLE.items() if a not in BY_ITSELF}
RISING = 0x80


class Hub(AbstractScheduler):
    """One bus and one thread for many nodes of durand, and their clock."""

    def __init__(self, bus, period=0.002):
        self.bus, self.period = bus, period
        self.callbacks, self.drives = {}, []
        self._lock, self._heap, self._number = threading.RLock(), [], itertools.count()
        self.ended = False
        set_scheduler(self)
        self._thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self.ended = True
        self._thread.join(5)
        self.bus.shutdown()

    @property
    def lock(self):
        return self._lock

    def add(self, delay, callback, args=(), kwargs=None):
        entry = [time.monotonic() + delay, next(self._number), callback, args, kwargs or {}]
        heapq.heappush(self._heap, entry)
        return entry

    def cancel(self, entry):
        entry[2] = None

    def run(self):
        while not self.ended:
            due = self._heap[0][0] - time.monotonic() if self._heap else 0.01
            frame = self.bus.recv(min(max(due, 0.0), 0.01))
            with self._lock:
                while frame is not None:  # all of them before a watchdog judges: a heartbeat may be queued
                    self.receive(frame)
                    frame = self.bus.recv(0)
                now = time.monotonic()
                while self._heap and self._heap[0][0] <= now:
                    _, _, callback, args, kwargs = heapq.heappop(self._heap)
                    if callback is not None:
                        callback(*args, **kwargs)
                for drive in self.drives:
                    drive.watch(now)

    def receive(self, frame):
        if frame.is_error_frame:
            return
        for network in list(self.callbacks.get(frame.arbitration_id, ())):
            network.callbacks[frame.arbitration_id](frame.arbitration_id, bytes(frame.data))
        for drive in self.drives:
            drive.saw(frame)


class Network(NetworkABC):
    """What one node of durand sees of the hub."""

    def __init__(self, hub):
        self.hub, self.callbacks, self.alive = hub, {}, True

    def add_subscription(self, cob_id, callback):
        self.callbacks[cob_id] = callback
        there = self.hub.callbacks.setdefault(cob_id, [])
        if self not in there:
            there.append(self)

    def remove_subscription(self, cob_id):
        self.callbacks.pop(cob_id, None)
        if self in self.hub.callbacks.get(cob_id, ()):
            self.hub.callbacks[cob_id].remove(self)

    def send(self, cob_id, msg):
        if self.alive and not self.hub.ended:
            self.hub.bus.send(can.Message(arbitration_id=cob_id, data=msg, is_extended_id=False))

    def end(self):
        self.alive = False
        for cob_id in list(self.callbacks):
            self.remove_subscription(cob_id)


class Machine:
    """CiA 402 of one drive on an object dictionary that `get` and `put` reach; one step at each SYNC."""

    def __init__(self, get, put, emergency, get_sub=None):
        self.get, self.put, self.emergency = get, put, emergency
        self.get_sub = get_sub
        self.state, self.word, self.position = "SWITCH ON DISABLED", 0, 0.0
        self.stuck, self.cause, self.history, self.heard = False, 0, [], None
        self.voltage = True
        self.switch, self.stop, self.homing, self.found, self.back = None, None, False, 0, False
        self.show()

    def show(self):
        _, bits = State402.SW_MASK[self.state]
        self.put(0x6041, bits | (0x10 if self.voltage else 0) | 0x200 | self.found)

    def enter(self, state):
        if state != self.state:
            self.history.append(state)
            self.state = state
            self.show()

    def control(self, word):
        if word & ~self.word & 0x10 and self.state == "OPERATION ENABLED" and self.get(0x6060) == 6:
            self.homing, self.found, self.back = True, 0, False
            self.show()
        if self.homing and not word & 0x10:
            self.homing = False
        rising, self.word = word & ~self.word & RISING, word
        if self.state == "FAULT":
            if rising and not self.cause:
                self.put(0x603F, 0)
                self.enter("SWITCH ON DISABLED")
                self.emergency(0)
            return
        if not word & 0x02:
            command = State402.CW_DISABLE_VOLTAGE
        elif not word & 0x04:
            command = State402.CW_QUICK_STOP
        else:
            command = word & 0x0F
        after = BY_WORD.get((self.state, command))
        if command == State402.CW_QUICK_STOP and self.state in ("READY TO SWITCH ON", "SWITCHED ON"):
            after = "SWITCH ON DISABLED"
        if after:
            self.enter(after)

    def step(self, period):
        """One period of motion."""
        on = self.state == "OPERATION ENABLED"
        mode, target = self.get(0x6060), self.get(0x607A)
        self.put(0x6061, mode)
        before = self.position
        if on and mode == 6:
            self.look_for_zero(period)
        if on and not self.stuck:
            if mode == 8:
                self.position = float(target)
            elif mode == 9:
                self.position += self.get(0x60FF) * period
        if on and mode == 8 and abs(target - self.position) > self.get(0x6065):
            self.fail(0x8611)
        self.put(0x6064, round(self.position))
        self.put(0x606C, round((self.position - before) / period))
        self.put(0x6077, self.get(0x6071) if on and mode == 10 else (100 if on else 0))

    def look_for_zero(self, period):
        """Mode 6: 17 at the edge of the lower limit switch, -4 at a hard stop below, by the most torque."""
        if not self.homing:
            return
        method, speeds = self.get(0x6098), (self.get_sub(0x6099, 1), self.get_sub(0x6099, 2))
        if method == 17:
            if self.switch is None:  # an end without a switch: the drive gives up
                self.end_homing(0x2000)
                return
            closed = self.position <= self.switch
            self.position += (speeds[1] if self.back else -speeds[0]) * period
            if self.back and not closed:
                self.found_zero()
            self.back = self.back or closed
        else:
            self.position = max(self.position - speeds[0] * period, self.stop)
            if self.position == self.stop:
                self.pressed = self.get(0x6072)
                self.found_zero()

    def found_zero(self):
        self.shift = self.position  # where it truly is when it reads 0
        self.position = float(self.get(0x607C))
        self.end_homing(0x1400)

    def end_homing(self, bits):
        self.homing, self.found = False, bits
        self.show()

    def fail(self, code, silent=False, stays=False):
        """Fault; `silent`: without an emergency message. `stays`: its cause does not go away."""
        self.cause = code if stays else 0
        self.put(0x603F, code)
        self.enter("FAULT")
        if not silent:
            self.emergency(code)

    def lost(self):
        """The heartbeat of the controller ceased: object 0x6007 says what happens."""
        action = self.get(0x6007)
        if action == 1:
            self.fail(0x8130)
        elif self.state == "OPERATION ENABLED":
            self.enter({2: "SWITCH ON DISABLED", 3: "QUICK STOP ACTIVE"}.get(action, self.state))


class Drive:
    """One drive on a hub."""

    def __init__(self, hub, id, identity=(VENDOR, PRODUCT, REVISION, 0), without=(), start=0):
        self.hub, self.id, self.identity, self.without = hub, id, identity, without
        self.deaf = False
        with hub.lock:
            self.boot(start)
            hub.drives.append(self)

    def boot(self, position=0):
        """Switch the supply on."""
        self.network = Network(self.hub)
        self.node = MinimalNode(self.network, self.id)
        od = self.od = self.node.object_dictionary
        for k, value in enumerate((*self.identity, 1000 + self.id)[:3] + (self.identity[3] or 1000 + self.id,), 1):
            od.write(0x1018, k, value)
        od.write(0x1000, 0, 402)
        for index, (kind, access, value) in OBJECTS.items():
            if index not in self.without:
                od[index] = Variable(kind, access, value)
        for index, parts in RECORDS.items():
            if index not in self.without:
                record = Record(name=f"{index:X}")
                for sub, (kind, value) in parts.items():
                    record[sub] = Variable(kind, "rw", value)
                od[index] = record
        if 0x1016 not in self.without:
            od[0x1016] = Array(Variable(DT.UNSIGNED32, "rw", 0), 1)
        self.machine = Machine(
            self._get,
            self._put,
            lambda code: self.node.emcy.set(code, 1 if code else 0),
            lambda index, sub: self.od.read(index, sub),
        )
        self.machine.position = float(position)
        self._put(0x6064, position)
        od.download_callbacks[(0x6040, 0)].add(self.machine.control)

    def _get(self, index):
        return self.od.read(index, 0) if index not in self.without else 2**31 - 1

    def _put(self, index, value):
        if self.od.read(index, 0) != value or index == 0x6041:
            self.od.write(index, 0, value)

    def saw(self, frame):
        if not self.network.alive:
            return
        if frame.arbitration_id == 0x80 and self.node.nmt.state == StateEnum.OPERATIONAL:
            self.machine.step(self.hub.period)
        elif frame.arbitration_id == 0x700 + (self.watchdog() >> 16) and not self.deaf:
            self.machine.heard = time.monotonic()

    def watchdog(self):
        return self.od.read(0x1016, 1) if 0x1016 not in self.without else 0

    def watch(self, now):
        heard, time_ms = self.machine.heard, self.watchdog() & 0xFFFF
        if time_ms and heard is not None and now - heard > time_ms / 1000:
            self.machine.heard = None
            self.machine.lost()

    # -- what tests do to it

    def fail(self, code, **how):
        with self.hub.lock:
            self.machine.fail(code, **how)

    def restart(self):
        """The supply was gone for a moment."""
        with self.hub.lock:
            self.network.end()
            self.boot(round(self.machine.position))

    def die(self):
        with self.hub.lock:
            self.network.end()

    def silence_heartbeat(self):
        with self.hub.lock:
            self.od.write(0x1017, 0, 0)

    def leave_operational(self):
        with self.hub.lock:
            self.node.nmt.set_state(StateEnum.PRE_OPERATIONAL)


OBJECTS = {
    0x6007: (DT.INTEGER16, "rw", 1), 0x603F: (DT.UNSIGNED16, "ro", 0), 0x6040: (DT.UNSIGNED16, "rw", 0),
    0x6041: (DT.UNSIGNED16, "ro", 0), 0x605A: (DT.INTEGER16, "rw", 6), 0x605C: (DT.INTEGER16, "rw", 1),
    0x605E: (DT.INTEGER16, "rw", 2), 0x6060: (DT.INTEGER8, "rw", 0), 0x6061: (DT.INTEGER8, "ro", 0),
    0x6064: (DT.INTEGER32, "ro", 0), 0x6065: (DT.UNSIGNED32, "rw", 2**31 - 1), 0x606C: (DT.INTEGER32, "ro", 0),
    0x6071: (DT.INTEGER16, "rw", 0), 0x6076: (DT.UNSIGNED32, "ro", RATED), 0x6077: (DT.INTEGER16, "ro", 0),
    0x607A: (DT.INTEGER32, "rw", 0), 0x6080: (DT.UNSIGNED32, "rw", 3000), 0x60FF: (DT.INTEGER32, "rw", 0),
    0x6502: (DT.UNSIGNED32, "ro", MODES), 0x6072: (DT.UNSIGNED16, "rw", 2500), 0x607C: (DT.INTEGER32, "rw", 77),
    0x6098: (DT.INTEGER8, "rw", 0),
}  # fmt: skip
RECORDS = {
    0x607D: {1: (DT.INTEGER32, -(2**31)), 2: (DT.INTEGER32, 2**31 - 1)},
    0x6099: {1: (DT.UNSIGNED32, 0), 2: (DT.UNSIGNED32, 0)},
    0x60C2: {1: (DT.UNSIGNED8, 1), 2: (DT.INTEGER8, -3)},
    0x60FE: {1: (DT.UNSIGNED32, 1), 2: (DT.UNSIGNED32, 0)},
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("interface", choices=("udp_multicast", "socketcan"))
    parser.add_argument("channel")
    parser.add_argument("port", type=int, help="of udp_multicast")
    parser.add_argument("count", type=int)
    given = parser.parse_args()
    more = {"port": given.port, "hop_limit": 0, "fd": False} if given.interface == "udp_multicast" else {}
    bus = can.Bus(given.channel, given.interface, ignore_config=True, **more)
    hub = Hub(bus)
    for id in range(1, given.count + 1):
        Drive(hub, id)
    print("READY", flush=True)
    hub.start()
    sys.stdin.read()  # until the test closes it


if __name__ == "__main__":
    main()
