"""The command that the conformance suite runs against a server of its own: a client that lists and
uses all that the server offers, through a gateway in front of it.

Usage: conformance_client.py URL. The suite's environment has the revision and the calls it wants.
"""

import base64
import json
import os
import pathlib
import sys
import tempfile

import raw
import stage

ANY = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
ERA = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
FOCAL, ECHO = "json_schema_2020_12_tool", "json_schema_echo"


class Client(raw.Http):
    """Repeats arguments in headers, as tools ask a modern client to, and answers what a legacy
    server asks outside the answers to calls.
    """

    headers = {}

    def open(self):
        super().open()
        if self._session:
            self.listen()
        return self

    def _named(self, message):
        found = super()._named(message)
        params = message.get("params", {})
        if message.get("method") == "tools/call":
            for argument, header in self.headers.get(params["name"], {}).items():
                value = params["arguments"].get(argument)
                if value is not None:
                    found[f"Mcp-Param-{header}"] = encoded(value)
        return found


def encoded(value):
    text = value if isinstance(value, str) else json.dumps(value)
    if text.isascii() and text.isprintable() and text == text.strip() and text:
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def arguments(tool, tools):
    """Something for each argument that the tool requires."""
    schema = tool["inputSchema"]
    if tool["name"] == ECHO:
        return {"schema": next(one["inputSchema"] for one in tools if one["name"] == FOCAL)}
    fields = schema.get("properties", {})
    return {name: ANY.get(fields.get(name, {}).get("type"), "text")
            for name in schema.get("required", [])}


def attempt(peer, method, params):
    """A result, or none where there is an error: what counts is what reaches the server."""
    try:
        return peer.request(method, params)
    except raw.Failed as error:
        print(f"{method} {params.get('name', '')}: {error}", file=sys.stderr)
        return {}


def use(peer, tools):
    calls = CONTEXT.get("toolCalls") or [
        {"name": tool["name"], "arguments": arguments(tool, tools)} for tool in tools]
    waiting = []
    for call in calls:
        result = attempt(peer, "tools/call", call)
        if result.get("resultType") == "input_required":
            waiting.append((call, result))
    # after calls of other tools, which must not carry what belongs to these
    for call, result in waiting:
        requests = result.get("inputRequests", {})
        again = {**call, "inputResponses": {
            key: raw.reply_to({**request, "id": 0})["result"] for key, request in requests.items()}}
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        attempt(peer, "tools/call", again)


def main(url):
    with Client(url, ERA) as peer:
        tools = peer.tools()
        for tool in tools:
            fields = tool["inputSchema"].get("properties", {})
            peer.headers[tool["name"]] = {name: field["x-mcp-header"]
                                          for name, field in fields.items()
                                          if "x-mcp-header" in field}
        use(peer, tools)
        offered = peer.server["capabilities"]
        if "prompts" in offered:
            for prompt in attempt(peer, "prompts/list", {}).get("prompts", []):
                attempt(peer, "prompts/get", {"name": prompt["name"]})
        if "resources" in offered:
            for resource in attempt(peer, "resources/list", {}).get("resources", []):
                attempt(peer, "resources/read", {"uri": resource["uri"]})


raw.CAPABILITIES = {"elicitation": {"form": {}}, "roots": {}, "sampling": {}}
if stage.GATEWAY:
    with tempfile.TemporaryDirectory() as work:
        # one instance: some of the suite's servers have one session in mind
        config = stage.one_server(url=sys.argv[1], max_instances=1,
                                  era="modern" if ERA == raw.MODERN else "legacy")
        with stage.Served.configured(pathlib.Path(work, "callward.toml"), config) as gateway:
            main(gateway.url)
else:
    main(sys.argv[1])
