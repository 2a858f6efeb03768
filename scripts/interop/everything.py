"""Compares what a client sees of `server-everything` through the gateway with what it sees without:
all answers, and all that the server sends meanwhile. Started by `scripts/compatibility.sh`.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile
import time

import raw
import stage

CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
NAME = "everything"
TEXT, STATIC = "demo://resource/dynamic/text/1", "demo://resource/static/document/features.md"
# What it offers only to clients that can be asked. `serve` lists what it offers to all.
CONDITIONAL = {"get-roots-list", "trigger-elicitation-request", "trigger-url-elicitation",
               "trigger-sampling-request"}
# how long after a request its notifications are awaited
QUIET = 0.4
TIME = re.compile(r"\d{1,2}:\d\d:\d\d( ?[AP]M)?")
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LEVEL = re.compile(r"(Debug|Info|Notice|Warning|Error|Critical|Alert|Emergency)[- ]level[- ]message")


def call(tool, arguments=None, **meta):
    params = {"name": tool, "arguments": arguments or {}}
    return "tools/call", {**params, "_meta": meta} if meta else params


def complete(ref, name, value, **context):
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    return "completion/complete", {**params, "context": {"arguments": context}} if context else params


PROMPT = {"type": "ref/prompt", "name": "completable-prompt"}
TEMPLATE = {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}
DATA = "data:text/plain;base64,aGVsbG8="
LINK = "https://example.invalid/visit"
STEPS = [
    ("logging/setLevel", {"level": "debug"}),
    ("ping", {}), ("tools/list", {}), ("prompts/list", {}), ("resources/list", {}),
    ("resources/templates/list", {}),
    call("echo", {"message": "grüße, 世界"}),
    call("get-annotated-message", {"messageType": "success", "includeImage": True}),
    call("get-annotated-message", {"messageType": "error"}),
    call("get-env"),
    call("get-resource-links", {"count": 3}),
    call("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    call("get-resource-reference", {"resourceType": "Blob", "resourceId": 2}),
    call("get-structured-content", {"location": "Chicago"}),
    call("get-sum", {"a": 2, "b": 40.5}),
    call("get-tiny-image"),
    call("get-roots-list"),
    call("gzip-file-as-resource", {"name": "a.gz", "data": DATA}),
    ("resources/list", {}),
    ("resources/read", {"uri": "demo://resource/session/a.gz"}),
    call("gzip-file-as-resource", {"name": "b.gz", "data": DATA, "outputType": "resource"}),
    call("trigger-elicitation-request"),
    call("trigger-url-elicitation", {"url": LINK, "elicitationId": "visit"}),
    call("trigger-url-elicitation", {"url": LINK, "elicitationId": "again", "errorPath": True}),
    call("trigger-sampling-request", {"prompt": "Hi", "maxTokens": 5}),
    call("trigger-long-running-operation", {"duration": 0.4, "steps": 4}, progressToken="p"),
    call("trigger-long-running-operation", {"duration": 0.1, "steps": 2}),
    call("toggle-simulated-logging"), call("toggle-simulated-logging", {"again": 1}),
    ("prompts/get", {"name": "simple-prompt"}),
    ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Oslo", "state": "NO"}}),
    ("prompts/get", {"name": "completable-prompt",
                     "arguments": {"department": "Sales", "name": "Eve"}}),
    ("prompts/get", {"name": "resource-prompt",
                     "arguments": {"resourceType": "Text", "resourceId": "1"}}),
    ("resources/read", {"uri": STATIC}), ("resources/read", {"uri": TEXT}),
    ("resources/read", {"uri": "demo://resource/dynamic/blob/3"}),
    complete(PROMPT, "department", "S"), complete(PROMPT, "name", "", department="Sales"),
    complete(TEMPLATE, "resourceId", "1"),
    ("resources/subscribe", {"uri": TEXT}),
    call("toggle-subscriber-updates"), call("toggle-subscriber-updates", {"again": 1}),
    ("resources/unsubscribe", {"uri": TEXT}),
    ("notifications/roots/list_changed", None),
    # what fails at the server; unknown tools, methods and levels are refused by the gateway
    call("get-sum", {"a": "two"}),
    ("prompts/get", {"name": "no-such-prompt"}),
    ("prompts/get", {"name": "args-prompt", "arguments": {}}),
    ("resources/read", {"uri": "demo://resource/none"}),
    complete({"type": "ref/prompt", "name": "no-such-prompt"}, "x", ""),
]


def renamed(params, prefix):
    """The parameters with the names and URIs of the gateway."""
    if not prefix or not params:
        return params
    changed = dict(params)
    if "name" in params:
        changed["name"] = f"{prefix}__{params['name']}"
    if "uri" in params:
        changed["uri"] = f"{params['uri']}#{prefix}"
    if "ref" in params:
        changed["ref"] = renamed(params["ref"], prefix)
    return changed


def normal(value, key=None):
    """A message without names and URIs of the gateway, times, and what may come in any order."""
    if isinstance(value, dict):
        if key == "capabilities":
            # tasks of 2025-11-25 are not relayed
            value = {name: one for name, one in value.items() if name != "tasks"}
        value = {name: normal(one, name) for name, one in value.items()
                 if not name.startswith("io.callward/") and name != "execution"}
        if value.get("_meta") == {}:
            del value["_meta"]
        return value
    if isinstance(value, list):
        value = [normal(one) for one in value
                 if not (isinstance(one, dict)
                         and one.get("execution", {}).get("taskSupport") == "required")]
        if key in ("tools", "prompts", "resources", "resourceTemplates"):
            value.sort(key=lambda one: one["name"])
        return value
    if isinstance(value, str):
        if key == "blob":
            with contextlib.suppress(ValueError):
                value = base64.b64decode(value).decode()
        value = value.replace(f"{NAME}__", "").replace(f"#{NAME}", "")
        value = ID.sub("ID", LEVEL.sub("Any-level message", TIME.sub("TIME", value)))
        if '"PATH"' in value:
            value = "the environment"
        return "any" if key == "level" else value
    return value


def told(peer):
    """What the server has sent since the last time."""
    time.sleep(QUIET)
    messages, peer.heard = peer.heard, []
    kept = {}
    for number, one in enumerate(messages):
        method, params = one["method"], normal(one.get("params", {}))
        # a change that is announced twice is one
        one = {"method": method, "params": params}
        kept[method if is_change(one) else number] = one
    return sorted(kept.values(), key=lambda one: one["method"])


def is_change(message):
    return message["method"].endswith("list_changed")


def for_all(found):
    """What `serve` shows, where a client has an instance apart from the one that lists."""
    found = {step: one for step, one in found.items() if step.split(" ")[-1] not in CONDITIONAL}
    for one in found.values():
        if "tools" in (one["answer"] or {}):
            tools = [tool for tool in one["answer"]["tools"] if tool["name"] not in CONDITIONAL]
            one["answer"] = {**one["answer"], "tools": tools}
    return found


def without_more(expected, found):
    """Removes changes that are announced although the server announces none: a client that lists
    once more loses nothing.
    """
    for step, one in found.items():
        heard = expected.get(step, one)["heard"]
        one["heard"] = [each for each in one["heard"] if each in heard or not is_change(each)]
    return found


def record(peer, prefix):
    """All answers and messages, by step."""
    # an instance starts with the first call of its client, and has questions of its own
    peer.call(renamed({"name": "echo"}, prefix)["name"], {"message": "first"})
    time.sleep(1)
    info = {name: one for name, one in peer.server.items()
            if name not in ("serverInfo", "instructions")}
    # lists are not announced to have changed before they were first read
    heard = [one for one in told(peer) if not is_change(one)]
    found = {"initialize": {"answer": normal(info), "heard": heard}}
    for number, (method, params) in enumerate(STEPS):
        answer = None
        if params is None:
            peer.notify(method)
        else:
            try:
                answer = normal(peer.request(method, renamed(params, prefix), timeout=20))
            except raw.Failed as failed:
                answer = {"error": normal(failed.error or str(failed))}
        name = (params or {}).get("name", (params or {}).get("uri", ""))
        found[f"{number} {method} {name}"] = {"answer": answer, "heard": told(peer)}
    return found


@contextlib.contextmanager
def served(work, sandbox, era=raw.LEGACY):
    with stage.Served.serve(work, [sandbox]) as served:
        served.ready([sandbox])
        with raw.Http(served.url, era, CAPABILITIES) as peer:
            if era == raw.LEGACY:
                peer.listen()
            yield peer


def main():
    with tempfile.TemporaryDirectory(prefix="callward-everything-") as work:
        os.environ["CALLWARD_STATE_DIR"] = f"{work}/state"
        sandbox = stage.Sandbox(work, NAME)
        direct = lambda: raw.Stdio(sandbox.command(), sandbox.log, capabilities=CAPABILITIES)
        run = lambda: raw.Stdio(sandbox.drop_in(), sandbox.log, capabilities=CAPABILITIES)
        with direct() as peer:
            expected = record(peer, "")
        failed = 0
        for label, opened, prefix in (("run", run, ""),
                                      ("serve", lambda: served(work, sandbox), NAME)):
            with opened() as peer:
                found = without_more(expected, record(peer, prefix))
            if prefix:
                expected, found = for_all(expected), for_all(found)
            lines = raw.differences(expected, found)
            print(f"{label}: {len(STEPS)} steps, {len(lines)} differences")
            for line in lines:
                print(f"  {line}")
            failed += len(lines)
    return 1 if failed else 0


sys.exit(main())
