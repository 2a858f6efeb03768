"""Stands between a gateway and one server, and writes down what the server was really asked.

Usage: tap.py LOG COMMAND ARGS...   Each request is a line of LOG: its method and parameters.
"""

import json
import subprocess
import sys
import threading


def copy(source, sink):
    for line in source:
        sink.write(line)
        sink.flush()


def main():
    log, command = sys.argv[1], sys.argv[2:]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    answers = threading.Thread(target=copy, args=(server.stdout, sys.stdout.buffer), daemon=True)
    answers.start()
    with open(log, "a", encoding="utf-8") as requests:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" in message:
                seen = {"method": message["method"], "params": message.get("params", {})}
                # Before the server sees it: a call is on record even if the server dies of it.
                requests.write(json.dumps(seen) + "\n")
                requests.flush()
            server.stdin.write(line)
            server.stdin.flush()
    server.stdin.close()
    answers.join()
    sys.exit(server.wait())


main()
