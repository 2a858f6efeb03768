"""The ways to reach the servers of a world: directly, and through each endpoint of the gateway.

A route is opened for one run of a sequence and gives it sessions. A session calls tools by the
server's name and the tool's own.
"""

import contextlib
import functools
import pathlib
import random
import subprocess
import tempfile
import threading
import time

import raw
import servers
import stage

# Long enough for a browser to start on a busy machine.
TIMEOUT = 45.0
_ports, _gateways, _lock = set(), [], threading.Lock()


def free_port():
    """A port below those the system gives to connections, and given out only once."""
    with _lock:
        while True:
            port = random.randrange(20000, 32000)
            with contextlib.suppress(OSError):
                if port not in _ports and _bindable(port):
                    _ports.add(port)
                    return port


def _bindable(port):
    with stage.socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
    return True


def stop():
    """Ends the gateways that still run."""
    for process in list(_gateways):
        if process.poll() is None:
            process.terminate()


@functools.cache
def _options(subcommand):
    """What starts a subcommand without evidence of earlier runs, if it keeps any."""
    told = subprocess.run([stage.GATEWAY, subcommand, "--help"], capture_output=True, text=True,
                          check=False)
    return ["--state-dir"] if "--state-dir" in told.stdout else []


def options(subcommand, world):
    return [word for option in _options(subcommand)
            for word in (option, tempfile.mkdtemp(prefix="state-", dir=world.aside))]


def listed(peer):
    """A client lists the tools before it calls one. They may come later than the handshake."""
    deadline = time.monotonic() + stage.START
    while not peer.tools():
        if time.monotonic() > deadline:
            raise RuntimeError(f"no tools after {stage.START} s")
        time.sleep(0.2)
    return peer


class Upstream:
    """A server of a world, as `stage.config` wants it."""

    def __init__(self, server, world):
        self.server = server
        self._command = servers.command(server, world)

    def command(self):
        return self._command


class OwnProcesses:
    """One process per server and session, started by the session's first call to it."""

    def __init__(self, world, names, log):
        self.world, self.names, self.log = world, names, log
        self._open = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()

    def session(self):
        return ProcessSession(self)

    def command(self, server):
        return servers.command(server, self.world)

    def start(self, server):
        return listed(self._open.enter_context(raw.Stdio(self.command(server), self.log)))


class ProcessSession:
    def __init__(self, route):
        self._route, self._peers, self._lock = route, {}, threading.Lock()

    def call(self, server, tool, arguments):
        with self._lock:
            if server not in self._peers:
                self._peers[server] = self._route.start(server)
        return self._peers[server].call(tool, arguments, TIMEOUT)

    def close(self):
        for peer in self._peers.values():
            peer.close()


class Direct(OwnProcesses):
    """No gateway: what every other route is compared with."""

    name = "direct"


class Run(OwnProcesses):
    """`callward run -- COMMAND` in place of the command, over stdio."""

    name = "run"

    def command(self, server):
        return [stage.GATEWAY, "run", *options("run", self.world), "--", *super().command(server)]


class Serve:
    """`callward serve` for all servers, over HTTP. Its configuration names them and no more."""

    name, era = "serve", raw.LEGACY

    def __init__(self, world, names, log):
        self.world, self.names, self.log = world, names, log
        self._open, self._served = contextlib.ExitStack(), None

    def __enter__(self):
        return self

    def _start(self):
        """At the first session, when the world holds what the sequence begins with."""
        port = free_port()
        file = self.world.aside / "callward.toml"
        upstreams = [Upstream(name, self.world) for name in self.names]
        file.write_text(stage.config(upstreams))
        command = [stage.GATEWAY, "serve", "--config", str(file), "--http", f"127.0.0.1:{port}",
                   *options("serve", self.world)]
        served = stage.Served(command, port, pathlib.Path(self.log))
        _gateways.append(served.process)
        self._open.enter_context(served).ready(upstreams)
        return served

    def __exit__(self, *_):
        self._open.close()

    def session(self):
        self._served = self._served or self._start()
        # a modern client is asked in results, which this one does not answer
        unasked = {} if self.era == raw.MODERN else None
        peer = raw.Http(self._served.url, self.era, unasked)
        return HttpSession(listed(self._open.enter_context(peer)))


class HttpSession:
    def __init__(self, peer):
        self._peer = peer

    def call(self, server, tool, arguments):
        return self._peer.call(f"{server}__{tool}", arguments, TIMEOUT)

    def close(self):
        self._peer.close()


class Modern(Serve):
    """The same with stateless requests: no session is known to the gateway."""

    name, era = "modern", raw.MODERN


ROUTES = {route.name: route for route in (Direct, Serve, Run, Modern)}
