# SPDX-License-Identifier: Apache-2.0
"""Certificates and credentials by which a server trusts a program, and a program trusts a server.

openssl makes all of them, for one test.
"""

import base64
import binascii
import hashlib
import json
import subprocess
import time


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True,
                          input=data).stdout


class Authority:
    """Signs certificates."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.certificate, self.key = self.request(name, "-x509")

    def request(self, name, *more, called=None):
        out, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                f"/CN={called or name}", "-out", out, "-keyout", key, *more)
        return out, key

    def sign(self, name, alternative="IP:127.0.0.1", called=None, expires=None):
        """Returns (certificate, key) for a program at the address `alternative`; `called` is the
        common name, where it matters. `expires` is a Unix time; without it, the certificate outlives every test."""
        asked, key = self.request(f"{self.name}-{name}", called=called)
        extensions = self.folder / f"{self.name}-{name}.ext"
        extensions.write_text(f"subjectAltName={alternative}\n")
        certificate = asked.with_suffix(".crt")
        if expires is not None:
            self.sign_until(expires, asked, extensions, certificate)
            return certificate, key
        openssl("x509", "-req", "-in", asked, "-CA", self.certificate, "-CAkey", self.key,
                "-CAcreateserial", "-extfile", extensions, "-out", certificate)
        return certificate, key

    # `openssl x509` counts in days.
    def sign_until(self, expires, asked, extensions, certificate):
        settings, index = self.folder / f"{self.name}.cnf", self.folder / f"{self.name}.index"
        index.write_text("")
        settings.write_text(f"[ca]\ndefault_ca = all\n[all]\ndatabase = {index}\nnew_certs_dir = {self.folder}\n"
                            "rand_serial = yes\ndefault_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n")
        begins, ends = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(at)) for at in (time.time() - 60, expires))
        openssl("ca", "-batch", "-notext", "-config", settings, "-cert", self.certificate, "-keyfile", self.key,
                "-in", asked, "-extfile", extensions, "-startdate", begins, "-enddate", ends, "-out", certificate)


class Nkey:
    """An ed25519 key in the notation of NATS: the first letter of its public name states its
    purpose."""

    PREFIXES = {"O": 14 << 3, "A": 0, "U": 20 << 3}
    SEED = 18 << 3

    def __init__(self, folder, letter):
        self.prefix = self.PREFIXES[letter]
        self.pem = folder / f"{letter}{time.monotonic_ns()}.key"
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.pem)
        # In both forms the key itself comes last.
        raw = openssl("pkey", "-in", self.pem, "-pubout", "-outform", "DER")[-32:]
        self.name = self.spell(bytes([self.prefix]) + raw)

    @staticmethod
    def spell(content):
        check = binascii.crc_hqx(content, 0).to_bytes(2, "little")
        return base64.b32encode(content + check).decode().rstrip("=")

    def seed(self):
        raw = openssl("pkey", "-in", self.pem, "-outform", "DER")[-32:]
        return self.spell(bytes([self.SEED | self.prefix >> 5, (self.prefix & 31) << 3]) + raw)

    def vouch(self, whose, **claims):
        """Returns a token in which this key states claims about another key, or about itself."""
        def spell(content):
            return base64.urlsafe_b64encode(content).rstrip(b"=")
        body = {"iat": int(time.time()), "iss": self.name, "sub": whose.name,
                "nats": {"version": 2, **claims}}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode()
        said = b".".join(spell(json.dumps(part).encode())
                         for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, body))
        # openssl wants it in a file: it reads it twice.
        to_sign = self.pem.with_suffix(".txt")
        to_sign.write_bytes(said)
        signature = openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.pem, "-in", to_sign)
        return b".".join((said, spell(signature))).decode()


class Operator:
    """The operator whom a server trusts to name its users."""

    def __init__(self, folder):
        self.folder = folder
        self.key, self.account, self.system = (Nkey(folder, letter) for letter in "OAA")

    def server_config(self):
        def account(key, **limits):
            return self.key.vouch(key, type="account", limits={
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
                "wildcards": True, "conn": -1, "leaf": -1, **limits})
        storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        return (f"operator: {self.key.vouch(self.key, type='operator')}\n"
                f"system_account: {self.system.name}\nresolver: MEMORY\nresolver_preload {{\n"
                f"  {self.account.name}: {account(self.account, **storage)}\n"
                f"  {self.system.name}: {account(self.system)}\n}}\n")

    def credentials(self, name):
        """Returns the file of a user who may do everything in the account."""
        user = Nkey(self.folder, "U")
        token = self.account.vouch(user, type="user", name=name, subs=-1, data=-1, payload=-1)
        path = self.folder / f"{name}.creds"
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed()}\n------END USER NKEY SEED------\n")
        return path
