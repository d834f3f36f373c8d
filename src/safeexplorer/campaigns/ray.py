"""Runs as tasks of a Ray cluster. Every node must see the run folders under the same path."""

import os
import time
from pathlib import Path
from typing import Any

from safeexplorer.campaigns.campaign import Outcome
from safeexplorer.files.extras import load
from safeexplorer.files.threads import use_one_thread
from safeexplorer.robots import ROBOT_FILES
from safeexplorer.runs.specs import RunSpec

NODE_LOSSES = 100  # a task is moved to another node so often
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # where it is "0", Ray listens on 127.0.0.1 alone
LOCK_SECONDS = 120.0  # a lost node's process may hold the run until it is gone


class RayEngine:
    """One task of one CPU per run, in a fresh process: the process that writes the run is the one Ray can lose."""

    slots = None  # Ray queues what does not fit

    def __init__(self, address: str | None = None):
        if not (address or os.environ.get("RAY_ADDRESS")):
            os.environ.setdefault(LOOPBACK, "0")
        self.ray = ray = load("ray", "ray", "the engine ray")
        use_one_thread()
        self.owned = not ray.is_initialized()
        if self.owned:
            # A node must compile as this process does, and know the same robots.
            same = {name: os.environ[name] for name in ("XLA_FLAGS", ROBOT_FILES) if name in os.environ}
            ray.init(address, runtime_env={"env_vars": same}, log_to_driver=False)
        self.task = ray.remote(num_cpus=1, max_calls=1, max_retries=NODE_LOSSES)(attempt)

    def start(self, spec: RunSpec, folder: Path) -> Any:
        return self.task.remote(spec.settings.as_dict(), str(folder.resolve()))

    def outcome(self, reference: Any) -> Outcome | None:
        done, _ = self.ray.wait([reference], timeout=0)
        if not done:
            return None
        try:
            return Outcome(*self.ray.get(reference))
        except self.ray.exceptions.RayError as error:
            words = str(error).strip() or type(error).__name__  # a cancelled task says nothing
            return Outcome(words.splitlines()[-1])

    def stop(self, reference: Any) -> None:
        self.ray.cancel(reference)  # an interrupt in the task: it saves and ends

    def kill(self, reference: Any) -> None:
        self.ray.cancel(reference, force=True)

    def close(self) -> None:
        if self.owned:
            self.ray.shutdown()


def attempt(values: dict[str, Any], folder: str) -> tuple[str | None, bool]:
    """In a worker process: continue the run, wait for its lock if a dying process still holds it."""
    from safeexplorer.files.interruption import Stopped
    from safeexplorer.files.locks import RunInUse
    from safeexplorer.files.trouble import MISTAKE, exit_code
    from safeexplorer.runs.settings import from_dict
    from safeexplorer.runs.training import train

    use_one_thread()
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            train(from_dict(values), Path(folder))
            return None, False
        except RunInUse as error:
            if time.monotonic() > deadline:
                return str(error), False
            time.sleep(1.0)
        except Stopped as stopped:
            return str(stopped), False
        except (ValueError, OSError, FloatingPointError) as error:
            return str(error), exit_code(error) == MISTAKE
