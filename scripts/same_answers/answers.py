"""Makes answers of two runs comparable: what must differ is replaced, and nothing else.

A time near the present becomes `<now>`, or how old it was when the call was made. A random value
becomes the number of its first appearance, so that a repeated one still shows.
"""

import datetime
import re

ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
# The times of a file, as the filesystem server prints them.
FILE_TIMES = re.compile(r"^(created|modified|accessed): .*$", re.MULTILINE)
# 16 hexadecimal digits: random bytes of a query. And the names of files that Playwright writes.
RANDOM = re.compile(r"\b[0-9A-F]{16}\b|\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z")
# These clocks print whole seconds, and several clients may share an answer for half of one.
EXACT = 1.6
# Older than this is part of the world, not of the call.
PRESENT = 600.0


class Comparable:
    """The replacements of one run; it knows the random values that have appeared in it."""

    def __init__(self):
        self._seen = {}

    def answer(self, result, began, ended):
        """What a client acts on in the result of a call."""
        kept = {name: result[name] for name in ("content", "structuredContent") if name in result}
        kept["isError"] = result.get("isError", False)
        return self._walk(kept, began, ended)

    def _walk(self, value, began, ended):
        if isinstance(value, dict):
            return {name: self._walk(one, began, ended) for name, one in value.items()}
        if isinstance(value, list):
            return [self._walk(one, began, ended) for one in value]
        return self._text(value, began, ended) if isinstance(value, str) else value

    def _text(self, text, began, ended):
        def relative(match):
            then = datetime.datetime.fromisoformat(match[0].replace("Z", "+00:00")).timestamp()
            if abs(began - then) > PRESENT:
                return match[0]
            return "<now>" if began - EXACT <= then <= ended + 1 else f"<{began - then:.0f} s old>"

        text = FILE_TIMES.sub(r"\1: <time>", text)
        text = RANDOM.sub(self._number, text)
        return ISO.sub(relative, text)

    def _number(self, match):
        number = self._seen.setdefault(match[0], len(self._seen) + 1)
        return f"<value {number}>"


def first_difference(left, right, width=160):
    """Both texts from shortly before the place where they part."""
    at = next((at for at, pair in enumerate(zip(left, right)) if pair[0] != pair[1]),
              min(len(left), len(right)))
    start = max(0, at - 40)
    return tuple(("…" if start else "") + text[start:start + width]
                 + ("…" if len(text) > start + width else "") for text in (left, right))
