"""Every check of the interoperability run, in order. Started by `scripts/interop.sh`.

With GATEWAY empty the same clients talk to the servers directly: that checks the checks.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import approvals
import effects
import faults
import oauth
import raw
import remote
import stage
import upgrades


def listings(report, work, server):
    """The tool list through the gateway is the server's own, member by member."""
    sandbox = stage.Sandbox(work, server)
    own = None
    for how, open_peer in listers(sandbox):
        # Servers may offer more to a client that can do more ("everything" does), so the direct
        # listing is asked for with what the gateway said it can do.
        tap = stage.Tap(stage.Sandbox(work, server))
        with open_peer(tap.command) as peer:
            found = peer.tools()
        with raw.Stdio(sandbox.command(), sandbox.log, capabilities=tap.capabilities()) as direct:
            own = direct.tools()
        compare(report, f"{server}: tools/list over {how} is the server's own", own, found)
    return own


def listers(sandbox):
    """Ways to reach a server: (label, a function from its command to a raw peer)."""
    eras = (raw.LEGACY, raw.MODERN) if stage.GATEWAY else (raw.LEGACY,)
    for era in eras:
        yield f"stdio ({era})", lambda command, era=era: raw.Stdio(
            sandbox.drop_in(command), sandbox.log, era)
    if stage.GATEWAY:
        for era in eras:
            yield f"http ({era})", lambda command, era=era: over_http(sandbox, command, era)


@contextlib.contextmanager
def over_http(sandbox, command, era):
    with stage.Served.run(sandbox, command) as served, raw.Http(served.url, era) as peer:
        yield peer


def compare(report, name, own, found):
    """Tools by name, whatever their order: a catalogue may sort them."""
    # tools that run only as tasks are withheld: tasks are not relayed
    own = [tool for tool in own if tool.get("execution", {}).get("taskSupport") != "required"]
    by_name = [{tool["name"]: tool for tool in tools} for tools in (own, found)]
    lines = raw.differences(*by_name)
    if len(found) != len(own):
        lines.append(f"{len(own)} tools became {len(found)}")
    report.check(name, not lines, "; ".join(lines[:3]) + f" ({len(lines)} differences)")


def clients(target, server):
    """The third-party clients, as (label, command line)."""
    yield "ts", [stage.NODE, str(stage.HERE / "client.mjs"), server, *target]
    for era in ("legacy", "auto"):
        yield f"py-{era}", [sys.executable, str(stage.HERE / "client.py"), era, server, *target]


def drop_in(report, work, server):
    """Each client against `callward run -- COMMAND`, over stdio and then over HTTP."""
    for label, _ in clients([], server):
        sandbox = stage.Sandbox(work, server)
        command = dict(clients(["stdio", *sandbox.drop_in()], server))[label]
        report.client(f"{label} stdio {server}", command, {"INTEROP_DIR": str(sandbox.path)})
    if stage.GATEWAY:
        for label, _ in clients([], server):
            sandbox = stage.Sandbox(work, server)
            with stage.Served.run(sandbox) as served:
                command = dict(clients(["http", served.url], server))[label]
                report.client(f"{label} http {server}", command, {"INTEROP_DIR": str(sandbox.path)})
    elif server == "everything":
        with stage.Served.everything(work) as served:
            for label, command in clients(["http", served.url], server):
                report.client(f"{label} http {server}", command, {})
    else:
        report.skipped(f"http {server}", "without a gateway this server speaks stdio only")


def together(report, work, lists):
    """All servers behind one endpoint: names carry the server's, everything else is as before."""
    if not stage.GATEWAY:
        report.skipped("serve", "several servers behind one endpoint need the gateway")
        return
    for label, _ in clients([], ""):
        sandboxes = [stage.Sandbox(work, server) for server in stage.SERVERS]
        with stage.Served.serve(work, sandboxes) as served:
            served.ready(sandboxes)
            if label == "ts":
                with raw.Http(served.url) as peer:
                    found = peer.tools()
                shown = [{**tool, "name": f"{server}__{tool['name']}"}
                         for server, own in lists.items() for tool in own]
                compare(report, "serve: tools/list is all servers' own, prefixed", shown, found)
            for sandbox in sandboxes:
                command = dict(clients(["http", served.url], sandbox.server))[label]
                report.client(f"{label} serve {sandbox.server}", command,
                              {"INTEROP_DIR": str(sandbox.path),
                               "INTEROP_PREFIX": f"{sandbox.server}__"})


def inspect(arguments):
    command = [stage.NODE, stage.INSPECTOR, "--cli", "--format", "json", "-q", *arguments]
    # Its catalogue would be in the home directory, and does not go together with --config.
    env = dict(os.environ)
    if "--config" not in arguments:
        env["MCP_CATALOG_PATH"] = str(stage.HOME / "inspector-catalog.json")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=env, timeout=120, check=False)
    try:
        return json.loads(done.stdout)["result"]
    except (ValueError, KeyError):
        return {"failed": f"{done.returncode} {done.stdout} {done.stderr}"[-300:]}


def inspector(report, work):
    """The Inspector's command line, in both eras. A file names the server, as users do it."""
    for server, tool, arguments, wanted in (
            ("everything", "echo", {"message": "hi"}, "Echo: hi"),
            ("time", "convert_time", {"source_timezone": "UTC", "time": "12:00",
                                      "target_timezone": "Asia/Tokyo"}, "21:00")):
        sandbox = stage.Sandbox(work, server)
        command, *rest = sandbox.drop_in()
        file = sandbox.path.with_suffix(".mcp.json")
        file.write_text(json.dumps({"mcpServers": {server: {"command": command, "args": rest}}}))
        targets = {"stdio": ["--config", str(file), "--server", server]}
        if stage.GATEWAY:
            with stage.Served.run(sandbox) as served:
                targets["http"] = [served.url, "--transport", "http"]
                inspect_eras(report, server, targets, tool, arguments, wanted)
        else:
            inspect_eras(report, server, targets, tool, arguments, wanted)


def inspect_eras(report, server, targets, tool, arguments, wanted):
    for how, target in targets.items():
        # Without the gateway, a server speaks the eras it speaks: only `auto` fits them all.
        for era in ("legacy", "modern") if stage.GATEWAY else ("legacy", "auto"):
            label = f"inspector {how} {server} ({era})"
            listed = inspect([*target, "--protocol-era", era, "--method", "tools/list"])
            names = [one["name"] for one in listed.get("tools", [])]
            report.check(f"{label}: lists {tool}", tool in names, listed.get("failed", names))
            result = inspect([*target, "--protocol-era", era, "--method", "tools/call",
                              "--tool-name", tool, "--tool-args-json", json.dumps(arguments)])
            report.check(f"{label}: calls {tool}", wanted in json.dumps(result), result)


def guarded(report, name, step, *arguments):
    """A step that breaks is one failed check, and the next step still runs."""
    start = time.monotonic()
    print(f"-- {name}", flush=True)
    result = None
    try:
        result = step(report, *arguments)
    except Exception as error:
        report.fail(name, f"{error!r} at {traceback.extract_tb(error.__traceback__)[-1].lineno}")
    print(f"   {name}: {time.monotonic() - start:.1f} s", flush=True)
    return result


def main():
    parts = set(sys.argv[1:]) or {"list", "use", "serve", "inspector", "effects", "kill", "upgrades",
                                "remote", "oauth", "approvals"}
    report, lists = stage.Report(), {}
    work = tempfile.mkdtemp(prefix="callward-interop-")
    print(f"gateway: {stage.GATEWAY or 'none, servers directly'}; logs: {work}", flush=True)
    for server in stage.SERVERS:
        if parts & {"list", "serve"}:
            lists[server] = guarded(report, f"list {server}", listings, work, server) or []
        if "use" in parts:
            guarded(report, f"use {server}", drop_in, work, server)
    if "serve" in parts:
        guarded(report, "serve", together, work, lists)
    for name, step in (("inspector", inspector), ("effects", effects.run), ("kill", faults.run),
                       ("upgrades", upgrades.run), ("remote", remote.run), ("oauth", oauth.run)):
        if name in parts:
            guarded(report, name, step, work)
    if "approvals" in parts:
        guarded(report, "approvals", approvals.run, work, clients, inspect)
    if not report.failed:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{report.passed} passed, {report.failed} failed", flush=True)
    sys.exit(1 if report.failed or not report.passed else 0)


main()
