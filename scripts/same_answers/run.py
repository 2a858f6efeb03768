"""Performs every sequence directly and through the gateway, and compares. See same_answers.sh."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

import answers
import routes
import sequences
import servers
import stage
from take import Broken, Take
from world import World

# Sequences wait most of the time. Browsers do not: fewer of them at once.
WORKERS, BROWSERS = 8, 2
_print = threading.Lock()


def perform(sequence, route, world, log):
    """The answers of one run, and how many steps it had."""
    world.make()
    if "git" in sequence.servers:
        world.init()
    with routes.ROUTES[route](world, sequence.servers, log) as opened:
        take = Take(world, opened)
        sequence.perform(take)
    take.finish()
    return take


def compare(expected, found):
    """The first step that was answered differently, or None."""
    for number, (left, right) in enumerate(zip(expected.record, found.record), 1):
        if left != right:
            direct, through = answers.first_difference(left[1], right[1])
            return {"step": number, "call": left[0], "direct": direct, "through": through}
    if len(expected.record) != len(found.record):
        return {"step": 0, "call": "the number of answers",
                "direct": str(len(expected.record)), "through": str(len(found.record))}
    return None


def rows(sequence, chosen, work):
    """A row of the table for each route of a sequence."""
    row = {"sequence": sequence.name, "servers": list(sequence.servers), "steps": 0}
    reasons = [f"{name}: {why}" for name in sequence.servers if (why := servers.missing(name))]
    if reasons:
        return [{**row, "route": route, "answers": "SKIPPED", "reason": "; ".join(reasons)}
                for route in chosen]
    base = pathlib.Path(work) / sequence.name
    base.mkdir()
    world = World(base)
    found = []
    try:
        expected, failure = attempt(sequence, "direct", world, base / "direct.log")
        for route in chosen:
            # A sequence that fails without a gateway fails once, and says nothing about one.
            got, why = (None, failure) if failure else attempt(
                sequence, route, world, base / f"{route}-through.log")
            one = {**row, "route": route, "steps": expected.steps if expected else 0}
            if why:
                found.append({**one, "answers": "FAILED", "reason": why})
                continue
            difference = compare(expected, got)
            found.append({**one, "answers": "same"} if difference is None
                         else {**one, "answers": "DIFFERENT", "first": difference})
    finally:
        world.site.close()
    for one in found:
        show(one)
    return found


def attempt(sequence, route, world, log):
    """A run, or why it broke off."""
    try:
        return perform(sequence, route, world, log), None
    except Broken as broken:
        return None, f"the sequence is wrong: {broken}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"{route}: {error!r} at {last.filename}:{last.lineno}"


def show(row):
    lines = [f"{row['answers']:<9} {row['route']:<6} {row['steps']:>3} steps  "
             f"{row['sequence']} ({', '.join(row['servers'])})"]
    if "reason" in row:
        lines.append(f"          {row['reason']}")
    if "first" in row:
        first = row["first"]
        lines += [f"          answer {first['step']}, {first['call']}",
                  f"            directly: {first['direct']}",
                  f"            through:  {first['through']}"]
    with _print:
        print("\n".join(lines), file=sys.stderr, flush=True)


def default_gateway():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    for profile in ("release", "debug"):
        if (target / profile / "callward").exists():
            return target / profile / "callward"
    return target / "release/callward"


def stop(number, _):
    """Ends at once, and the gateways too: servers end when their standard input does."""
    print(f"same_answers: ended by signal {number} before its end", file=sys.stderr, flush=True)
    routes.stop()
    os._exit(128 + number)


def options():
    parser = argparse.ArgumentParser(prog="same_answers.sh")
    parser.add_argument("--gateway", type=pathlib.Path, default=default_gateway())
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--route", action="append", choices=["serve", "run", "modern"])
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    chosen, every = options(), sequences.load()
    if chosen.list:
        print("\n".join(f"{one.name} ({', '.join(one.servers)})" for one in every))
        return
    unknown = set(chosen.only or []) - {one.name for one in every}
    if unknown:
        stage.fatal(f"no such sequence: {', '.join(sorted(unknown))}; --list names them")
    if not chosen.self_check and not os.access(chosen.gateway, os.X_OK):
        stage.fatal(f"no gateway at {chosen.gateway}; build it, or say where it is with --gateway")
    stage.GATEWAY = str(chosen.gateway.resolve())
    work = tempfile.mkdtemp(prefix="callward-same-answers-")
    through = "none, directly twice" if chosen.self_check else stage.GATEWAY
    print(f"gateway: {through}; logs: {work}", file=sys.stderr, flush=True)
    found = every_row(chosen, every, work)
    report(found, chosen.json)
    failed = sum(row["answers"] in ("DIFFERENT", "FAILED") for row in found)
    passed = sum(row["answers"] == "same" for row in found)
    skipped = len(found) - passed - failed
    if not failed:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True,
          file=sys.stderr if chosen.json else sys.stdout)
    sys.exit(1 if failed or not passed else 0)


def every_row(chosen, every, work):
    began, waiting = time.monotonic(), []
    with contextlib.ExitStack() as pools:
        several, few = (pools.enter_context(concurrent.futures.ThreadPoolExecutor(size))
                        for size in (WORKERS, BROWSERS))
        for sequence in every:
            if chosen.only and sequence.name not in chosen.only:
                continue
            through = ["direct"] if chosen.self_check else [
                route for route in sequence.routes if route in (chosen.route or sequence.routes)]
            pool = few if "playwright" in sequence.servers else several
            waiting.append(pool.submit(rows, sequence, through, work))
    found = [row for future in waiting for row in future.result()]
    print(f"{len(waiting)} sequences in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return found


def report(found, as_json):
    """The table, and below it every reason, so that none of them scrolls away."""
    if as_json:
        print(json.dumps(found, indent=1))
        return
    width = max((len(row["sequence"]) for row in found), default=0)
    print(f"{'sequence':<{width}}  {'route':<6}  steps  {'answers':<9}  servers")
    for row in found:
        print(f"{row['sequence']:<{width}}  {row['route']:<6}  {row['steps']:>5}  "
              f"{row['answers']:<9}  {', '.join(row['servers'])}")
    for row in found:
        if row["answers"] == "SKIPPED":
            print(f"SKIPPED {row['sequence']} ({row['route']}): {row['reason']}")
        elif row["answers"] == "FAILED":
            print(f"FAILED {row['sequence']} ({row['route']}): {row['reason']}")


main()
