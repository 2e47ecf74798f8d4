#!/usr/bin/env bash
# kombu 5.7.0 (Celery's transports, for Python) on Azure's queues: names that differ in a mark only are one queue, for
# each mark becomes a dash: a.b, a_b and a-b.
#
# Guess: Azure's names have letters, digits and dashes only; what does not fit is refused, or encoded so that two names
# stay two.
# Seen: what is put into mail.high comes out of mail-high, and the service has one queue, mail-high.
#
# Who it hurts: whoever routes tasks by names such as tenant_1.mail and tenant-1.mail, or moves such queues here from
# another broker: workers get the tasks of another queue, which they do not know, and Celery discards unknown tasks.
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
    first, second = connection.SimpleQueue("mail.high"), connection.SimpleQueue("mail-high")
    first.put("for mail.high")
    print(second.get(timeout=10).payload, *queues, sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "kombu 5.7.0: what comes out of mail-high, and the service's queues: $seen"
[ "$seen" = "for mail.high, mail-high" ]
