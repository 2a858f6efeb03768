"""Clients that log in: third-party OAuth clients, a real authorization server, and the gateway."""

import concurrent.futures
import json
import os
import pathlib
import subprocess

import approvals
import stage

CONFORMANCE = str(stage.MODULES / "@modelcontextprotocol/conformance/dist/index.js")
# rmcp's OAuth client, an example of the gateway.
RMCP = os.environ["OAUTH_CLIENT"]
# The scenarios for servers that need no tools of a fixture. None is about authorization: those of
# the suite test clients and authorization servers.
SCENARIOS = [("2025-11-25", "server-initialize"), ("2025-11-25", "server-session-lifecycle"),
             ("2025-11-25", "ping"), ("2025-11-25", "tools-list"), ("2026-07-28", "tools-list"),
             ("2026-07-28", "caching")]


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def conformance(report, work, resource, token):
    """The suite through the login: each of its requests has a token."""
    env = {**os.environ, "BEARER_HOST": resource.split("/")[2], "BEARER_TOKEN": token}
    running = []
    for revision, scenario in SCENARIOS:
        command = [stage.NODE, "--import", str(stage.HERE / "bearer.mjs"), CONFORMANCE, "server",
                   "--url", resource, "--scenario", scenario, "--spec-version", revision]
        running.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=work))
    for (revision, scenario), process in zip(SCENARIOS, running):
        said, _ = process.communicate(timeout=60)
        report.check(f"oauth conformance {scenario} ({revision})", process.returncode == 0,
                     " ".join(said.split())[-300:])


def run(report, work):
    if not stage.GATEWAY:
        report.skipped("oauth", "the servers have no authorization of their own")
        return
    work = pathlib.Path(work)
    sandbox = stage.Sandbox(work, "filesystem")
    tokens, log = work / "tokens.txt", work / "audit.jsonl"
    tokens.touch()
    port = stage.free_port()
    issuer = f"http://127.0.0.1:{port}"
    gateway_port = stage.free_port()
    resource = f"http://127.0.0.1:{gateway_port}/mcp"
    program, *arguments = sandbox.command()
    config = "\n".join([
        "[auth]", f'resource = "{resource}"',
        "[[auth.issuers]]", f'issuer = "{issuer}"', f'audience = ["{resource}"]',
        "[audit]", f'path = "{log}"', f'open_world_path = "{log}"', 'record = "all"',
        "[servers.files]", f"command = {json.dumps(program)}", f"args = {json.dumps(arguments)}"])
    provider = stage.Served([stage.NODE, str(stage.HERE / "idp.mjs"), str(port), resource], port,
                            work / "idp.log")
    with provider, stage.Served.configured(work / "oauth.toml", config, gateway_port,
                                           {"CALLWARD_LOG": "debug"}) as served:
        env = {"INTEROP_DIR": str(sandbox.path), "INTEROP_TOKENS": str(tokens)}
        clients = {f"oauth sdk {sdk}": [stage.NODE, str(stage.HERE / "oauth.mjs"), sdk, resource]
                   for sdk in ("1", "2")}
        if os.access(RMCP, os.X_OK):
            clients["oauth rmcp"] = [RMCP, resource]
        else:
            report.skipped("oauth rmcp", f"{RMCP} is not built; for this: "
                           "cargo build -p callward-gateway --example oauth_client")
        # what may destroy is approved, where clients are identified
        operator = approvals.Operator(served, "approve")
        with operator, concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda client: report.client(*client, env, timeout=60),
                          clients.items()))
        secrets = set(tokens.read_text().split())
        of_access = [secret for secret in secrets if secret.count(".") == 2]
        if of_access:
            conformance(report, work, resource, of_access[0])
    calls = [record for record in records(log) if record["kind"] == "call"]
    principals = {record.get("principal") for record in calls}
    report.check("oauth: all calls are of the issuer's subject",
                 len(calls) >= 14 and principals == {f"{issuer}#ada"}, (len(calls), principals))
    written = [log, served.log, *pathlib.Path(served.state).rglob("*")]
    leaked = [path.name for path in written if path.is_file() and
              any(secret in path.read_text(errors="replace") for secret in secrets)]
    report.check("oauth: no file of the gateway has a token",
                 len(secrets) >= 10 and not leaked, (len(secrets), leaked))
