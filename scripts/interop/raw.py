"""A raw MCP peer: JSON-RPC over stdio or HTTP, with no typed model between us and the bytes.

The SDKs drop members they do not know, so what a gateway loses or adds can only be seen here.
Speaks both eras: the handshake (2025-11-25) and the stateless one (2026-07-28).
"""

import contextlib
import http.client
import itertools
import json
import queue
import subprocess
import threading
import time
import urllib.parse

LEGACY, MODERN = "2025-11-25", "2026-07-28"
CLIENT = {"name": "callward-interop", "version": "1"}
CAPABILITIES = {"elicitation": {"form": {}}}
TIMEOUT = 60.0
ANSWERS = {
    "ping": {},
    "roots/list": {"roots": [{"uri": "file:///work", "name": "work"}]},
    "sampling/createMessage": {"role": "assistant", "model": "none",
                               "content": {"type": "text", "text": "a reply"}},
}


class Failed(Exception):
    """A request that got a JSON-RPC error, no answer in time, or a lost connection."""

    def __init__(self, kind, message, error=None):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.error = error


class Peer:
    """What both transports share: ids, eras, the handshake, and paginated listing."""

    def __init__(self, era=LEGACY, capabilities=None):
        self.era = era
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self._ids = itertools.count(1)
        # the server's requests and notifications
        self.heard = []

    def open(self):
        if self.era == LEGACY:
            params = {"protocolVersion": LEGACY, "capabilities": self.capabilities,
                      "clientInfo": CLIENT}
            self.server = self.request("initialize", params)
            self.notify("notifications/initialized")
        else:
            self.server = self.request("server/discover", {})
        return self

    def request(self, method, params, timeout=TIMEOUT):
        """The `result` of a request, or Failed."""
        if self.era == MODERN:
            params = {**params, "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }}
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = self._send(message, message["id"], timeout)
        if "error" in answer:
            code, said = answer["error"].get("code"), answer["error"].get("message")
            raise Failed("error", f"{code} {said}", answer["error"])
        return answer["result"]

    def notify(self, method):
        self._send({"jsonrpc": "2.0", "method": method}, None, 10)

    def call(self, tool, arguments, timeout=TIMEOUT):
        return self.request("tools/call", {"name": tool, "arguments": arguments}, timeout)

    def tools(self):
        """Every tool of every page, as the raw JSON objects."""
        found, params = [], {}
        while True:
            page = self.request("tools/list", params)
            found += page["tools"]
            # An empty string is a valid cursor; only a missing one ends the list.
            if page.get("nextCursor") is None:
                return found
            params = {"cursor": page["nextCursor"]}

    def __enter__(self):
        return self.open()

    def __exit__(self, *_):
        self.close()


def reply_to(request):
    """What this client answers when the server asks it something: yes, or that it cannot."""
    if request["method"] in ANSWERS:
        return {"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS[request["method"]]}
    if request["method"] == "elicitation/create":
        schema = request["params"].get("requestedSchema", {})
        fields = schema.get("properties", {}).items()
        content = {name: field["type"] == "boolean" or field["default"] for name, field in fields
                   if field.get("type") == "boolean" or "default" in field}
        return {"jsonrpc": "2.0", "id": request["id"],
                "result": {"action": "accept", "content": content}}
    return {"jsonrpc": "2.0", "id": request["id"],
            "error": {"code": -32601, "message": f"{request['method']} is not offered"}}


class Stdio(Peer):
    """One child process, a JSON-RPC message a line."""

    def __init__(self, command, log, era=LEGACY, capabilities=None):
        super().__init__(era, capabilities)
        self._log = open(log, "ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        self._lock = threading.Lock()
        self._waiting = {}
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _write(self, message):
        with self._lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.heard.append(message)
            if "method" in message and "id" in message:
                self._write(reply_to(message))
            elif "id" in message and message["id"] in self._waiting:
                self._waiting[message["id"]].put(message)
        self._ended = True
        for waiting in list(self._waiting.values()):
            waiting.put(None)

    def _send(self, message, wanted, timeout):
        waiting = queue.Queue()
        if wanted is not None:
            self._waiting[wanted] = waiting
        if self._ended:
            raise Failed("closed", "the process has ended")
        try:
            self._write(message)
            if wanted is None:
                return None
            answer = waiting.get(timeout=timeout)
        except queue.Empty:
            raise Failed("timeout", f"no answer to {message['method']} in {timeout} s") from None
        except OSError as error:
            raise Failed("closed", str(error)) from error
        finally:
            self._waiting.pop(wanted, None)
        if answer is None:
            raise Failed("closed", "the process ended before it answered")
        return answer

    def close(self):
        """Closes stdin, as the protocol asks, and kills only a child that does not leave."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


class Http(Peer):
    """Streamable HTTP, a connection a message: slow, and nothing is hidden by reuse."""

    def __init__(self, url, era=LEGACY, capabilities=None):
        super().__init__(era, capabilities)
        self._url = urllib.parse.urlsplit(url)
        self._session = None

    def listen(self):
        """Answers and records what a legacy server sends outside the answers to requests."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        connection = http.client.HTTPConnection(self._url.hostname, self._url.port)
        connection.request("GET", self._url.path, headers={
            "Accept": "text/event-stream", "Mcp-Session-Id": self._session,
            "MCP-Protocol-Version": self.era})
        with contextlib.suppress(Failed, OSError):
            self._answer(connection.getresponse(), "none of this", float("inf"))

    def _named(self, message):
        """The headers by which a modern server knows a request without its body."""
        params = message.get("params", {})
        name = params.get("uri", params.get("name"))
        method = {"Mcp-Method": message["method"]}
        return method if name is None else {**method, "Mcp-Name": name}

    def _post(self, message, timeout):
        connection = http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=timeout)
        headers = {"Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.era == MODERN:
            headers["MCP-Protocol-Version"] = MODERN
            headers |= self._named(message)
        elif message.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = LEGACY
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        connection.request("POST", self._url.path, json.dumps(message), headers)
        return connection, connection.getresponse()

    def _send(self, message, wanted, timeout):
        deadline = time.monotonic() + timeout
        try:
            connection, response = self._post(message, timeout)
            self._session = response.getheader("Mcp-Session-Id") or self._session
            try:
                return self._answer(response, wanted, deadline)
            finally:
                connection.close()
        except TimeoutError:
            raise Failed("timeout", f"no answer in {timeout} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise Failed("closed", repr(error)) from error

    def _answer(self, response, wanted, deadline):
        if wanted is None:
            response.read()
            return None
        if not (response.getheader("Content-Type") or "").startswith("text/event-stream"):
            body = response.read()
            try:
                return json.loads(body)
            except ValueError:
                raise Failed("http", f"{response.status} {body[:200]!r}") from None
        for line in response:
            if time.monotonic() > deadline:
                raise TimeoutError
            # One `data:` line an event: JSON text as servers write it holds no line break.
            if not line.startswith(b"data:") or not line[5:].strip():
                continue
            event = json.loads(line[5:])
            if event.get("id") == wanted and "method" not in event:
                return event
            if "method" in event:
                self.heard.append(event)
            if "method" in event and "id" in event:
                connection, answered = self._post(reply_to(event), TIMEOUT)
                answered.read()
                connection.close()
        raise Failed("closed", "the stream ended before the answer")

    def close(self):
        """Ends a legacy session; the stateless era has none."""
        if self._session:
            connection = http.client.HTTPConnection(
                self._url.hostname, self._url.port, timeout=10)
            connection.request("DELETE", self._url.path,
                               headers={"Mcp-Session-Id": self._session,
                                        "MCP-Protocol-Version": LEGACY})
            connection.getresponse().read()
            connection.close()
            self._session = None


def short(value):
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def differences(expected, found, where=""):
    """Every place where two JSON values differ, types included (`1` is not `1.0` nor `true`)."""
    if type(expected) is not type(found):
        return [f"{where}: {short(expected)} became {short(found)}"]
    if isinstance(expected, dict):
        out = []
        for key in sorted(expected.keys() | found.keys()):
            place = f"{where}.{key}"
            if key not in found:
                out.append(f"{place}: lost {short(expected[key])}")
            elif key not in expected:
                out.append(f"{place}: added {short(found[key])}")
            else:
                out += differences(expected[key], found[key], place)
        return out
    if isinstance(expected, list):
        if len(expected) != len(found):
            return [f"{where}: {len(expected)} items became {len(found)}"]
        return [line for at, (left, right) in enumerate(zip(expected, found))
                for line in differences(left, right, f"{where}[{at}]")]
    return [] if expected == found else [f"{where}: {short(expected)} became {short(found)}"]
