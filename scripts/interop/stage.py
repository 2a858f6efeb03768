"""The servers under test, their sandboxes, and the gateway in front of them."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import raw

HERE = pathlib.Path(__file__).resolve().parent
HOME = pathlib.Path(os.environ["INTEROP_HOME"])
# The gateway binary; empty: clients talk to the servers directly, which checks this script.
GATEWAY = os.environ.get("GATEWAY", "")
MODULES = HOME / "node_modules"
NODE = str(MODULES / "node/bin/node")
INSPECTOR = str(MODULES / ".bin/mcp-inspector")
START = 60.0

SERVERS = ["everything", "filesystem", "memory", "git", "time"]


def package(name, *arguments):
    return [NODE, str(MODULES / f"@modelcontextprotocol/server-{name}/dist/index.js"), *arguments]


class Sandbox:
    """A directory of its own for one run of one server, with something in it to find."""

    count = 0

    def __init__(self, work, server):
        Sandbox.count += 1
        self.path = pathlib.Path(work) / f"{Sandbox.count:03}-{server}"
        self.path.mkdir()
        self.server = server
        self.log = self.path.with_suffix(".log")
        if server == "filesystem":
            (self.path / "a.txt").write_text("first\n")
        if server == "git":
            self._repository()

    def _repository(self):
        git = ["git", "-C", str(self.path), "-c", "user.name=interop", "-c",
               "user.email=interop@example.invalid", "-c", "commit.gpgsign=false"]
        (self.path / "a.txt").write_text("first\n")
        for arguments in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "the first commit"]):
            subprocess.run(git + arguments, check=True, stdout=subprocess.DEVNULL)
        (self.path / "untracked.txt").write_text("not added\n")

    def command(self):
        """What starts the server, with `env` where it is configured by the environment."""
        path = str(self.path)
        return {
            "everything": package("everything", "stdio"),
            "filesystem": package("filesystem", path),
            "memory": ["env", f"MEMORY_FILE_PATH={path}/memory.json", *package("memory")],
            "git": [str(HOME / "venv/bin/mcp-server-git"), "--repository", path],
            "time": [str(HOME / "venv/bin/mcp-server-time"), "--local-timezone", "UTC"],
        }[self.server]

    def drop_in(self, command=None):
        """The same command with the gateway in front of it."""
        command = command or self.command()
        return [GATEWAY, "run", "--", *command] if GATEWAY else command


class Tap:
    """The server of a sandbox behind `tap.py`: what was it asked?"""

    def __init__(self, sandbox):
        self._log = sandbox.path.with_suffix(".asked")
        self.command = [sys.executable, str(HERE / "tap.py"), str(self._log), *sandbox.command()]

    def _asked(self, method):
        if not self._log.exists():
            return []
        # The last line may still be on its way.
        whole = self._log.read_text().rpartition("\n")[0]
        seen = [json.loads(line) for line in whole.splitlines()]
        return [one["params"] for one in seen if one["method"] == method]

    def calls(self, tool):
        """How often the server was asked to run this tool."""
        return sum(params["name"] == tool for params in self._asked("tools/call"))

    def capabilities(self):
        """What the client of this server said it can do; nothing, if it did not shake hands."""
        shaken = self._asked("initialize")
        return shaken[-1]["capabilities"] if shaken else {}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def config(sandboxes):
    """The configuration file of `callward serve` for several servers."""
    lines = []
    for sandbox in sandboxes:
        program, *arguments = sandbox.command()
        # A JSON string is a TOML basic string, and a JSON list of strings a TOML array.
        lines += [f"[servers.{sandbox.server}]", f"command = {json.dumps(program)}",
                  f"args = {json.dumps(arguments)}", ""]
    return "\n".join(lines)


def one_server(**settings):
    """The configuration file for one server, whose tools keep their names."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(["[servers.suite]", "prefix = false", *lines, ""])


class Served:
    """A process that serves MCP over HTTP; gone at the end of the `with` block."""

    def __init__(self, command, port, log, path="/mcp", env=None):
        self.port, self.log = port, log
        self.state = tempfile.mkdtemp(prefix="state-", dir=pathlib.Path(log).parent)
        self.origin = f"http://127.0.0.1:{port}"
        self.url = self.origin + path
        with open(log, "ab") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                env={**os.environ, "CALLWARD_STATE_DIR": self.state, **(env or {})})

    @property
    def admin(self):
        """The admin address of the gateway, from the file that it keeps while it runs."""
        (file,) = pathlib.Path(self.state, "gateways").glob("*.json")
        return json.loads(file.read_text())["admin"]

    @classmethod
    def run(cls, sandbox, command=None, options=()):
        port = free_port()
        return cls([GATEWAY, "run", "--http", f"127.0.0.1:{port}", *options, "--",
                    *(command or sandbox.command())], port, sandbox.log)

    @classmethod
    def serve(cls, work, sandboxes):
        return cls.configured(pathlib.Path(work) / "callward.toml", config(sandboxes))

    @classmethod
    def configured(cls, path, config, port=None, env=None):
        port = port or free_port()
        path.write_text(config)
        return cls([GATEWAY, "serve", "--config", str(path), "--http", f"127.0.0.1:{port}"],
                   port, path.with_suffix(".log"), env=env)

    @classmethod
    def everything(cls, work):
        """The one reference server that serves HTTP by itself: the direct case of the HTTP checks."""
        port = free_port()
        return cls(package("everything", "streamableHttp"), port,
                   pathlib.Path(work) / "everything-http.log", env={"PORT": str(port)})

    def __enter__(self):
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"ended with {self.process.returncode}: {tail(self.log)}")
            if self._ready():
                return self
            time.sleep(0.05)
        self.__exit__()
        raise RuntimeError(f"not ready after {START} s: {tail(self.log)}")

    def _ready(self):
        """Whether it listens and does not say "not yet" at /readyz, a page only the gateway has."""
        try:
            urllib.request.urlopen(f"{self.origin}/readyz", timeout=5).close()
            return True
        except urllib.error.HTTPError as answer:
            return answer.code != 503
        except OSError:
            return False

    def ready(self, sandboxes):
        """Waits until every server's tools are listed; servers start in their own time."""
        wanted = {sandbox.server for sandbox in sandboxes}
        deadline = time.monotonic() + START
        while wanted:
            with raw.Http(self.url) as peer:
                wanted -= {tool["name"].partition("__")[0] for tool in peer.tools()}
            if wanted and time.monotonic() > deadline:
                raise RuntimeError(f"no tools of {sorted(wanted)}: {tail(self.log)}")
            time.sleep(0.2 if wanted else 0)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def tail(path, lines=3):
    """The end of a log, on one line."""
    try:
        return " / ".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "no log"


class Report:
    """Prints each check as a line, and counts."""

    def __init__(self):
        self.passed = self.failed = 0

    def ok(self, name):
        self.passed += 1
        print(f"ok   {name}", flush=True)

    def fail(self, name, why):
        self.failed += 1
        print(f"FAIL {name}: {why}", flush=True)

    def check(self, name, right, why=""):
        self.ok(name) if right else self.fail(name, why)

    def skipped(self, name, why):
        print(f"skipped: {name}: {why}", flush=True)

    def client(self, label, command, env, timeout=180):
        """Runs a client script, and takes over the lines it reports."""
        try:
            done = subprocess.run(command, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            self._take(label, late.stdout.decode() if late.stdout else "")
            self.fail(label, f"the client did not end in {timeout} s")
            return
        lines = self._take(label, done.stdout)
        if done.returncode not in (0, 1) or lines == 0:
            last = " / ".join(done.stderr.splitlines()[-3:])
            self.fail(label, f"the client ended with {done.returncode}: {last}")

    def _take(self, label, text):
        lines = 0
        for line in text.splitlines():
            verdict, _, rest = line.partition(" ")
            if verdict == "ok":
                self.ok(f"{label}: {rest.strip()}")
            elif verdict == "FAIL":
                self.fail(f"{label}: {rest.partition(': ')[0]}", rest.partition(": ")[2])
            lines += verdict in ("ok", "FAIL")
        return lines


def fatal(message):
    print(f"interop: {message}", file=sys.stderr)
    sys.exit(2)
