# SPDX-License-Identifier: Apache-2.0
"""Random requests: what the signer of this folder signs is accepted, and with any one part changed it
is refused. A failure prints the seed; MUSTER_TEST_SEED sets it."""

import copy
import email.utils
import os
import random
import string
import time
import unittest
import urllib.parse

import judging
import signer

CASES = 1500
TEXT = string.ascii_letters + string.digits + " -_.~/+=&%:,;!'()*@äß漢"


def seed():
    given = os.environ.get("MUSTER_TEST_SEED", "20081027")
    return random.SystemRandom().randrange(2**31) if given == "random" else int(given)


class RandomRequest:
    """A request with its signature, and the changes that must make it invalid."""

    def __init__(self, rng):
        self.rng = rng
        self.key = rng.choice(judging.KEYS)
        self.method = rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS"])
        self.queue = rng.choice(["q", "jobs", "my-queue-7"])

    def text(self, longest=12):
        return "".join(self.rng.choice(TEXT) for _ in range(self.rng.randint(1, longest)))

    def url(self, parameters):
        tail = self.rng.choice(["", f"/{self.queue}", f"/{self.queue}/messages",
                                f"/{self.queue}/messages/{urllib.parse.quote(self.text(), safe='')}"])
        account = judging.ACCOUNT + self.rng.choice(["", "", "-secondary"])
        quote = self.rng.choice([urllib.parse.quote, urllib.parse.quote_plus])
        query = "&".join(f"{quote(n, safe='')}={quote(v, safe='')}" for n, v in parameters)
        base = self.rng.choice([f"http://127.0.0.1:10001/{account}{tail}",
                                f"https://{account}.queue.localhost{tail or '/'}"])
        return base + ("?" + query if query else "")

    def parameters(self):
        names = self.rng.sample(["comp", "restype", "popreceipt", "Marker", "prefix", "timeout",
                                 "visibilitytimeout", "NumOfMessages"], self.rng.randint(0, 5))
        parameters = [(name, self.text()) for name in names]
        if parameters and self.rng.random() < 0.1:
            parameters.append((parameters[0][0], self.text()))
        return parameters

    def headers(self):
        headers = [(name, self.text().strip() or "x") for name in
                   self.rng.sample([h for h in signer.HEADERS if h not in ("date", "content-length")],
                                   self.rng.randint(0, 4))]
        now = email.utils.formatdate(time.time() + self.rng.randint(-600, 600), usegmt=True)
        headers.append((self.rng.choice(["date", "x-ms-date"]), now))
        headers.append(("content-length", str(self.rng.choice([0, 1, 65536]))))
        for name in self.rng.sample(["meta-owner", "meta-o_1", "meta-a-b", "meta-ab",
                                     "client-request-id"], self.rng.randint(0, 4)):
            headers.append(("x-ms-" + name, " ".join(self.text().split())))
        return headers


def shared_key_case(rng):
    case = RandomRequest(rng)
    url, headers = case.url(case.parameters()), case.headers()
    form = rng.choice(["full", "full", "lite", "2008"])
    if form != "2008":
        version = rng.choice(["2009-09-19", "2014-02-14", "2015-02-21", "2016-05-31", "2026-10-06"])
        headers.append(("x-ms-version", version))
    make = signer.full_text if form == "full" else signer.lite_text
    mac = signer.mac(case.key, make(judging.ACCOUNT, case.method, url, headers))
    scheme = "SharedKeyLite" if form == "lite" else "SharedKey"
    rng.shuffle(headers)
    headers.append(("authorization", f"{scheme} {judging.ACCOUNT}:{mac}"))
    request = judging.request_of(case.method, url, headers, "ListQueues")
    signed = signer.HEADERS if form == "full" else ["content-md5", "content-type", "date"]
    return request, shared_key_changes(request, signed, form == "full")


def shared_key_changes(request, signed, signs_parameters):
    changes = ["method", "path"]
    for i, (name, _) in enumerate(request["headers"]):
        if name in signed or name.startswith("x-ms-") and name != "x-ms-version":
            changes.append(("headers", i))
    for i, (name, _) in enumerate(request["query"]):
        first = [n.lower() for n, _ in request["query"]].index(name.lower())
        if signs_parameters or name == "comp" and first == i:
            changes.append(("query", i))
    return changes


def sas_case(rng):
    case = RandomRequest(rng)
    stamp = lambda offset: time.strftime(
        rng.choice(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%S.0000000Z"]),
        time.gmtime(time.time() + offset))
    fields = {"sv": rng.choice(["2015-04-05", "2020-10-02", "2020-12-06", "2026-10-06"]),
              "se": stamp(3600), "sp": "raup"}
    for name, value in (("st", stamp(-3600)), ("sip", "127.0.0.1-127.0.0.9"), ("spr", "https,http")):
        if rng.random() < 0.5:
            fields[name] = value
    policies = []
    if rng.random() < 0.5:
        fields.update({"ss": rng.choice(["q", "bqtf"]), "srt": rng.choice(["o", "sco"])})
        fields = signer.account_sas(judging.ACCOUNT, case.key, fields)
        case.queue = rng.choice(["q", "other"])
    else:
        if rng.random() < 0.3:
            policies = [("readers", "", fields.pop("se"), "p"), ("others", "", "", "")]
            fields.pop("sp")
            fields["si"] = "readers"
        fields = signer.service_sas(judging.ACCOUNT, case.key, case.queue, fields)
    pairs = list(fields.items())
    rng.shuffle(pairs)
    url = f"http://127.0.0.1:10001/{judging.ACCOUNT}/{case.queue}/messages?" + urllib.parse.urlencode(pairs)
    request = judging.request_of("GET", url, [("x-ms-version", "2026-10-06")], "GetMessages", policies)
    return request, [("query", i) for i in range(len(pairs))]


def changed(rng, request, change):
    other = copy.deepcopy(request)
    if isinstance(change, str):
        other[change] += "x"
    else:
        kind, i = change
        name, value = other[kind][i]
        at = rng.randrange(len(value)) if value else 0
        letter = "A" if value[at:at + 1] != "A" else "B"
        other[kind][i] = [name, value[:at] + letter + value[at + 1:]]
    return other


class SignersTest(unittest.TestCase):
    def test_accepts_what_another_signer_signs_and_refuses_any_change_of_it(self):
        start = seed()
        rng = random.Random(start)
        good, bad = [], []
        for _ in range(CASES):
            request, changes = rng.choice([shared_key_case, sas_case])(rng)
            good.append(request)
            bad.append(changed(rng, request, rng.choice(changes)))
        verdicts = judging.judge(good + bad)
        for request, verdict in zip(good, verdicts):
            self.assertEqual(verdict["code"], "", f"seed {start}: {request} {verdict}")
        for request, verdict in zip(bad, verdicts[CASES:]):
            self.assertEqual(verdict["code"], "AuthenticationFailed", f"seed {start}: {request}")


if __name__ == "__main__":
    unittest.main()
