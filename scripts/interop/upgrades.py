"""Kills, restarts and upgrades one of five servers while clients call the others."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import faults
import raw
import stage

CHANGED = "notifications/tools/list_changed"


class Caller(threading.Thread):
    """Calls a tool of one server until it is stopped, and keeps what failed."""

    def __init__(self, url, tool, arguments):
        super().__init__(daemon=True)
        self.url, self.tool, self.arguments = url, tool, arguments
        self.done, self.failed, self.stop = 0, [], False
        self.start()

    def run(self):
        with raw.Http(self.url) as peer:
            while not self.stop:
                try:
                    result = peer.call(self.tool, self.arguments)
                    if result.get("isError"):
                        self.failed.append(result)
                except raw.Failed as failure:
                    self.failed.append(str(failure))
                self.done += 1


class Follower:
    """`callward events --json`: what the gateway says of the servers and their tools."""

    def __init__(self, served, work):
        self.path = pathlib.Path(work) / "upgrades.events"
        with open(self.path, "wb") as sink:
            self.process = subprocess.Popen(
                [stage.GATEWAY, "events", "--json"], stdin=subprocess.DEVNULL, stdout=sink,
                stderr=subprocess.DEVNULL, env={**os.environ, "CALLWARD_STATE_DIR": served.state})

    def all(self):
        whole = self.path.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def of(self, server):
        """The events of a server, but for those of calls, each with the tool it is about."""
        kinds = ("server", "tool", "discovery", "annotations")
        return [(event["type"], event.get("tool")) for event in self.all()
                if event["type"].startswith(kinds) and event["set"] == server]


def callward(served, *arguments):
    done = subprocess.run([stage.GATEWAY, *arguments], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "CALLWARD_STATE_DIR": served.state})
    return done.stdout, f"{done.returncode} {done.stderr}"


def listens(url):
    """A modern client that listens for changes of the tools."""
    peer = raw.Http(url, raw.MODERN).open()

    def listen():
        with contextlib.suppress(raw.Failed):
            peer.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}},
                         timeout=3600)

    threading.Thread(target=listen, daemon=True).start()
    return peer


def changes(client):
    return sum(event["method"] == CHANGED for event in client.heard)


def kill(file):
    """Kills the server that `upgrade.py` stands in front of, and `upgrade.py`."""
    listed = subprocess.run(["pgrep", "-f", f"^[^ ]*python[^ ]* .*upgrade.py {file} "],
                            capture_output=True, text=True, check=True)
    (shim,) = (int(pid) for pid in listed.stdout.split())
    for pid in (*faults.children(shim), shim):
        os.kill(pid, signal.SIGKILL)


def run(report, work):
    label = "upgrades"
    if not stage.GATEWAY:
        report.skipped(label, "without a gateway no server stands for another")
        return
    sandboxes = [stage.Sandbox(work, server) for server in stage.SERVERS]
    paths = {sandbox.server: str(sandbox.path) for sandbox in sandboxes}
    file = pathlib.Path(work) / "memory-2"
    for sandbox in sandboxes:
        if sandbox.server == "memory":
            shim = [sys.executable, str(stage.HERE / "upgrade.py"), str(file), *sandbox.command()]
            sandbox.command = lambda shim=shim: shim
    with stage.Served.serve(work, sandboxes) as served:
        served.ready(sandboxes)
        follower = Follower(served, work)
        with raw.Http(served.url) as legacy:
            legacy.listen()
            modern = listens(served.url)
            steps(report, served, follower, (legacy, modern), file, paths)
        follower.process.terminate()


def steps(report, served, follower, clients, file, paths):
    label, legacy = "upgrades", clients[0]
    memory = [tool["name"] for tool in legacy.tools() if tool["name"].startswith("memory__")]
    callers = [Caller(served.url, tool, arguments) for tool, arguments in (
        ("everything__echo", {"message": "hi"}),
        ("filesystem__list_directory", {"path": paths["filesystem"]}),
        ("git__git_status", {"repo_path": paths["git"]}),
        ("time__get_current_time", {"timezone": "UTC"}))]

    out, why = callward(served, "discover", "--json")
    found = {one["server"]: one["error"] for one in map(json.loads, out.splitlines())}
    report.check(f"{label}: five servers are discovered",
                 found == dict.fromkeys(stage.SERVERS), f"{found} {why}")

    def each_calls(more):
        wanted = [caller.done + more for caller in callers]
        return faults.until(lambda: all(
            caller.done >= least for caller, least in zip(callers, wanted)))

    report.check(f"{label}: clients call the four others", each_calls(10))

    def back(times):
        """Waits until the server was listed again as often as this."""
        wanted = 1 + times
        return faults.until(
            lambda: follower.of("memory").count(("discoveryCompleted", None)) >= wanted)

    kill(file)
    report.check(f"{label}: a killed server is listed again", back(1), follower.of("memory"))
    names = [tool["name"] for tool in legacy.tools() if tool["name"].startswith("memory__")]
    report.check(f"{label}: with the same tools", names == memory, names)

    file.touch()
    before = [changes(client) for client in clients]
    kill(file)
    report.check(f"{label}: an upgraded server is listed again", back(2), follower.of("memory"))
    for client, known in zip(clients, before):
        report.check(f"{label}: a client of {client.era} hears of it", faults.until(
            lambda client=client, known=known: changes(client) > known, 10))
    events = follower.of("memory")
    last = events[len(events) - events[::-1].index(("serverDown", None)) - 1:]
    kinds = [kind for kind, _ in last]
    order = ["serverDown", "serverUp", "toolRegistered", "toolUnregistered", "toolHeld",
             "discoveryCompleted"]
    places = [kinds.index(kind) for kind in order if kind in kinds]
    report.check(f"{label}: its events are complete and in order",
                 len(places) == len(order) and places == sorted(places), last)
    names = {tool["name"] for tool in legacy.tools() if tool["name"].startswith("memory__")}
    held = [tool for kind, tool in last if kind == "toolHeld"]
    report.check(f"{label}: a tool whose description changed is held",
                 len(held) == 1 and f"memory__{held[0]}" not in names, (held, names))
    _, why = callward(served, "review", "approve", f"memory.{held[0]}")
    back_again = faults.until(lambda: f"memory__{held[0]}" in {
        tool["name"] for tool in legacy.tools()}, 10)
    report.check(f"{label}: and offered once it is approved", back_again, why)

    report.check(f"{label}: clients still call the four others", each_calls(10))
    for caller in callers:
        caller.stop = True
    for caller in callers:
        caller.join(raw.TIMEOUT)
        report.check(f"{label}: no call of {caller.tool} failed meanwhile", not caller.failed,
                     f"{caller.done} calls: {caller.failed[:2]}")
