# SPDX-License-Identifier: Apache-2.0
"""A signer of requests, written from the service's published rules and from nothing else here."""

import base64
import hashlib
import hmac
import urllib.parse

HEADERS = ["content-language", "content-encoding", "content-length", "content-md5", "content-type",
           "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]


def mac(key, text):
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def canonical_headers(headers):
    ms = sorted((name.lower(), value) for name, value in headers if name.lower().startswith("x-ms-"))
    if dict(ms).get("x-ms-version", "") < "2016-05-31":
        ms = [(name, value) for name, value in ms if value]
    return "".join(f"{name}:{value}\n" for name, value in ms)


def full_text(account, method, url, headers):
    parts = urllib.parse.urlsplit(url)
    values = {name.lower(): value for name, value in headers}
    if values.get("content-length") == "0" and values["x-ms-version"] >= "2015-02-21":
        values["content-length"] = ""
    lines = [method] + [values.get(name, "") for name in HEADERS]
    parameters = {}
    for name, value in urllib.parse.parse_qsl(parts.query, keep_blank_values=True):
        parameters.setdefault(name.lower(), []).append(value)
    resource = f"/{account}{parts.path}"
    for name in sorted(parameters):
        resource += f"\n{name}:{','.join(sorted(parameters[name]))}"
    return "\n".join(lines) + "\n" + canonical_headers(headers) + resource


def lite_text(account, method, url, headers):
    parts = urllib.parse.urlsplit(url)
    values = {name.lower(): value for name, value in headers}
    lines = [method, values.get("content-md5", ""), values.get("content-type", ""),
             values.get("date", "")]
    comp = urllib.parse.parse_qs(parts.query).get("comp")
    resource = f"/{account}{parts.path}" + (f"?comp={comp[0]}" if comp else "")
    return "\n".join(lines) + "\n" + canonical_headers(headers) + resource


def service_sas(account, key, queue, fields):
    """`fields` holds sp, st, se, si, sip, spr and sv, as far as the SAS has them."""
    get = lambda name: fields.get(name, "")
    text = "\n".join([get("sp"), get("st"), get("se"), f"/queue/{account}/{queue}", get("si"),
                      get("sip"), get("spr"), get("sv")])
    return {**fields, "sig": mac(key, text)}


def account_sas(account, key, fields):
    get = lambda name: fields.get(name, "")
    lines = [account] + [get(name) for name in ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")]
    if fields["sv"] >= "2020-12-06":
        lines.append(get("ses"))
    return {**fields, "sig": mac(key, "\n".join(lines) + "\n")}
