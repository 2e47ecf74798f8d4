#!/usr/bin/env bash
# kombu 5.7.0 (Celery's transports, for Python) on Azure's queues: a message is deleted from the service when it is
# read, and not when it is acknowledged.
#
# Guess: a message stays in the queue, invisible, until it is acknowledged, as kombu's Redis transport keeps it, and as
# Celery's acks_late needs it. The service has its visibility timeout for that.
# Seen: after get() the service has no message, and ack() asks it for nothing. Only an orderly close() puts the message
# back, as a new one.
#
# Who it hurts: whoever sets acks_late so that a task outlives its worker. A worker that is killed, or whose machine is
# lost, takes its task and all that it has prefetched along.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check kombu==5.7.0 azure-storage-queue==12.18.1
cat > "$work/seen.py" << 'PYTHON'
import http.server, re, threading
from kombu import Connection

queues = {}  # the service's: its texts by the name of a queue
TIMES = "".join(f"<{name}>Sun, 29 Nov 2026 00:00:00 GMT</{name}>"
                for name in ("InsertionTime", "ExpirationTime", "TimeNextVisible"))


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        _, _, name, *below = self.path.split("?")[0].split("/") + [""] * (self.path.count("/") < 2)
        known, status, items = name in queues, 200, []
        if below and self.command == "POST":
            status, items = 201, [""]
            queues[name].append(re.search("<MessageText>(.*)</MessageText>", body, re.DOTALL)[1])
        elif below and self.command == "GET":
            items = queues[name][:1]
        elif below:
            status = 204
            del queues[name][:1 if len(below) > 1 else None]
        elif name and self.command == "PUT":
            status = 204 if known else 201
            queues.setdefault(name, [])
        elif name and self.command == "DELETE":
            status = 204 if known else 404
            queues.pop(name, None)
        items = [f"<QueueMessage><MessageId>id</MessageId><DequeueCount>1</DequeueCount>{TIMES}"
                 f"<PopReceipt>receipt</PopReceipt><MessageText>{text}</MessageText></QueueMessage>" for text in items]
        form = f"<QueueMessagesList>{''.join(items)}</QueueMessagesList>" if below else "<E><Queues/></E>"
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("x-ms-approximate-messages-count", str(len(queues.get(name, []))))
        if status != 204:
            self.send_header("Content-Length", str(len(form)))
        self.end_headers()
        if status != 204:
            self.wfile.write(form.encode())

    do_GET = do_PUT = do_POST = do_DELETE = answer


service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()


def connect(**options):
    return Connection(f"azurestoragequeues://a2V5@http://127.0.0.1:{service.server_port}/devstoreaccount1",
                      transport_options=options)


with connect() as connection:
    queue = connection.SimpleQueue("work")
    queue.put("text")
    before = len(queues["work"])
    message = queue.get(timeout=10)
    held = len(queues["work"])
    message.ack()
    print(before, held, len(queues["work"]))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "kombu 5.7.0: messages in the service before get(), after it, and after ack(): $seen"
[ "$seen" = "1 0 0" ]
