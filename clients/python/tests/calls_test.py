# SPDX-License-Identifier: Apache-2.0
"""Calls of single records, on a mesh of real programs."""

import concurrent.futures
import decimal
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/integration"))

import harness
import muster
from mesh import LOOPBACK, READY_SECONDS
from mesh_case import MeshTest

CALLERS = 1000
CLIENTS = 4  # each has a connection, which takes 256 calls at a time
JOB = """
name: {name}
input: {{format: {format}, columns: {{who: Who, number: Number}}}}
handler: {{grpc: "{address}"}}
queue: {{visibility: 2s}}
groups:
  - {{name: by_parity, keys: [parity], measures: {{numbers: int}}}}
outputs: {{columns: {{who: text, double: int}}}}
"""


def double(item, results):
    """Numbers below 0 are refused; of the number 0 nothing comes back, of the others two records."""
    for transaction in item.transactions:
        number = int(transaction["number"])
        if number < 0:
            results.reject(transaction.line, f"{transaction['who']} is below 0")
            continue
        results.add({"by_parity": muster.Row({"parity": str(number % 2)}, {"numbers": 1})})
        for factor in (2, 20) if number else ():
            results.output(transaction.line, {"who": transaction["who"], "double": factor * number})


class CallTest(MeshTest):
    def setUp(self):
        super().setUp()
        self.clients = [muster.Client(self.mesh.server, controller=self.mesh.reporter)
                        for _ in range(CLIENTS)]
        for client in self.clients:
            self.addCleanup(client.close)
        self.client = self.clients[0]

    def apply(self, work=double, name="double", format="csv"):
        server = muster.serve_handler(work, version="1", listen=f"{LOOPBACK}:0", concurrency=2)
        self.addCleanup(server.stop, 0)
        self.client.apply_job(JOB.format(name=name, format=format, address=server.address))

    def call_all(self, call):
        """What `call(number)` returns or raises, for each caller, all at once."""
        together = threading.Barrier(CALLERS)

        def run(number):
            together.wait()
            try:
                return call(number)
            except muster.NotAccepted as refused:
                return refused

        with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
            return list(pool.map(run, range(CALLERS)))

    def assert_is_its_own(self, number, answer):
        who = f'"{number}", é'
        self.assertEqual(answer.outputs, () if number == 0 else
                         ({"who": who, "double": 2 * number}, {"who": who, "double": 20 * number}))

    def test_a_thousand_callers_share_few_batches_and_each_has_its_own_answer(self):
        self.apply()

        def call(number):
            record = {"who": f'"{number}", é', "number": -number if number % 10 == 9 else number}
            return self.clients[number % CLIENTS].call("double", record, timeout=READY_SECONDS)

        answers = self.call_all(call)
        for number, answer in enumerate(answers):
            if number % 10 == 9:
                self.assertIsInstance(answer, muster.Rejected)
                self.assertEqual(answer.reason, f'"{number}", é is below 0')
            else:
                self.assert_is_its_own(number, answer)
        self.assertEqual(len({(answer.batch, answer.line) for answer in answers}), CALLERS)
        batches = list(self.client.list_batches(labels={"muster/call": "gathered"}))
        self.assertEqual({batch.number for batch in batches}, {answer.batch for answer in answers})
        self.assertEqual(list(self.client.list_batches()), [])
        self.assertEqual({batch.number for batch in self.client.list_batches(calls=True)},
                         {answer.batch for answer in answers})
        self.assertLess(len(batches), CALLERS / 5)
        self.assertEqual(sum(batch.transactions for batch in batches), CALLERS)
        self.assertEqual(sum(batch.rejected for batch in batches), CALLERS / 10)

    def test_calls_with_request_ids_count_once_past_the_death_of_each_role(self):
        self.apply()
        calls = 200
        answered = threading.Semaphore(0)

        def call(number):
            answer = self.clients[number % CLIENTS].call(
                "double", {"who": f'"{number}", é', "number": number}, timeout=4 * READY_SECONDS,
                request_id=f"r{number}")
            answered.release()
            return answer

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            running = [pool.submit(call, number) for number in range(calls)]
            for program in (self.mesh.processors[0], self.mesh.controller, self.mesh.initiator):
                for _ in range(20):
                    self.assertTrue(answered.acquire(timeout=4 * READY_SECONDS))
                program.kill()
                program.restart()
            answers = [future.result() for future in running]
        for number, answer in enumerate(answers):
            self.assert_is_its_own(number, answer)
        again = self.client.call("double", {"who": '"7", é', "number": 7}, request_id="r7")
        self.assertEqual(again, answers[7])
        with self.assertRaises(muster.FailedPrecondition) as reused:
            self.client.call("double", {"who": "other", "number": 7}, request_id="r7")
        self.assertEqual(reused.exception.reason, "REQUEST_ID_REUSED")
        batches = list(self.client.list_batches(labels={"muster/call": "own"}))
        self.assertEqual(len(batches), calls)
        self.assertEqual({(batch.transactions, batch.aggregated) for batch in batches}, {(1, 1)})

    def test_a_deadline_says_what_the_record_waits_for(self):
        self.apply()
        self.answer("worker", "pause", "--all")
        end = time.monotonic() + READY_SECONDS
        while True:  # until the heartbeats say so
            with self.assertRaises(muster.DeadlineExceeded) as late:
                self.client.call("double", {"who": "a", "number": 1}, timeout=2, request_id="paused")
            if "paused" in late.exception.message:
                break
            self.assertLess(time.monotonic(), end, late.exception.message)
        self.assertIn("nothing was counted since 20", late.exception.message)

    def test_a_record_that_kills_its_worker_is_dead_lettered_alone(self):
        def fall(item, results):
            if any(transaction["who"] == "poison" for transaction in item.transactions):
                raise muster.Dead("poison")
            double(item, results)

        self.apply(fall)
        with self.assertRaisesRegex(muster.DeadLettered, "poison"):
            self.client.call("double", {"who": "poison", "number": 1})
        self.assertEqual(len(self.client.call("double", "bob,2").outputs), 2)

    def test_what_is_no_record_of_the_job_is_refused_at_once(self):
        self.apply()
        for record, words in (("a", "1 field"), ("a,1\nb,2", "one record"), ('a,"1', "closed"),
                              ({"who": "a", "nmber": 1}, "'nmber' is no column")):
            with self.assertRaisesRegex(muster.InvalidArgument, words):
                self.client.call("double", record)
        with self.assertRaises(TypeError):
            self.client.call("double", {"who": "a", "number": 1.5})
        with self.assertRaises(muster.NotFound) as unknown:
            self.client.call("treble", "a,1")
        self.assertEqual(unknown.exception.reason, "NO_SUCH_JOB")
        self.assertEqual(list(self.client.list_batches(calls=True)), [])

    def test_json_lines_take_objects_and_columns(self):
        self.apply(name="double_json", format="jsonl")
        for record in ('{"Who": "a", "Number": 4}', {"who": "a", "number": 4},
                       {"who": "a", "number": decimal.Decimal(4)}):
            answer = self.client.call("double_json", record)
            self.assertEqual([dict(output) for output in answer.outputs],
                             [{"who": "a", "double": 8}, {"who": "a", "double": 80}])

    def test_the_command_prints_the_records(self):
        self.apply()
        done = self.ask("call", "double", "a,4")
        self.assertEqual((done.returncode, done.stdout), (0, "who,double\na,8\na,80\n"), done.stderr)
        refused = self.ask("call", "double", "--field", "who=a", "--field", "number=-1")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("is rejected: a is below 0", refused.stderr)


if __name__ == "__main__":
    harness.main()
