#!/usr/bin/env bash
# azure-storage-queue 12.18.1 (Azure's SDK for Python): receive_messages(max_messages=5) asks the service five times for
# one message each. peek_messages(max_messages=5) asks once.
#
# Guess: max_messages is the number that the one request of the service takes (numofmessages, up to 32).
# Seen: five requests with numofmessages=1, each made when the loop comes to its message. The number of a request is
# messages_per_page, 1 unless it is said; with messages_per_page=5 it is one request.
#
# Who it hurts: whoever pays for requests, five times as much. And whoever counts on the visibility timeouts: that of
# each message begins when the loop comes to it, so that list() first is another thing than the loop.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check azure-storage-queue==12.18.1
cat > "$work/seen.py" << 'PYTHON'
import base64, http.server, re, threading

requests = []
text = ""
MESSAGE = """<QueueMessage><MessageId>11111111-1111-1111-1111-111111111111</MessageId>
<InsertionTime>Fri, 09 Oct 2026 21:04:30 GMT</InsertionTime>
<ExpirationTime>Fri, 16 Oct 2026 21:04:30 GMT</ExpirationTime>
<PopReceipt>receipt</PopReceipt><TimeNextVisible>Fri, 09 Oct 2026 23:29:20 GMT</TimeNextVisible>"""


class Queue(http.server.BaseHTTPRequestHandler):  # as much of Azure's service as is needed here
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        requests.append((self.command, self.path, body))
        count = int((re.findall(r"numofmessages=(\d+)", self.path) or ["1"])[0])
        got = f"<DequeueCount>1</DequeueCount><MessageText>{text}</MessageText>" if self.command == "GET" else ""
        messages = f"{MESSAGE}{got}</QueueMessage>" * count
        answer = f"<?xml version='1.0'?><QueueMessagesList>{messages}</QueueMessagesList>".encode()
        self.send_response({"GET": 200, "POST": 201}.get(self.command, 204))
        self.send_header("x-ms-popreceipt", "next")
        self.send_header("x-ms-time-next-visible", "Fri, 09 Oct 2026 23:29:20 GMT")
        self.send_header("Content-Type", "application/xml")
        if self.command in ("GET", "POST"):
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command in ("GET", "POST"):
            self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *ignored):
        pass


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Queue)
threading.Thread(target=service.serve_forever, daemon=True).start()
KEY = base64.b64encode(b"key").decode()
ACCOUNT = (f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey={KEY};"
           f"QueueEndpoint=http://127.0.0.1:{service.server_port}/account;")

from azure.storage.queue import QueueClient

text = "text"
queue = QueueClient.from_connection_string(ACCOUNT, "q")


def asked(get):
    del requests[:]
    count = len(list(get()))
    return f"{count} of " + "+".join(re.findall(r"numofmessages=(\d+)", " ".join(path for _, path, _ in requests)))


print(asked(lambda: queue.receive_messages(max_messages=5)), "|",
      asked(lambda: queue.receive_messages(max_messages=5, messages_per_page=5)), "|",
      asked(lambda: queue.peek_messages(max_messages=5)))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "receive_messages of 5, of 5 with pages of 5, peek_messages of 5: $seen"
[ "$seen" = "5 of 1+1+1+1+1 | 5 of 5 | 5 of 5" ]
