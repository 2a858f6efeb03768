"""The table of `docs/compatibility.md`: which features work between clients and servers of both
eras, through the gateway. Started by `scripts/compatibility.sh`.
"""

import difflib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import stage

FIXTURE = os.environ["FIXTURE"]
PAGE = stage.HERE.parents[1] / "docs/compatibility.md"
START, END = "<!-- begin generated: scripts/compatibility.sh -->\n\n", "\n<!-- end generated -->"
ERAS, WAYS = ("legacy", "modern"), ("http", "stdio")
CLIENTS = {"Python": [sys.executable, str(stage.HERE / "features.py")],
           "TypeScript": [stage.NODE, str(stage.HERE / "features.mjs")],
           "rmcp": [str(pathlib.Path(FIXTURE).with_name("rmcp_client"))]}


def use(client, era, target):
    """What a client says about each feature."""
    done = subprocess.run([*CLIENTS[client], era, *target], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not lines:
        raise RuntimeError(f"{client} {era} {target}: {done.returncode} {done.stderr[-2000:]}")
    return {line["feature"]: line["answer"] for line in lines}


def through(work, way, server):
    """What each client says: by client and era."""
    pairs = [(client, era) for client in CLIENTS for era in ERAS]
    path = pathlib.Path(work, f"{way}-{server}.toml")
    if way == "stdio":
        # a modern server that is asked for its era by `initialize` may end
        path.write_text(stage.one_server(command=FIXTURE, args=["--era", server], era=server))
        run = ["stdio", stage.GATEWAY, "run", "--config", str(path)]
        return {pair: use(*pair, run) for pair in pairs}
    port = stage.free_port()
    command = [FIXTURE, "--era", server, "--listen", f"127.0.0.1:{port}"]
    with stage.Served(command, port, path.with_suffix(".server.log")) as fixture:
        with stage.Served.configured(path, stage.one_server(url=fixture.url)) as gateway:
            return {pair: use(*pair, ["http", gateway.url]) for pair in pairs}


class Notes:
    """The refusals, numbered in the order of the table."""

    def __init__(self):
        self.words = []

    def cell(self, answer):
        if answer in ("yes", "–"):
            return answer
        if answer not in self.words:
            self.words.append(answer)
        code = answer.split(" ")[0]
        shown = code if code.lstrip("-").isdigit() else "no"
        return f"{shown} ({self.words.index(answer) + 1})"

    def lines(self):
        return [f"{number}. {words}" for number, words in enumerate(self.words, 1)]


def merged(answers, notes):
    """One cell: what all clients and transports say, or who says what."""
    said = {}
    for who, answer in answers.items():
        said.setdefault(answer, []).append(who)
    if len(said) == 1:
        return notes.cell(*said)
    parts = []
    for answer, who in said.items():
        whole = [client for client in CLIENTS if all((client, way) in who for way in WAYS)]
        rest = [f"{client} {way}" for client, way in who if client not in whole]
        parts.append(f"{', '.join(whole + rest)}: {notes.cell(answer)}")
    return "; ".join(parts)


def table(found):
    combinations = [(client, server) for client in ERAS for server in ERAS]
    features = list(next(iter(found.values())))
    notes = Notes()
    heads = [f"{client} → {server}" for client, server in combinations]
    lines = ["| feature | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for feature in features:
        cells = [merged({(name, way): answers[feature]
                         for (name, era, way, of), answers in found.items()
                         if (era, of) == combination}, notes)
                 for combination in combinations]
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *notes.lines()]) + "\n"


def main(arguments):
    found = {}
    with tempfile.TemporaryDirectory(prefix="callward-compatibility-") as work:
        os.environ["CALLWARD_STATE_DIR"] = f"{work}/state"
        for way in WAYS:
            for server in ERAS:
                print(f"-- {way}, {server} server", file=sys.stderr, flush=True)
                for (client, era), answers in through(work, way, server).items():
                    found[client, era, way, server] = answers
    made = table(found)
    page = PAGE.read_text()
    before, _, rest = page.partition(START)
    old, _, after = rest.partition(END)
    if old == made:
        print("docs/compatibility.md is true")
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        old.splitlines(True), made.splitlines(True), "docs/compatibility.md", "found"))
    if "--write" not in arguments:
        return 1
    PAGE.write_text(before + START + made + END + after)
    return 0


sys.exit(main(sys.argv[1:]))
