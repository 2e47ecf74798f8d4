#!/usr/bin/env bash
# azure-storage-queue 12.18.1 (Azure's SDK for Python): update_message(message, visibility_timeout=...), to keep a
# message for longer, also writes its text anew, as the client decoded it.
#
# Guess: without content= the call changes the visibility only, as the service does with a PUT without a body, and as
# the SDK does when it is given the message's id and receipt.
# Seen: a client reads texts in Base64 (message_decode_policy) and writes none, so it has no policy to encode. It gets
# aGVsbG8= as "hello", and asks for a longer lease. The PUT has a body with the text hello: from then on the message in
# the queue is hello, which is no Base64. With the id and the receipt the body is empty.
#
# Who it hurts: a worker in Python on a queue that others write, such as Azure Functions with their Base64. If it dies
# after it has renewed a lease, the next worker cannot decode the message; it ends as poison.
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

from azure.storage.queue import QueueClient, TextBase64DecodePolicy

text = "aGVsbG8="
queue = QueueClient.from_connection_string(ACCOUNT, "q", message_decode_policy=TextBase64DecodePolicy())
message = next(iter(queue.receive_messages()))
queue.update_message(message, visibility_timeout=60)
queue.update_message(message.id, message.pop_receipt, visibility_timeout=60)
by_message, by_id = [re.findall(rb"<MessageText>(.*)</MessageText>", body) for method, path, body in requests[-2:]]
print(message.content, by_message, by_id)
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "got aGVsbG8= as, wrote by the message, wrote by its id: $seen"
[ "$seen" = "hello [b'hello'] []" ]
