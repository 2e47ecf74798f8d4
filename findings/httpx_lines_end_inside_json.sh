#!/usr/bin/env bash
# httpx 0.28.1 (for Python): iter_lines() also ends a line at U+2028, U+2029 and U+0085, which JSON allows inside a
# text.
#
# Guess: a stream of JSON lines comes line by line, as line feeds and CR LF divide it; requests 2.32.5 does it like
# that.
# Seen: one line {"a": "x", U+2028, "y"} is two lines, neither of which is JSON. requests has one line.
#
# Who it hurts: readers of change feeds, logs and event streams in JSON lines. They work until a customer's note has
# such a character; then the record fails, or is skipped with those that cannot be parsed.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check httpx==0.28.1 requests==2.32.5
cat > "$work/seen.py" << 'PYTHON'
import io
import httpx, requests

for separator in "\u2028\u2029\u0085":
    body = ('{"a": "x%sy"}\n' % separator).encode()
    response = requests.Response()
    response.raw = io.BytesIO(body)
    print(len(list(httpx.Response(200, content=body).iter_lines())), len(list(response.iter_lines())), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "lines of httpx 0.28.1 and of requests 2.32.5: $seen"
[ "$seen" = "2 1; 2 1; 2 1; " ]
