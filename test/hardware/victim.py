"""A driver on loopback drives in a process of its own, to be killed: `python victim.py SOCKET TOLERANCE PRIORITY`.

It says POWERED, then does what a line on its input says: `hold` (the interpreter's lock, until the next line), `end`.
"""

import ctypes
import os
import select
import sys
import time

from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import without_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.robots import load_robot


def main(listener, tolerance, priority):
    options = {"silence": "LAST_COMMAND", "listener": listener}
    driver = Driver(without_file(load_robot("hrp2", "fixed"), "loopback", options), late_tolerance=float(tolerance))
    driver.open()
    driver.start_guardian(int(priority))
    print(f"GUARDIAN {driver.guard.pid}", flush=True)
    if int(priority):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    deadline, said = time.monotonic(), ""
    while True:
        deadline = max(deadline + driver.period, time.monotonic())
        time.sleep(max(deadline - time.monotonic(), 0.0))
        driver.cycle()
        if driver.machine.state is PowerState.MONITOR:
            driver.enable()
        if str(driver.machine) != said:
            said = str(driver.machine)
            print("POWERED" if said == "HOLD" else said, flush=True)
        if select.select([sys.stdin], [], [], 0)[0]:
            word = sys.stdin.readline().strip()
            if word == "hold":
                ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(100), 100)
            elif word == "end":
                driver.close()
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
