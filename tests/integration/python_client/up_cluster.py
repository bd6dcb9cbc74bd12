"""A cluster under `baton up`, for the checks in this folder."""
import json
import os
import signal
import subprocess
import sys
import time

START_TIMEOUT_S = 180


def find_model(path):
    """`path`, or the file of that name in $BATON_MODEL_DIR."""
    folder = os.environ.get("BATON_MODEL_DIR")
    if folder:
        path = os.path.join(folder, os.path.basename(path))
    if not os.path.exists(path):
        sys.exit(f"{path} is missing; tests/run.sh gets it")
    return path


def wait_until(condition, timeout_s, what):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {timeout_s} s")


class Cluster:
    """One router, one prefill and one decode worker under `baton up`."""

    def __init__(self, baton, model, folder):
        self.ready_file = os.path.join(folder, "ready.json")
        self.process = subprocess.Popen(
            [baton, "up", f"--model={model}", "--listen=127.0.0.1:0",
             "--disaggregation=always", f"--ready-file={self.ready_file}",
             "--verbose"])
        wait_until(self._ready, START_TIMEOUT_S, "the cluster is ready")
        with open(self.ready_file, encoding="utf-8") as file:
            self.address = json.load(file)["address"]

    def _ready(self):
        assert self.process.poll() is None, "baton up ended early"
        return os.path.exists(self.ready_file)

    def children(self):
        pids = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    parent = file.read().rsplit(")", 1)[1].split()[1]
            except (OSError, IndexError):
                continue
            if parent == str(self.process.pid):
                pids.append(int(entry))
        return pids

    def stop(self):
        children = self.children()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        return status, [pid for pid in children
                        if os.path.exists(f"/proc/{pid}")]

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
