"""What reaches the server: reads that repeat do not, writes do exactly once.

A tap in front of the server counts the calls, so nothing depends on what the gateway says of
itself, except for the one check that its own metrics agree.
"""

import re
import urllib.request

import raw
import stage

# Any sample line of /metrics that is about the cache and about hits.
CACHE_HIT = re.compile(r"^\S*cache\S*hit", re.IGNORECASE)


def hits(admin):
    """The sum of all counters of cache hits the gateway exposes; none if it names no such thing."""
    with urllib.request.urlopen(f"{admin}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    values = [float(line.rsplit(" ", 1)[1]) for line in lines if CACHE_HIT.match(line)]
    return sum(values) if values else None


def drive(report, peer, path, tap, cached, count_hits):
    """One client, reads and writes; `cached` says whether a repeated read may reach the server."""
    def read():
        return peer.call("read_text_file", {"path": path})["content"][0]["text"]

    label = "effects: "
    before = count_hits()
    first, again = read(), read()
    report.check(label + "two equal reads agree", first == again == "first\n", (first, again))
    reads = tap.calls("read_text_file")
    expected = 1 if cached else 2
    report.check(label + f"two equal reads reach the server {expected} time(s)",
                 reads == expected, f"{reads} times")
    if cached:
        after = count_hits()
        report.check(label + "/metrics counts the hit",
                     after is not None and after > (before or 0), f"{before} then {after}")
    for text in ("second\n", "third\n"):
        peer.call("write_file", {"path": path, "content": text})
        seen = read()
        report.check(label + f"the read after writing {text.strip()!r} is fresh", seen == text, seen)
    writes = tap.calls("write_file")
    report.check(label + "two writes reach the server twice", writes == 2, f"{writes} times")
    moved = {"source": path, "destination": f"{path}.moved"}
    peer.call("move_file", moved)
    moves = tap.calls("move_file")
    report.check(label + "a destructive call reaches the server once", moves == 1, f"{moves} times")
    # The source is gone: the server refuses, and that answer is not repeated either.
    try:
        peer.call("move_file", moved)
    except raw.Failed:
        pass
    moves = tap.calls("move_file")
    report.check(label + "one that fails reaches it once too", moves == 2, f"{moves} times")


def run(report, work):
    sandbox = stage.Sandbox(work, "filesystem")
    tap = stage.Tap(sandbox)
    path = f"{sandbox.path}/a.txt"
    if not stage.GATEWAY:
        with raw.Stdio(tap.command, sandbox.log) as peer:
            drive(report, peer, path, tap, False, lambda: None)
        return
    # nothing but this client changes the files
    options = ["--ttl", "5m"]
    with stage.Served.run(sandbox, tap.command, options) as served, raw.Http(served.url) as peer:
        drive(report, peer, path, tap, True, lambda: hits(served.admin))
