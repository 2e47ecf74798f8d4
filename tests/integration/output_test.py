# SPDX-License-Identifier: Apache-2.0
"""Values back: what handlers return comes out byte for byte, once and in the order of the input, however
often programs are killed with SIGKILL.

    output_test.py [KILLS [SEED]]      (MUSTER names the program; defaults: 12 kills, a random seed)
"""

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import harness
from harness import MusterTest

KILLS = 12
SEED = random.SystemRandom().randrange(2**32)
ROWS = 30_000

# Gives n % 4 records for number n, none where it rejects n; later lines first, which is allowed.
HANDLER = '''
import json, sys

def work(item):
    outputs, rejected, counted = [], [], 0
    for transaction in item["transactions"]:
        number, text = transaction["fields"]
        n = int(number)
        if n % 7 == 0:
            rejected.append({"line": transaction["line"], "reason": "a multiple of 7"})
            continue
        counted += 1
        for k in range(n % 4):
            outputs.append({"line": transaction["line"], "record": {
                "id": f"{n}/{k}", "note": text, "square": n * n, "share": f"{n}.{k}"}})
    outputs.sort(key=lambda output: -output["line"])
    return {"item": item["item"], "outcome": "ok", "rejected": rejected, "outputs": outputs,
            "groups": {"by_kind": [{"kind": "all", "counted": counted}]}}

for line in sys.stdin:
    print(json.dumps(work(json.loads(line))), flush=True)
'''

JOB = '''name: squares
input: {format: csv, columns: {number: Number, text: Text}}
item: {transactions: 100}
handler: {command: [python3, HANDLER], deadline: 1h}
groups: [{name: by_kind, keys: [kind], measures: {counted: int}}]
outputs: {columns: {id: text, note: text, square: int, share: decimal(3)}}
queue: {max_attempts: ATTEMPTS}
tolerate: {rejected: 100%}
'''


def text_of(n):
    """Some are quoted in a CSV; one of many has a line end, so that a record spans lines."""
    return 'say "é", twice' if n % 5 == 0 else "two\nlines" if n % 11 == 0 else "" if n % 3 == 0 else "plain"


def expected_records(rows):
    return [(f"{n}/{k}", text_of(n), n * n, f"{n}.{k}00") for n in range(rows) if n % 7 != 0
            for k in range(n % 4)]


def as_csv(records):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("id", "note", "square", "share"))
    writer.writerows(records)
    return out.getvalue().encode()


def as_json_lines(records):
    names = ("id", "note", "square", "share")
    return "".join(json.dumps(dict(zip(names, record)), ensure_ascii=False, separators=(",", ":")) + "\n"
                   for record in records).encode()


class OutputCase(MusterTest):
    def make_input(self, rows):
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("Number", "Text"))
        writer.writerows((n, text_of(n)) for n in range(rows))
        return self.write("numbers.csv", out.getvalue())

    def make_job(self, handler=HANDLER, attempts=5):
        script = self.write("squares.py", handler)
        text = JOB.replace("HANDLER", str(script)).replace("ATTEMPTS", str(attempts))
        return self.write("squares.yaml", text)

    def output(self, batch, *more):
        done = subprocess.run(
            [harness.MUSTER, "batch", "output", str(batch), *map(str, more)], capture_output=True,
            timeout=harness.TIMEOUT_SECONDS, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class RunTest(OutputCase):
    def test_records_come_out_in_the_order_of_the_input(self):
        data, job = self.make_input(2000), self.make_job()
        records = expected_records(2000)
        code, result, errors = self.run_job(data, "--output-file", "squares.csv", job=job)
        self.assertEqual(code, 0, errors)
        self.assert_all_accounted_for(result)
        self.assertEqual((self.folder / "squares.csv").read_bytes(), as_csv(records))
        where = ("--data-dir", self.data_dir)
        self.assertEqual(self.output(result["batch"], *where), as_csv(records))
        self.assertEqual(self.output(result["batch"], "-o", "json", *where), as_json_lines(records))
        # A batch that is done already gives its records again.
        code, again, errors = self.run_job(data, "--output-file", "squares.jsonl", job=job)
        self.assertEqual((code, again["batch"]), (0, result["batch"]), errors)
        self.assertEqual((self.folder / "squares.jsonl").read_bytes(), as_json_lines(records))
        self.assertEqual([path.name for path in self.folder.glob("*.part")], [])
        self.assert_receipt_holds(result["batch"])
        self.assertEqual(self.muster("check", "--data-dir", self.data_dir).returncode, 0)

    def test_a_record_that_does_not_fit_rejects_its_line_alone_and_says_why(self):
        wrong = HANDLER.replace('"square": n * n,', '"square": n * n if n != 58 else "many",')
        data, job = self.make_input(200), self.make_job(wrong, attempts=2)
        code, result, errors = self.run_job(data, "--output-file", "squares.csv", job=job)
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["rejected"], result["dead_lettered"]),
                         (1 + sum(n % 7 == 0 for n in range(200)), 0))
        records = [record for record in expected_records(200) if not record[0].startswith("58/")]
        self.assertEqual((self.folder / "squares.csv").read_bytes(), as_csv(records))
        self.assertNotIn("handler program failed", errors)
        said = self.muster("batch", "get", result["batch"], "--data-dir", self.data_dir).stdout
        self.assertNotIn("poison: ", said)
        self.assertIn("outputs: square: 'many' is not a decimal number", said)

    def test_a_job_without_outputs_has_no_output_file(self):
        data = self.make_input(10)
        job = self.make_job()
        job.write_text("".join(line for line in job.read_text().splitlines(True)
                               if not line.startswith("outputs:")))
        code, _, errors = self.run_job(data, "--output-file", "squares.csv", job=job)
        self.assertEqual(code, 1)
        self.assertIn("the job has no outputs", errors)

    def test_an_output_file_does_not_replace_what_is_read(self):
        data, job = self.make_input(10), self.make_job()
        sources = (data, job, self.folder / "squares.py")
        before = [path.read_bytes() for path in sources]
        for path in sources:
            code, _, errors = self.run_job(data, "--output-file", path, job=job)
            self.assertEqual(code, 1)
            self.assertIn(f"--output-file would overwrite {path}, which is read", errors)
        self.assertEqual([path.read_bytes() for path in sources], before)
        self.assertFalse(self.data_dir.exists(), "no batch has begun")

    def test_a_link_stays_and_the_file_that_it_leads_to_has_the_records(self):
        data, job = self.make_input(10), self.make_job()
        (self.folder / "kept").mkdir()
        behind, link = self.write("kept/squares.csv", "old\n"), self.folder / "latest.csv"
        link.symlink_to(behind)
        dangling = self.folder / "next.csv"
        dangling.symlink_to("kept/next.csv")
        for path, leads_to in ((link, behind), (dangling, self.folder / "kept/next.csv")):
            code, _, errors = self.run_job(data, "--output-file", path, job=job)
            self.assertEqual(code, 0, errors)
            self.assertTrue(path.is_symlink())
            self.assertEqual(leads_to.read_bytes(), as_csv(expected_records(10)))

    def test_an_output_file_is_no_descriptor(self):
        data, job = self.make_input(10), self.make_job()
        link = self.folder / "link.csv"
        link.symlink_to("/dev/stdout")
        for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", link):
            code, _, errors = self.run_job(data, "--output-file", path, job=job)
            self.assertEqual(code, 1)
            self.assertIn("`muster batch output` prints", errors)
        self.assertFalse(self.data_dir.exists(), "no batch has begun")

    def test_a_reader_that_leaves_early_is_no_error_and_a_full_disk_is_one(self):
        _, result, _ = self.run_job(self.make_input(200), job=self.make_job())
        command = [harness.MUSTER, "batch", "output", str(result["batch"]), "--data-dir",
                   str(self.data_dir)]
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as pipe, open("/dev/full", "wb") as full:
            left = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True,
                                  timeout=harness.TIMEOUT_SECONDS)
            watch = subprocess.run([harness.MUSTER, "batch", "list", "--watch", *command[4:]],
                                   stdout=pipe, stderr=subprocess.PIPE, text=True,
                                   timeout=harness.TIMEOUT_SECONDS)
            cut = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True,
                                 timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((left.returncode, left.stderr), (0, ""))
        self.assertEqual((watch.returncode, watch.stderr), (0, ""))
        self.assertEqual((cut.returncode, cut.stderr), (1, "muster: the output could not be written\n"))

    def test_outputs_and_an_order_by_key_exclude_each_other(self):
        job = self.make_job()
        job.write_text(job.read_text() + "order_by: text\n")
        done = self.muster("job", "check", job)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be given together with order_by", done.stderr + done.stdout)

    def test_killed_at_random_instants_the_output_is_the_expected_file(self):
        print(f"seed {SEED}: output_test.py {KILLS} {SEED}", flush=True)
        chance = random.Random(SEED)
        data, job = self.make_input(ROWS), self.make_job(attempts=KILLS + 1)
        wanted = as_csv(expected_records(ROWS))
        begun = time.monotonic()
        code, result, errors = self.run_job(data, "--output-file", "squares.csv", job=job)
        longest = time.monotonic() - begun
        self.assertEqual(code, 0, errors)
        self.assertEqual((self.folder / "squares.csv").read_bytes(), wanted)
        kills = 0
        batches = 0
        while kills < KILLS:
            batches += 1
            self.data_dir = self.folder / f"data{batches}"
            while kills < KILLS:
                process = self.start_run(data, "--quiet", job=job)
                try:
                    process.wait(timeout=chance.uniform(0, longest))
                    break  # done before its time came
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                finally:
                    process.communicate(timeout=harness.TIMEOUT_SECONDS)
            code, result, errors = self.run_job(data, "--output-file", "again.csv", job=job)
            self.assertEqual(code, 0, errors)
            self.assertEqual((self.folder / "again.csv").read_bytes(), wanted)
            self.assert_all_accounted_for(result)
            self.assert_receipt_holds(result["batch"])
        print(f"{kills} kills over {batches} batches, every output of {len(wanted)} bytes exact",
              flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        KILLS = int(sys.argv.pop(1))
    if len(sys.argv) > 1:
        SEED = int(sys.argv.pop(1))
    harness.main()
