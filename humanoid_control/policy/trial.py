"""Child process of a network's first inference, so that damaged files can only crash this process.

Request and outputs are JSON on standard streams.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np

from humanoid_control.errors import PolicyError
from humanoid_control.policy.network import MEGABYTES, SECONDS, InferenceSession


def main() -> int:
    """Serve one request; return the exit code."""
    order = json.loads(sys.stdin.read())
    import onnxruntime  # noqa: F401  # before memory is limited: its own size is not the file's

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = used + MEGABYTES * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        session = InferenceSession(Path(order["path"]))
        types = {i.name: i.type for i in session._session.get_inputs()}
        feeds = {
            name: np.array(values, dtype="i8" if "int64" in types.get(name, "") else "f4").reshape(shape)
            for name, (shape, values) in order["feeds"].items()
        }
        outputs = session.run(feeds)
    except PolicyError as e:
        print(json.dumps({"error": str(e).partition("rejects it: ")[2] or str(e)}))
        return 0
    except Exception as e:  # raised by the runtime
        print(json.dumps({"error": " ".join(str(e).split())[:300]}))
        return 0
    told = {name: (list(np.shape(v)), np.asarray(v, dtype=float).ravel().tolist()) for name, v in outputs.items()}
    print(json.dumps({"outputs": told}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
