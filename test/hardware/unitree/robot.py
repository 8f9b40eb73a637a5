"""A robot of Unitree's as a process of its own, made from objects of the DDS binding: states out, commands in.

Settings come as lines of JSON on standard input; the line `"report"` is answered by what was received. Run as
`python robot.py INTERFACE DOMAIN`.
"""

import json
import os
import select
import sys
import time

import messages  # beside this file
import numpy as np
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from humanoid_control.hardware.unitree.frames import crc32
from humanoid_control.hardware.unitree.layout import family_of

PERIOD = 0.005
MOTORS = 29


class Robot:
    """Motors that go to where they are told when they are on, and report all they were told."""

    def __init__(self, interface, domain):
        config = f'<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="{interface}"/>'
        self.domain = Domain(domain, config + "</Interfaces></General></Domain></CycloneDDS>")
        self.participant = DomainParticipant(domain)
        self.commands = Topic(self.participant, "rt/lowcmd", messages.HgLowCmd)
        self.states = Topic(self.participant, "rt/lowstate", messages.HgLowState)
        self.reader = DataReader(self.participant, self.commands, Qos(Policy.History.KeepLast(50)))
        self.writer = DataWriter(self.participant, self.states)
        self.state, self.tick, self.rival = messages.zero(messages.HgLowState), 0, None
        self.reset()

    def reset(self):
        self.settings = {"publish": True, "step": 1, "spoil": False, "machine": 5, "buttons": 0, "modes": True}
        self.settings |= {"faults": {}, "slip": 0.0}
        self.received = self.wrong = 0
        self.seen, self.last = [], None
        self.rival = None
        for m in self.state.motor_state:
            m.mode, m.q = 0, 0.0

    def take(self):
        layout = family_of("hg").command
        for sample in self.reader.take(50):
            if isinstance(sample, InvalidSample):
                continue
            self.received += 1
            body = np.frombuffer(sample.serialize(), np.uint32)[1:]
            self.wrong += sample.crc != crc32(body, layout.crc_words)
            modes = [m.mode for m in sample.motor_cmd]
            if [sample.mode_machine, modes] not in self.seen:
                self.seen.append([sample.mode_machine, modes])
            self.last = sample

    def move(self):
        if self.last is None:
            return
        for m, c in zip(self.state.motor_state[:MOTORS], self.last.motor_cmd[:MOTORS], strict=True):
            m.mode = c.mode if self.settings["modes"] else 0
            if c.mode and c.kp > 0:
                m.dq = (c.q - m.q) / 0.02
                m.q += PERIOD * m.dq
            m.tau_est = c.tau

    def publish(self):
        s, state = self.settings, self.state
        self.tick += s["step"]
        state.tick, state.mode_machine = self.tick, s["machine"]
        state.wireless_remote[2], state.wireless_remote[3] = s["buttons"] & 255, s["buttons"] >> 8
        state.imu_state.quaternion, state.imu_state.accelerometer = [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.8125]
        for k, m in enumerate(state.motor_state):
            m.temperature, m.vol, m.motorstate = [30, 40], 50.0, s["faults"].get(str(k), 0)
        state.crc = crc32(np.frombuffer(state.serialize(), np.uint32)[1:], family_of("hg").state.crc_words)
        if s["spoil"]:
            state.crc ^= 1
        self.writer.write(state)

    def obey(self, line):
        if line == "report":
            last = self.last
            report = {"received": self.received, "wrong": self.wrong, "seen": self.seen, "pid": os.getpid()}
            if last is not None:
                report["last"] = {k: [getattr(m, k) for m in last.motor_cmd] for k in ("q", "dq", "tau", "kp", "kd")}
                report["mode_pr"] = last.mode_pr
            report["q"] = [m.q for m in self.state.motor_state]
            print(json.dumps(report), flush=True)
        elif line == "reset":
            self.reset()
        elif line == "leave":
            self.writer = None
            self.writer = DataWriter(self.participant, self.states)
        elif line == "rival":
            self.rival = DataWriter(self.participant, self.commands)
        elif line == "forget":
            self.received, self.wrong, self.seen, self.last, self.rival = 0, 0, [], None, None
        else:
            self.settings |= line

    def run(self):
        print(json.dumps("ready"), flush=True)
        due, pending = time.monotonic(), b""
        while True:
            due = max(due + PERIOD, time.monotonic())
            while select.select([0], [], [], max(0.0, due - time.monotonic()))[0]:
                data = os.read(0, 65536)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                self.take()
                for line in lines:
                    self.obey(json.loads(line))
            self.take()
            self.move()
            if self.settings["publish"]:
                self.publish()


if __name__ == "__main__":
    Robot(sys.argv[1], int(sys.argv[2])).run()
