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
    work, port = pathlib.Path(work), stage.free_port()
    lines = work / "lines.txt"
    lines.write_text("")
    config = f'[servers.remote]\nurl = "http://127.0.0.1:{port}/mcp"\n'

    def server():
        return stage.Served([str(stage.HOME / "venv-1/bin/python"),
                             str(stage.HERE / "remote_server.py"), str(port), str(lines)],
                            port, work / "remote-server.log")

    with contextlib.ExitStack() as running:
        with server():
            served = running.enter_context(stage.Served.configured(work / "remote.toml", config))
            peer = running.enter_context(raw.Http(served.url))
            names = [tool["name"] for tool in peer.tools()]
            report.check("remote: lists add_line", "remote__add_line" in names, names)
            peer.call("remote__add_line", {"text": "before"})
        with server():
            seen = peer.call("remote__get_lines", {})["content"][0]["text"]
            report.check("remote: a read recovers from the restart", seen == "before\n", seen)
            peer.call("remote__add_line", {"text": "after"})
            seen = lines.read_text()
            report.check("remote: each write ran once", seen == "before\nafter\n", seen)
