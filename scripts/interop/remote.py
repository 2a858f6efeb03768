"""A server over HTTP that restarts: version 1 of the Python SDK, which refuses a request without a
session under an id of its own.
"""

import contextlib
import pathlib

import raw
import stage


def run(report, work):
    if not stage.GATEWAY:
        report.skipped("remote", "how the gateway connects to the server is checked")
        return
    for transport, path in (("streamable-http", "mcp"), ("sse", "sse")):
        restart(report, pathlib.Path(work), transport, path)


def restart(report, work, transport, path):
    name, port = f"remote {transport}", stage.free_port()
    lines = work / f"{transport}-lines.txt"
    lines.write_text("")
    config = f'[servers.remote]\nurl = "http://127.0.0.1:{port}/{path}"\n'

    def server():
        return stage.Served([str(stage.HOME / "venv-1/bin/python"),
                             str(stage.HERE / "remote_server.py"), str(port), str(lines),
                             transport],
                            port, work / f"{transport}-server.log")

    with contextlib.ExitStack() as running:
        with server():
            served = stage.Served.configured(work / f"{transport}.toml", config)
            peer = running.enter_context(raw.Http(running.enter_context(served).url))
            names = [tool["name"] for tool in peer.tools()]
            report.check(f"{name}: lists add_line", "remote__add_line" in names, names)
            peer.call("remote__add_line", {"text": "before"})
        with server():
            seen = peer.call("remote__get_lines", {})["content"][0]["text"]
            report.check(f"{name}: a read recovers from the restart", seen == "before\n", seen)
            peer.call("remote__add_line", {"text": "after"})
            seen = lines.read_text()
            report.check(f"{name}: each write ran once", seen == "before\nafter\n", seen)
