"""What the servers of a sequence share with each other and with people.

A world is made anew, at the same path, for each run of a sequence: answers can be compared byte by
byte. Only the web server stays, so that its port does too.
"""

import contextlib
import http.server
import os
import pathlib
import shutil
import sqlite3
import subprocess
import threading

import servers

class Site:
    """A web server on loopback: the files of a folder, a counter, and an answer that waits."""

    def __init__(self, folder):
        self.folder, self.count, self.released = folder, 0, threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, kind, body = site.answer(self.path)
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path):
        if path == "/favicon.ico":
            return 204, "image/x-icon", b""
        if path == "/count":
            self.count += 1
            return 200, "text/plain", b"request number %d\n" % self.count
        if path == "/wait":
            self.released.wait(60)
            return 200, "text/plain", b"released\n"
        file = self.folder / path.strip("/")
        if not file.is_file():
            return 404, "text/plain", b"not found\n"
        kind = "text/html" if file.suffix == ".html" else "text/plain"
        return 200, kind, file.read_bytes()

    def reset(self):
        self.count = 0
        self.released.clear()

    def close(self):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class World:
    """The folder of a sequence, `root`; `aside` is beside it, for what no server is asked about."""

    def __init__(self, base):
        self.root = pathlib.Path(base) / "world"
        self.aside = pathlib.Path(base) / "aside"
        self.site = Site(self.root / "site")
        self.database = "shop.db"

    def make(self):
        """Empties it. What a sequence needs in it, the sequence puts there first."""
        for folder in (self.root, self.aside):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        (self.root / "repo").mkdir()
        (self.root / "site").mkdir()
        self.database = "shop.db"
        self.site.reset()
        return self

    def init(self):
        """Makes the repository, for sequences with a git server."""
        self.git("init", "-q", "-b", "main")

    # What a person does to it, with programs of their own.

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, path):
        file = self.root / path
        shutil.rmtree(file) if file.is_dir() else file.unlink()

    def rename(self, source, target):
        (self.root / source).rename(self.root / target)

    def git(self, *arguments):
        done = subprocess.run(
            ["git", "-C", str(self.root / "repo"), *arguments], capture_output=True, text=True,
            env={**os.environ, **servers.GIT}, check=False)
        if done.returncode:
            raise RuntimeError(f"git {arguments}: {done.stderr}")
        return done.stdout

    def commit(self, message):
        """Everything in the repository, in one commit."""
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def sql(self, *statements, database=None):
        with contextlib.closing(sqlite3.connect(self.root / (database or self.database))) as base:
            for statement in statements:
                base.execute(statement)
            base.commit()

    def release(self):
        """Lets the pages go on that wait for the web server."""
        self.site.released.set()

    def end(self):
        """What is there when a sequence is over, as text by place."""
        found = {}
        for file in sorted(self.root.rglob("*")):
            place = file.relative_to(self.root)
            if ".git" in place.parts:
                continue
            if file.is_dir():
                found[f"{place}/"] = "folder"
            elif file.suffix == ".db":
                with contextlib.closing(sqlite3.connect(file)) as base:
                    found[str(place)] = "\n".join(base.iterdump())
            else:
                found[str(place)] = file.read_text(errors="replace")
        if (self.root / "repo/.git").exists():
            found["git"] = "\n".join(
                self.git(*arguments) for arguments in (
                    ["symbolic-ref", "HEAD"], ["for-each-ref"], ["status", "--porcelain"],
                    ["diff", "--cached"]))
        return found
