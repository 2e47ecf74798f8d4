# SPDX-License-Identifier: Apache-2.0
"""What no record can be blamed for costs none: programs that cannot start, or that end between items."""

import json
import os
import signal
import subprocess
import time

import harness
from harness import MusterTest

JOB = """name: tally
input: {format: lines}
item: {transactions: 10}
handler: {command: COMMAND, version: "1"}
groups:
  - {name: all, keys: [k], measures: {n: int}}
queue: {max_attempts: 2}
"""

ANSWER = """import json, os, sys
def answer(line):
    item = json.loads(line)
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups":
                      {"all": [{"k": "x", "n": len(item["transactions"])}]}}), flush=True)
"""

COUNT = ANSWER + "for line in sys.stdin: answer(line)\n"


class BlamelessTest(MusterTest):
    """max_attempts is 2: a record that is charged for another's fault is soon a dead letter."""

    def job(self, command):
        return self.write("job.yaml", JOB.replace("COMMAND", command))

    def assert_all_counted(self, lines, code, result, errors):
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["aggregated"], lines, result)
        self.assertEqual(self.rows(1, "all"), [{"k": "x", "n": str(lines)}])
        self.assert_receipt_holds(1)

    def lines(self, count):
        return self.write("in.txt", "".join(f"{i}\n" for i in range(count)))

    def test_a_deployment_that_replaces_the_folder_of_the_program_costs_no_record(self):
        program = self.folder / "deployed"
        program.mkdir()
        # The first program to come to its third item takes the folder away, and ends.
        (program / "h.py").write_text(ANSWER + f"""
for number, line in enumerate(sys.stdin):
    answer(line)
    if number == 2 and not os.path.exists({str(self.folder / 'away')!r}):
        os.rename({str(program)!r}, {str(self.folder / 'away')!r})
        sys.exit(1)
""")
        job = self.job(f"[python3, {program / 'h.py'}]")
        run = self.start_run(self.lines(400), job=job)
        seen = []
        for line in run.stderr:
            seen.append(line)
            if "before it read its item" in line:
                break
        self.assertIn("can't open file", seen[-1])
        (self.folder / "away").rename(program)
        (self.folder / "away").touch()
        output, errors = run.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assert_all_counted(400, run.returncode, json.loads(output),
                                "".join(seen) + errors)

    def test_an_answer_that_came_while_muster_was_stopped_is_taken(self):
        self.write("h.py", ANSWER + """
import pathlib, time
for line in sys.stdin:
    pathlib.Path("busy").touch()
    while not os.path.exists("go"): time.sleep(0.01)
    answer(line)
    pathlib.Path("answered").touch()
""")
        job = self.job('[python3, h.py], deadline: 2s').read_text().replace("max_attempts: 2", "max_attempts: 1")
        run = self.start_run(self.lines(1), job=self.write("job.yaml", job))
        self.await_file("busy")
        run.send_signal(signal.SIGSTOP)  # as Ctrl-Z does
        (self.folder / "go").touch()
        self.await_file("answered")
        time.sleep(2.5)  # beyond the deadline
        run.send_signal(signal.SIGCONT)
        output, errors = run.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assert_all_counted(1, run.returncode, json.loads(output), errors)

    def await_file(self, name):
        for _ in harness.looks(harness.TIMEOUT_SECONDS):
            if (self.folder / name).exists():
                return
        self.fail(f"no {name}")

    def test_a_program_that_never_starts_ends_the_run_and_costs_no_record(self):
        data = self.lines(100)
        job = self.job("[env, python3, h.py]")
        code, result, errors = self.run_job(data, job=job)
        self.assertEqual((code, result), (5, None), errors)
        self.assertIn("job.yaml:4:20: handler.command: the handler's program exited", errors)
        self.assertIn("can't open file", errors)
        self.assertIn("run the same command again", errors)
        self.write("h.py", COUNT)
        self.assert_all_counted(100, *self.run_job(data, job=job))

    def test_a_program_without_an_interpreter_is_refused_before_the_run_begins(self):
        data = self.lines(100)
        self.write("h.py", COUNT).chmod(0o755)
        job = self.job("[./h.py]")
        code, result, errors = self.run_job(data, job=job)
        self.assertEqual((code, result), (1, None), errors)
        self.assertIn("job.yaml:4:20: handler.command: ", errors)
        self.assertIn("h.py is a text without #! at its beginning", errors)
        self.write("h.py", "#!/usr/bin/env python3\n" + COUNT).chmod(0o755)
        self.assert_all_counted(100, *self.run_job(data, job=job))

    def test_a_missing_folder_for_temporary_files_costs_no_record(self):
        data = self.lines(100)
        self.write("h.py", COUNT)
        job = self.job("[python3, h.py]")
        done = subprocess.run(
            [harness.MUSTER, *self.run_arguments(data, job=job)], capture_output=True, text=True,
            timeout=harness.TIMEOUT_SECONDS, cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.folder / "gone")})
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(f"no folder for temporary files in {self.folder / 'gone'}", done.stderr)
        self.assert_all_counted(100, *self.run_job(data, job=job))

    def test_programs_may_end_after_each_answer(self):
        self.write("h.py", ANSWER + "answer(sys.stdin.readline())\n")
        self.assert_all_counted(
            400, *self.run_job(self.lines(400), "--threads", "8", job=self.job("[python3, h.py]")))

    def test_programs_may_end_after_some_answers(self):
        self.write("h.py", ANSWER + """
for number, line in enumerate(sys.stdin):
    if number == 3: sys.exit(0)  # having read an item that it does not answer
    answer(line)
""")
        self.assert_all_counted(
            400, *self.run_job(self.lines(400), "--threads", "8", job=self.job("[python3, h.py]")))


class CheckTest(MusterTest):
    """`job check` starts the program, and says what a run would come to."""

    def check(self, command, *more):
        return self.muster("job", "check", self.write("job.yaml", JOB.replace("COMMAND", command)),
                           *more)

    def test_a_program_that_waits_for_items_is_fine(self):
        self.write("h.py", COUNT)
        done = self.check("[python3, h.py]")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_program_that_cannot_work_is_refused(self):
        for name, text in (("crlf.py", "#!/usr/bin/env python3\r\n"), ("empty", ""),
                           ("lost.py", "#!/no/such/python\n"), ("plain.py", "import sys\n")):
            self.write(name, text.encode()).chmod(0o755)
        self.write("typo.py", "import jsn\n")
        self.write("greets.py", "print('hello', flush=True)\n" + COUNT)
        for command, words in (
                ("[./crlf.py]", "CR LF"), ("[./empty]", "is empty"), ("[./lost.py]", "leads nowhere"),
                ("[./plain.py]", "#!/usr/bin/env python3"), ("[python3 typo.py]", "[python3, typo.py]"),
                ("[typo.py]", "./typo.py"), ("[python3, typo.py]", "No module named 'jsn'"),
                ("[python3, -u, gone.py]", "no script"),
                ("[env, python3, gone.py]", "can't open file"),
                ("[python3, greets.py]", "wrote to stdout")):
            done = self.check(command)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("job.yaml:4:20: handler.command: ", done.stderr, command)
            self.assertIn(words, done.stderr, command)

    def test_it_starts_nothing_when_told_not_to(self):
        self.write("typo.py", "import jsn\n")
        done = self.check("[python3, typo.py]", "--no-start")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    harness.main()
