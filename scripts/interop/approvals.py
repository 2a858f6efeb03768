"""An operator decides about what the filesystem server may destroy, while real clients wait."""

import contextlib
import json
import pathlib
import subprocess
import threading
import time

import stage

EXPIRES = "6s"


class Operator:
    """Decides all that is pending, in one way, until the end of the `with` block."""

    def __init__(self, served, *verb):
        self.served, self.verb, self.decided = served, verb, []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._decide)

    def callward(self, *arguments):
        command = [stage.GATEWAY, "approvals", *arguments, "--state-dir", self.served.state]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    def _decide(self):
        while not self.done.wait(0.1):
            for one in json.loads(self.callward("list", "--json").stdout or "[]"):
                if one["state"] == "pending" and self.verb:
                    self.callward(self.verb[0], one["id"], *self.verb[1:])
                    self.decided.append(one["tool"])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


@contextlib.contextmanager
def served(work, settings):
    sandbox = stage.Sandbox(work, "filesystem")
    config = f"[approvals]\n{settings}\n{stage.config([sandbox])}"
    with stage.Served.configured(pathlib.Path(work) / f"{sandbox.path.name}.toml", config) as it:
        it.ready([sandbox])
        yield sandbox, it


def run(report, work, clients, inspect):
    if not stage.GATEWAY:
        report.skipped("approvals", "the gateway asks for them")
        return
    for label, _ in clients([], "filesystem"):
        with served(work, "") as (sandbox, it), Operator(it, "approve") as operator:
            command = dict(clients(["http", it.url], "filesystem"))[label]
            report.client(f"{label} approved by an operator", command,
                          {"INTEROP_DIR": str(sandbox.path), "INTEROP_PREFIX": "filesystem__"})
        report.check(f"{label}: move_file waits for the operator",
                     "move_file" in operator.decided, operator.decided)
    for era in ("legacy", "modern"):
        inspected(report, work, inspect, era)


def inspected(report, work, inspect, era):
    """The Inspector is denied with a note, is late, and then asks again."""
    with served(work, f'hold = "30s"\nexpires = "{EXPIRES}"\ncool_off = "1s"') as (sandbox, it):
        a, b = sandbox.path / "a.txt", sandbox.path / "b.txt"
        target = [it.url, "--transport", "http", "--protocol-era", era, "--method", "tools/call",
                  "--tool-name", "filesystem__move_file", "--tool-args-json",
                  json.dumps({"source": str(a), "destination": str(b)})]
        label = f"inspector ({era})"
        with Operator(it, "deny", "--note", "archive it instead"):
            said = json.dumps(inspect(target))
        report.check(f"{label}: is denied with the note", "archive it instead" in said, said)
        time.sleep(1)
        said = json.dumps(inspect(target))
        report.check(f"{label}: a request expires, which is not a denial", "expired" in said, said)
        report.check(f"{label}: nothing moved", a.exists() and not b.exists())
        with Operator(it, "approve"):
            said = json.dumps(inspect(target))
        report.check(f"{label}: asks again, and is approved", b.exists() and not a.exists(), said)
