"""Kills a server under the gateway, and looks at what the client gets to see."""

import os
import pathlib
import signal
import subprocess
import threading
import time

import raw
import stage

# The server's breaker opens after five failures in a row, for 10 s, and a call with a deadline waits for
# its end.
BACK_WITHIN = 20.0


def children(pid):
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(child) for child in listed.stdout.split()]


def only_child(pid):
    found = children(pid)
    if len(found) != 1:
        raise RuntimeError(f"expected one child of {pid}, found {found}")
    return found[0]


def server_of(pid):
    """The server under a gateway, or under another process: on Linux a supervisor stands between."""
    found = only_child(pid)
    while pathlib.Path(f"/proc/{found}/comm").read_text().strip() == "mcp-supervisor":
        found = only_child(found)
    return found


def until(what, within=stage.START):
    """Polls until `what()` is true; false if it never is."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.02)
    return False


class InFlight(threading.Thread):
    """A call on its way, and how it ended: the result, or the failure."""

    def __init__(self, peer, tool, arguments):
        super().__init__(daemon=True)
        self.args = (peer, tool, arguments)
        self.result = self.failure = None
        self.start()

    def run(self):
        peer, tool, arguments = self.args
        try:
            self.result = peer.call(tool, arguments)
        except raw.Failed as failure:
            self.failure = failure

    def ended_clearly(self):
        """An answer, or an error of the protocol with words: not a silence, not a lost line."""
        self.join(raw.TIMEOUT + 5)
        return self.result is not None or (self.failure is not None and self.failure.kind == "error")


def comes_back(report, label, peer):
    """Calls until one succeeds. Each failure until then must say what is wrong."""
    start, unclear, number = time.monotonic(), [], 0
    while time.monotonic() - start < BACK_WITHIN:
        number += 1
        try:
            result = peer.call("echo", {"message": f"call {number}"}, timeout=BACK_WITHIN)
            if not result.get("isError"):
                break
        except raw.Failed as failure:
            if failure.kind != "error":
                unclear.append(str(failure))
        time.sleep(0.1)
    else:
        number = 0
    took = time.monotonic() - start
    report.check(f"{label}: back within {BACK_WITHIN:.0f} s", number > 0, f"not after {took:.1f} s")
    report.check(f"{label}: failures until then are clear", not unclear, unclear[:3])


def killed_in_mid_traffic(report, label, peer, gateway):
    peer.call("echo", {"message": "before"})
    server = server_of(gateway)
    slow = [InFlight(peer, "trigger-long-running-operation", {"duration": 10, "steps": 2 + n})
            for n in range(2)]
    # Traffic beside the slow calls: they have surely left when this has been answered.
    for number in range(5):
        peer.call("echo", {"message": f"beside {number}"})
    os.kill(server, signal.SIGKILL)
    comes_back(report, label, peer)
    report.check(f"{label}: the calls in flight end clearly",
                 all(call.ended_clearly() for call in slow),
                 [str(call.failure or "no answer") for call in slow])
    report.check(f"{label}: the server is a new process", server_of(gateway) != server)


def a_write_in_flight(report, work):
    """The server has the write and cannot answer; then it dies. Nobody may send it again."""
    label = "kill: a write in flight"
    sandbox = stage.Sandbox(work, "memory")
    tap = stage.Tap(sandbox)
    with raw.Stdio(sandbox.drop_in(tap.command), sandbox.log) as peer:
        peer.call("read_graph", {})
        tapped = server_of(peer.process.pid)
        server = only_child(tapped)
        os.kill(server, signal.SIGSTOP)
        ada = {"name": "Ada", "entityType": "person", "observations": []}
        write = InFlight(peer, "create_entities", {"entities": [ada]})
        arrived = until(lambda: tap.calls("create_entities") == 1)
        os.kill(tapped, signal.SIGKILL)
        os.kill(server, signal.SIGKILL)
        if not arrived:
            report.fail(label, "it never reached the server")
            return
        clear = write.ended_clearly()
        said = str(write.failure or write.result)
        report.check(f"{label}: ends as an error that says so",
                     clear and (write.failure is not None or write.result.get("isError")), said)

        def graph():
            try:
                return peer.call("read_graph", {})
            except raw.Failed:
                return None

        back = until(graph, BACK_WITHIN)
        report.check(f"{label}: back within {BACK_WITHIN:.0f} s", back)
        times = tap.calls("create_entities")
        report.check(f"{label}: it is not sent again", times == 1, f"{times} times")
        now = str(graph())
        report.check(f"{label}: and the graph does not hold it", "Ada" not in now, now)


def run(report, work):
    if not stage.GATEWAY:
        report.skipped("kill", "without a gateway nothing stands between a client and a dead server")
        return
    sandbox = stage.Sandbox(work, "everything")
    with stage.Served.run(sandbox) as served, raw.Http(served.url) as peer:
        killed_in_mid_traffic(report, "kill: http", peer, served.process.pid)
        report.check("kill: http: the gateway lives", served.process.poll() is None)
    sandbox = stage.Sandbox(work, "everything")
    with raw.Stdio(sandbox.drop_in(), sandbox.log) as peer:
        killed_in_mid_traffic(report, "kill: stdio", peer, peer.process.pid)
    a_write_in_flight(report, work)
