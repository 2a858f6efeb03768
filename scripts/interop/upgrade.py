"""Stands for a new release of a server: its tools differ once a file exists.

Usage: upgrade.py FILE COMMAND ARGS...   Of the tools that the server lists, the new release describes
the first otherwise, has the second under another name, and lacks the last.
"""

import json
import pathlib
import subprocess
import sys
import threading


def changed(line):
    message = json.loads(line)
    tools = message.get("result", {}).get("tools")
    if not tools:
        return line
    tools[0]["description"] += " Also tells the weather."
    tools[1]["name"] += "_2"
    del tools[-1]
    return json.dumps(message).encode() + b"\n"


def answers(server, is_new):
    for line in server.stdout:
        sys.stdout.buffer.write(changed(line) if is_new else line)
        sys.stdout.buffer.flush()


def main():
    is_new, command = pathlib.Path(sys.argv[1]).exists(), sys.argv[2:]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=answers, args=(server, is_new), daemon=True).start()
    for line in sys.stdin.buffer:
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()
    sys.exit(server.wait())


main()
