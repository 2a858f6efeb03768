"""Runs the sets of scenarios that `scripts/conformance.sh` describes, and compares them."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

import raw
import stage

FIXTURE = os.environ["FIXTURE"]
SUITE = [stage.NODE, str(stage.MODULES / ".bin/conformance")]
EXPECTED = stage.HERE / "conformance.expected"
REVISION = {"2025": raw.LEGACY, "2026": raw.MODERN}
ERA = {"2025": "legacy", "2026": "modern"}
SETS = ["2025-http", "2025-stdio", "2026-http", "2026-stdio", "2025-client", "2026-client"]
MORE = ["2025-modern", "2026-legacy"]
# What a gateway does on behalf of its clients; not what it does to log in to a server.
CLIENT = {
    "2025": ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
             "json-schema-2020-12-preservation"],
    "2026": ["tools_call", "request-metadata", "sep-2322-client-request-state",
             "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
             "json-schema-ref-no-deref", "json-schema-2020-12-preservation"],
}
# what `conformance_client.py` leaves to the gateway
BEYOND = ["sse-retry", "request-metadata", "http-invalid-tool-headers"]
# A legacy server has no tasks, no names for what it asks, and no way to ask things as one.
OF_MODERN = ("tasks-", "input-required-result-basic-elicitation",
             "input-required-result-multiple-input-requests")
SUMMARY = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
# how long a scenario may take, in milliseconds, and a set
SCENARIO, SECONDS = "10000", 300


# The gateway asks the suite's client before calls that may destroy, which the suite does not expect.
HARMLESS = "".join(f"[servers.suite.tools.{name}]\ndestructive = false\n"
                   for name in ("test_error_handling", "confirm_delete"))


def run(arguments, out):
    """What the suite prints; the checks of each scenario are files below `out`."""
    done = subprocess.run([*SUITE, *arguments, "--timeout", SCENARIO, "-o", str(out)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
    printed = done.stdout + done.stderr
    out.mkdir(exist_ok=True)
    (out / "suite.log").write_text(printed)
    return printed


def failures(out, scenario):
    """The checks of a scenario that fail, with their messages."""
    for file in sorted(out.glob(f"**/{scenario}-20*/checks.json")) + sorted(
            out.glob(f"**/server-{scenario}-20*/checks.json")):
        for check in json.loads(file.read_text()):
            if check["status"] == "FAILURE":
                why = check.get("errorMessage") or (check.get("details") or {}).get("message") or ""
                yield f"{check['id']}: {' '.join(str(why).split())[:200]}"


def served(url, out):
    """The scenarios for servers: whether each passes."""
    text = run(["server", "--url", url, "--requirements", REVISION[out.name[:4]]], out)
    found = {name: failed == "0" for name, _, failed in SUMMARY.findall(text)}
    if not found:
        raise RuntimeError(f"the suite ran no scenario: {stage.tail(out / 'suite.log')}")
    return found


def fixture(era, work):
    """The server of the scenarios, over HTTP."""
    port = stage.free_port()
    command = [FIXTURE, "--era", era, "--listen", f"127.0.0.1:{port}"]
    return stage.Served(command, port, work / f"fixture-{port}.log")


def direct(year, work):
    out = work / f"{year}-direct"
    with fixture(ERA[year], work) as server:
        return served(server.url, out)


def through(name, work):
    """The scenarios for servers, with the gateway in front of the server."""
    year, kind = name.split("-")
    era = kind if kind in ERA.values() else ERA[year]
    path = work / f"{name}.toml"
    if kind == "stdio":
        # `initialize`, by which the gateway finds out the era, ends rmcp's modern server
        config = stage.one_server(command=FIXTURE, args=["--era", era], era=era) + HARMLESS
        with stage.Served.configured(path, config) as gateway:
            return served(gateway.url, work / name)
    with fixture(era, work) as server:
        with stage.Served.configured(path, stage.one_server(url=server.url) + HARMLESS) as gateway:
            return served(gateway.url, work / name)


def client(name, work):
    """The scenarios for clients: the suite starts `conformance_client.py` for each."""
    year, found = name[:4], {}
    command = f"{sys.executable} {stage.HERE / 'conformance_client.py'}"
    for scenario in CLIENT[year]:
        if scenario in BEYOND and not stage.GATEWAY:
            continue
        out = work / name / scenario
        out.parent.mkdir(exist_ok=True)
        text = run(["client", "--command", command, "--scenario", scenario,
                    "--spec-version", REVISION[year]], out)
        found[scenario] = "OVERALL: PASSED" in text
    return found


def table(results, work):
    """Prints the table, and returns what fails only through the gateway."""
    print(f"{'set':14}{'passed':>8}{'failed direct':>15}{'failed through the gateway':>28}")
    ours = []
    for name, found in results.items():
        base = results.get(f"{name[:4]}-direct", {})
        if name.endswith("client"):
            base = dict.fromkeys(found, bool(stage.GATEWAY))
        if name.endswith("legacy"):
            found, base = ({scenario: passed for scenario, passed in one.items()
                            if not scenario.startswith(OF_MODERN)} for one in (found, base))
        failed = [scenario for scenario, passed in found.items() if not passed]
        mine = [scenario for scenario in failed if base.get(scenario)]
        ours += [(name, scenario) for scenario in mine]
        lost = [scenario for scenario in base if scenario not in found]
        ours += [(name, scenario) for scenario in lost]
        there = len(failed) - len(mine)
        print(f"{name:14}{len(found) - len(failed):8}{there:15}{len(mine) + len(lost):28}")
    for name, scenario in ours:
        print(f"\n{name} {scenario}")
        where = work / name / scenario if name.endswith("client") else work / name
        for line in list(failures(where, scenario)) or ["no check is recorded"]:
            print(f"    {line}")
    return {f"{name} {scenario}" for name, scenario in ours}


def main(names):
    unknown = set(names) - {*SETS, *MORE}
    if unknown:
        stage.fatal(f"there is no set {sorted(unknown)[0]}; there are: {' '.join(SETS + MORE)}")
    names = names or SETS
    work = stage.HOME / "conformance"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    jobs = {f"{year}-direct": (lambda year=year: direct(year, work))
            for year in sorted({name[:4] for name in names if not name.endswith("client")})}
    for name in names:
        job = client if name.endswith("client") else through
        if stage.GATEWAY or job is client:
            jobs[name] = lambda job=job, name=name: job(name, work)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = {name: pool.submit(job) for name, job in jobs.items()}
        results = {name: future.result() for name, future in running.items()}
    ours = table(results, work)
    broken = {f"{name} {scenario}" for name, found in results.items()
              if name.endswith("direct") or not stage.GATEWAY
              for scenario, passed in found.items() if not passed}
    expected = set()
    if EXPECTED.exists():
        lines = [line.partition("#")[0].strip() for line in EXPECTED.read_text().splitlines()]
        expected = {line for line in lines if line.split(" ")[0] in results}
    print()
    for line in sorted(broken):
        print(f"fails directly: {line}")
    for line in sorted(ours - expected) if expected else []:
        print(f"unexpected: {line}")
    for line in sorted(expected - ours):
        print(f"passes, though {EXPECTED.name} expects a failure: {line}")
    print(f"logs: {work}")
    return 1 if ours != expected or broken else 0


sys.exit(main(sys.argv[1:]))
