# SPDX-License-Identifier: Apache-2.0
"""Every operation by plain HTTP, and what the SDKs never send: the forms of 2008, curl, both kinds of
addresses, a request that is none."""

import email.utils
import shutil
import socket
import subprocess
import unittest
import urllib.parse

import gateway
from gateway import ACCOUNT, Client, GatewayTest, message


class RestTest(GatewayTest):

    def test_does_every_operation(self):
        self.assertEqual(self.said("PUT", "/every-one", headers={"x-ms-meta-CamelCase": "V"}), "201")
        self.assertEqual(self.said("PUT", "/every-one", headers={"x-ms-meta-CamelCase": "V"}), "204")
        self.assertEqual(self.said("PUT", "/every-one"), "409 QueueAlreadyExists")
        listed = self.ask("GET", "/?comp=list&prefix=every&include=metadata")
        self.assertEqual(listed.all("Name"), ["every-one"])
        self.assertEqual(listed.all("CamelCase"), ["V"])
        put = self.ask("POST", "/every-one/messages?messagettl=-1", message("h\u00e9 \U0001f600"))
        self.assertEqual(put.said, "201")
        self.assertEqual(self.said("POST", "/every-one/messages", message("")), "201")
        properties = self.ask("GET", "/every-one?comp=metadata")
        self.assertEqual(properties.headers["x-ms-approximate-messages-count"], "2")
        self.assertEqual(properties.headers["x-ms-meta-CamelCase"], "V")
        self.assertEqual(self.said("HEAD", "/every-one?comp=metadata"), "200")
        peeked = self.ask("GET", "/every-one/messages?peekonly=true&numofmessages=32").messages()
        self.assertEqual([m["MessageText"] for m in peeked], ["h\u00e9 \U0001f600", ""])
        first, second = self.ask("GET", "/every-one/messages?numofmessages=2").messages()
        place = f"/every-one/messages/{first['MessageId']}?popreceipt={first['PopReceipt']}"
        updated = self.ask("PUT", f"{place}&visibilitytimeout=60", message("h\u00e9 \U0001f600"))
        self.assertEqual(updated.said, "204")
        place = place.split("=")[0] + "=" + updated.headers["x-ms-popreceipt"]
        self.assertEqual(self.said("DELETE", place), "204")
        properties = self.ask("GET", "/every-one?comp=metadata")
        self.assertEqual(properties.headers["x-ms-approximate-messages-count"], "1")
        self.assertEqual(self.said("DELETE", "/every-one/messages"), "204")
        self.assertEqual(self.said("PUT", "/every-one?comp=metadata"), "204")
        self.assertEqual(self.said("PUT", "/every-one?comp=acl",
                                   "<SignedIdentifiers><SignedIdentifier><Id>one</Id>"
                                   "<AccessPolicy/></SignedIdentifier></SignedIdentifiers>"), "204")
        self.assertEqual(self.ask("GET", "/every-one?comp=acl").all("Id"), ["one"])
        self.assertEqual(self.said("GET", "/?restype=service&comp=properties"), "200")
        self.assertEqual(self.said("PUT", "/?restype=service&comp=properties",
                                   "<StorageServiceProperties><Cors/></StorageServiceProperties>"),
                         "202")
        stats = self.ask("GET", "/?restype=service&comp=stats", account=f"{ACCOUNT}-secondary")
        self.assertEqual(stats.all("Status"), ["live"])
        self.assertEqual(self.said("DELETE", "/every-one"), "204")
        self.assertEqual(self.said("GET", "/every-one/messages"), "404 QueueNotFound")
        self.assertEqual(self.said("OPTIONS", "/every-one", headers={
            "Origin": "http://page", "Access-Control-Request-Method": "GET"}),
            "403 CorsPreflightFailure")

    @unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
    def test_does_what_only_the_embedded_engine_can(self):
        self.assertEqual(self.said("PUT", "/embedded"), "201")
        put = self.ask("POST", "/embedded/messages?messagettl=60&visibilitytimeout=30", message("one"))
        self.assertEqual(put.said, "201")
        self.assertEqual(self.ask("GET", "/embedded/messages").messages(), [])
        first = put.messages()[0]
        place = f"/embedded/messages/{first['MessageId']}?popreceipt={first['PopReceipt']}"
        updated = self.ask("PUT", f"{place}&visibilitytimeout=0", message("two"))
        self.assertEqual(updated.said, "204")
        self.assertEqual(self.said("DELETE", place), "400 PopReceiptMismatch")
        place = place.split("=")[0] + "=" + updated.headers["x-ms-popreceipt"]
        peeked = self.ask("GET", "/embedded/messages?peekonly=true").messages()
        self.assertEqual([m["MessageText"] for m in peeked], ["two"])
        self.assertEqual(self.said("DELETE", place), "204")
        self.assertEqual(self.said("DELETE", place), "404 MessageNotFound")

    def test_deletes_once_with_the_receipt_of_a_put(self):
        self.assertEqual(self.said("PUT", "/once"), "201")
        puts = [self.ask("POST", "/once/messages", message(text)).messages()[0] for text in "abc"]
        for put in (puts[1], puts[0], puts[2]):  # one between others, then those at the ends
            place = f"/once/messages/{put['MessageId']}?popreceipt={put['PopReceipt']}"
            self.assertEqual(self.said("DELETE", place), "204")
            self.assertEqual(self.said("DELETE", place), "404 MessageNotFound")

    @unittest.skipUnless(gateway.ON_NATS, "the embedded engine can")
    def test_says_what_an_engine_cannot_do(self):
        self.assertEqual(self.said("PUT", "/limited"), "201")
        for query, low, high in [("messagettl=60", "-1", "-1"), ("visibilitytimeout=30", "0", "0")]:
            refused = self.ask("POST", f"/limited/messages?{query}", message("x"))
            self.assertEqual(refused.said, "400 OutOfRangeQueryParameterValue")
            self.assertEqual(refused.all("MinimumAllowed") + refused.all("MaximumAllowed"),
                             [low, high])
        # Azure's first SDK for Java sends the default along.
        for query in ("?messagettl=604800", ""):
            self.assertEqual(self.said("DELETE", "/limited/messages"), "204")
            put = self.ask("POST", f"/limited/messages{query}", message("one")).messages()[0]
            self.assertIn("9999", put["ExpirationTime"])
        got = self.ask("GET", "/limited/messages").messages()[0]
        place = (f"/limited/messages/{got['MessageId']}?popreceipt={got['PopReceipt']}"
                 "&visibilitytimeout=0")
        self.assertEqual(self.said("PUT", place, message("two")), "501 NotImplemented")
        self.assertEqual(self.said("PUT", place, message("one")), "204")
        again = self.ask("GET", "/limited/messages").messages()[0]
        self.assertEqual((again["MessageText"], again["DequeueCount"]), ("one", "2"))

    def test_leases_for_as_long_as_a_get_asks(self):
        self.assertEqual(self.said("PUT", "/leases", headers={"x-ms-meta-muster-visibility": "1s"}),
                         "201")
        self.assertEqual(self.said("POST", "/leases/messages", message("long")), "201")
        long = self.ask("GET", "/leases/messages?visibilitytimeout=600").messages()
        self.assertEqual([m["MessageText"] for m in long], ["long"])
        self.assertEqual(self.said("POST", "/leases/messages", message("brief")), "201")
        brief = self.ask("GET", "/leases/messages?visibilitytimeout=1").messages()
        self.assertEqual([m["MessageText"] for m in brief], ["brief"])
        seen = []
        while len(seen) < 2:  # two leases of a second end after both had begun
            seen += [m["MessageText"] for m in
                     self.ask("GET", "/leases/messages?visibilitytimeout=1").messages()]
        self.assertEqual(seen, ["brief", "brief"])
        place = f"/leases/messages/{long[0]['MessageId']}?popreceipt={long[0]['PopReceipt']}"
        self.assertEqual(self.said("DELETE", place), "204")

    def test_takes_metadata_in_many_small_pieces_up_to_its_bound(self):
        many = {f"x-ms-meta-k{i:03}": "1234" for i in range(1000)}
        self.assertEqual(self.said("PUT", "/pieces", headers=many), "201")
        more = {f"x-ms-meta-k{i:03}": "12345" for i in range(1000)}
        self.assertEqual(self.said("PUT", "/pieces?comp=metadata", headers=more), "400 MetadataTooLarge")

    def test_speaks_the_forms_of_the_paper(self):
        self.assertEqual(self.said("PUT", "/myqueue", version=None), "201")
        data = b"\x00binary\xff"
        lifetime = "" if gateway.ON_NATS else "?messagettl=3600"
        put = self.ask("PUT", f"/myqueue/messages{lifetime}", data, version=None)
        self.assertEqual((put.said, put.body), ("201", b""))
        got = self.ask("GET", "/myqueue/messages?numofmessages=2&visibilitytimeout=60",
                       version=None).messages()
        self.assertEqual([m["MessageText"] for m in got], ["AGJpbmFyef8="])
        receipt = urllib.parse.quote(got[0]["PopReceipt"])
        self.assertEqual(self.said(
            "DELETE", f"/myqueue/messages/{got[0]['MessageId']}?popreceipt={receipt}&timeout=30",
            version=None, headers={"Content-Type": "binary/octet-stream"}), "204")

    def test_finds_the_account_in_the_host(self):
        self.assertEqual(self.said("PUT", "/by-host"), "201")
        headers = gateway.signed_headers("GET", "/by-host?comp=metadata")
        headers["Host"] = f"{ACCOUNT}.queue.localhost:{self.gateway.port}"
        self.client.connection.request("GET", "/by-host?comp=metadata", headers=headers)
        reply = self.client.connection.getresponse()
        reply.read()
        self.assertEqual(reply.status, 200)

    def test_finds_the_account_in_the_path_behind_a_host_with_dots(self):
        self.assertEqual(self.said("PUT", "/by-path"), "201")
        path = f"/{ACCOUNT}/by-path?comp=metadata"
        headers = gateway.signed_headers("GET", path)
        headers["Host"] = f"mesh-queue-gateway.ns.svc.cluster.local:{self.gateway.port}"
        self.client.connection.request("GET", path, headers=headers)
        reply = self.client.connection.getresponse()
        reply.read()
        self.assertEqual(reply.status, 200)

    def test_takes_the_dates_of_an_old_client(self):
        """The SDK for Java of 2019 writes UTC into its requests once it has read a date that does."""
        date = email.utils.formatdate(usegmt=True).replace("GMT", "UTC")
        self.assertEqual(self.said("GET", "/?comp=list", headers={"x-ms-date": date}), "200")

    def test_refuses_what_it_should(self):
        self.assertEqual(self.said("PUT", "/wrong-key", headers={"x-ms-date": "yesterday"}),
                         "403 AuthenticationFailed")
        headers = gateway.signed_headers("GET", f"/{ACCOUNT}?comp=list")
        headers["Authorization"] = headers["Authorization"][:-4] + "AAA="
        self.client.connection.request("GET", f"/{ACCOUNT}?comp=list", headers=headers)
        reply = self.client.connection.getresponse()
        reply.read()
        self.assertEqual(reply.status, 403)
        self.assertEqual(self.said("GET", "/?comp=list", version="latest"), "400 InvalidHeaderValue")
        self.assertEqual(self.said("PUT", "/limits-1"), "201")
        self.assertEqual(self.said("POST", "/limits-1/messages", message("x" * 65537)),
                         "413 RequestBodyTooLarge")
        self.assertEqual(self.said("POST", "/limits-1/messages", message("x" * 65536)), "201")
        self.assertEqual(self.said("POST", "/limits-1/messages",
                                   "<!DOCTYPE a [<!ENTITY b 'c'>]><QueueMessage/>"),
                         "400 InvalidXmlDocument")

    def test_says_in_its_own_words_that_a_request_is_none(self):
        with socket.create_connection(("127.0.0.1", self.gateway.port)) as peer:
            peer.sendall(b"nonsense\r\n\r\n")
            reply = b"".join(iter(lambda: peer.recv(4096), b""))
        self.assertIn(b"HTTP/1.1 400 ", reply)
        self.assertIn(b"<Code>InvalidInput</Code>", reply)

    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_works_with_curl(self):
        def curl(method, path, body=""):
            path = f"/{ACCOUNT}{path}"
            content = {"Content-Type": "application/xml"} if body else {}
            headers = gateway.signed_headers(method, path, body.encode(), headers=content)
            command = ["curl", "--silent", "--show-error", "--noproxy", "*", "--request", method,
                       "--write-out", "\n%{http_code}", f"http://{self.gateway.address}{path}"]
            for name, value in headers.items():
                command += ["--header", f"{name}: {value}"]
            if body:
                command += ["--data-binary", body]
            done = subprocess.run(command, capture_output=True, text=True, check=True,
                                  timeout=gateway.TIMEOUT_SECONDS)
            return done.stdout.rpartition("\n")
        self.assertEqual(curl("PUT", "/by-curl")[2], "201")
        # More than a kilobyte: curl asks first whether it may send it.
        self.assertEqual(curl("POST", "/by-curl/messages", message("x" * 60000))[2], "201")
        document, _, status = curl("GET", "/by-curl/messages")
        self.assertEqual(status, "200")
        self.assertIn("x" * 60000, document)


    def test_tells_probes_that_it_is_alive_and_ready(self):
        self.assertEqual(self.gateway.asked_for_health("/healthz"), (200, "alive"))
        self.assertEqual(self.gateway.asked_for_health("/readyz"), (200, "ready"))


class ProgramTest(unittest.TestCase):

    def run_program(self, *arguments):
        return subprocess.run([gateway.GATEWAY, *arguments], capture_output=True, text=True,
                              timeout=gateway.TIMEOUT_SECONDS)

    def test_says_what_it_is(self):
        self.assertRegex(self.run_program("--version").stdout, r"^\d+\.\d+\.\d+ \(")
        self.assertIn("--account", self.run_program("--help").stdout)

    def test_offers_no_well_known_key_to_other_machines(self):
        done = self.run_program("--listen", "0.0.0.0:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--account", done.stderr)

    def test_never_shows_a_key(self):
        done = self.run_program("--account", "sally:c2VjcmV0")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("c2VjcmV0", done.stderr)


if __name__ == "__main__":
    unittest.main()
