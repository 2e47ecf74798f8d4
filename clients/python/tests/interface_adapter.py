# SPDX-License-Identifier: Apache-2.0
"""What clients/interface_test asks of each client, done with the Python package: see its README.md.

    interface_adapter.py                 answers calls, one line of JSON each
    interface_adapter.py serve ADDRESS   serves the handler of the tests until SIGTERM
"""

import datetime
import decimal
import json
import pathlib
import sys
import threading

import muster

client = muster.Client()
saying = threading.Lock()


def say(**what):
    with saying:  # lines of threads must not mix
        print(json.dumps(what), flush=True)


def seconds(span):
    return None if span is None else span.total_seconds()


def told(batch):
    return {"number": batch.number, "revision": batch.revision, "job": batch.job,
            "state": batch.state.name.lower(), "over": batch.over, "request_id": batch.request_id.decode(),
            "transactions": batch.transactions, "aggregated": batch.aggregated,
            "rejected": batch.rejected, "dead_lettered": batch.dead_lettered, "items": batch.items,
            "attempts": batch.attempts, "sla": seconds(batch.sla), "late_by": seconds(batch.late_by),
            "promised": seconds(batch.deadline - batch.created) if batch.deadline else None,
            "committed": batch.flow.committed, "problem": batch.problem,
            "cancel_reason": batch.cancel_reason, "traceparent": batch.traceparent,
            "labels": dict(batch.labels), "retry_of": batch.retry_of, "retried_in": list(batch.retried_in)}


def open_client(server, controller=None, ca=None, certificate=None, key=None, timeout=30, patience=120):
    global client
    client.close()
    client = muster.Client(server, controller=controller, ca=ca, certificate=certificate, key=key,
                           timeout=timeout, patience=patience)


def apply_job(definition, expected_revision=None):
    job = client.apply_job(definition, expected_revision)
    return {"name": job.name, "revised": job.revised, "revision": job.revision, "columns": job.columns,
            "outputs": [[column.name, column.kind, column.scale] for column in job.outputs],
            "groups": [{"name": group.name, "keys": group.keys,
                        "measures": [[measure.name, measure.whole, measure.scale]
                                     for measure in group.measures]} for group in job.groups]}


def submit(job, path=None, records=None, request_id=None, sla=None, traceparent="",
           handler_version=None, labels=None):
    batch = client.submit(
        job, path if records is None else muster.json_lines(records), request_id,
        lambda progress: say(durable=progress.durable), traceparent=traceparent,
        handler_version=handler_version, labels=labels, sla=None if sla is None else datetime.timedelta(seconds=sla))
    return told(batch)


def watch(batch):
    for now in client.watch(batch):
        say(status=told(now))


def call(job, line=None, fields=None, request_id=None):
    try:
        answer = client.call(job, fields if line is None else line, request_id=request_id)
    except muster.NotAccepted as refused:
        return {"outcome": "rejected" if isinstance(refused, muster.Rejected) else "dead_lettered",
                "batch": refused.batch, "line": refused.line, "reason": refused.reason}
    return {"outcome": "accepted", "batch": answer.batch, "line": answer.line,
            "outputs": [told_values(values) for values in answer.outputs]}


def told_value(value):
    if value is None:
        return None
    kind = {str: "text", int: "int", decimal.Decimal: "decimal"}[type(value)]
    return [kind, str(value)]


def told_values(values):
    return {name: told_value(value) for name, value in values.items()}


def output(batch):
    for record in client.output(batch):
        say(record=[record.line, told_values(record.values)])


def send(server, stream, events, partition=None):
    """One event with a property, or several without."""
    with muster.EventProducer(server, stream) as producer:
        if len(events) > 1:
            places = producer.send_many(events)
        else:
            [[key, body]] = events
            places = [producer.send(body, key=key, partition=partition, properties={"kind": "test"})]
    return [[place.partition, place.offset] for place in places]


def process(server, stream, group, count, fail=0, close=False):
    """Handles events until there were `count` different ones, and then stops, or closes; the first `fail` calls
    raise."""
    errors, reasons, seen, calls = [], [], set(), []
    one = threading.Lock()  # partitions are handled on threads of their own
    with muster.EventProcessor(server, stream, group, interval=0.5) as processor:
        def handle(partition, event):
            with one:
                calls.append(event.offset)
                if len(calls) <= fail:
                    raise ValueError("not yet")
                if len(seen) == count:  # it came before the server heard of the end, and is another member's
                    raise ValueError("no more")
                # Before the checkpoint: its answer may be lost with the server, and the event does not come again.
                seen.add((partition.partition, event.offset))
                say(event=[partition.partition, event.offset, event.key.decode(), event.body.decode(),
                           sorted(event.properties)])
                try:
                    partition.update_checkpoint(event)
                finally:
                    if len(seen) == count:
                        (processor.close if close else processor.stop)()

        try:
            processor.run(handle, lambda error: errors.append(error.operation),
                          on_partition_closing=lambda partition, reason: reasons.append(reason))
        except muster.Cancelled:
            if not close:
                raise
    return {"errors": errors, "reasons": sorted(set(reasons))}


def failed(transactions):
    return [[found.item, found.line, found.reason, found.record and found.record.decode(),
             found.retried_in, found.retry_of_line] for found in transactions]


def retried(batches):
    return [[one.batch, one.transactions, one.is_new] for one in batches]


def stamp(moment):
    return None if moment is None else moment.timestamp()


def told_schedule(schedule):
    return {"name": schedule.name, "revision": schedule.revision, "job": schedule.job, "cron": schedule.cron, "time_zone": schedule.time_zone,
            "at": stamp(schedule.at), "catch_up": schedule.catch_up.name.lower(),
            "labels": dict(schedule.labels), "content_bytes": schedule.content_bytes,
            "paused": schedule.paused, "next": stamp(schedule.next), "last_batch": schedule.last_batch,
            "problem": schedule.problem, "ended": schedule.ended is not None,
            "counts": [schedule.submitted, schedule.missed, schedule.failed]}


def create_schedule(name, job, records=None, path=None, cron="", time_zone="", at=None, catch_up="once",
                    labels=None, sla=None):
    return told_schedule(client.create_schedule(
        name, job, path if records is None else muster.json_lines(records), cron=cron, time_zone=time_zone,
        at=None if at is None else datetime.datetime.fromtimestamp(at),
        catch_up=muster.CatchUp[catch_up.upper()], labels=labels,
        sla=None if sla is None else datetime.timedelta(seconds=sla)))


CALLS = {
    "call": call,
    "open": open_client,
    "apply_job": apply_job,
    "submit": submit,
    "watch": watch,
    "wait": lambda batch, timeout: told(client.wait(batch, timeout)),
    "get": lambda batch: told(client.get(batch)),
    "list": lambda job="", states=(), since=None, **found_by: [told(batch) for batch in client.list_batches(
        job, states=[muster.BatchState[state.upper()] for state in states],
        since=None if since is None else datetime.datetime.fromtimestamp(since), **found_by)],
    "cancel": lambda batch, reason: told(client.cancel(batch, reason)),
    "report": lambda batch, group: [
        {"keys": dict(row.keys), "measures": {name: str(sum) for name, sum in row.measures.items()}}
        for row in client.report(batch, group)],
    "rejections": lambda batch: failed(client.rejections(batch)),
    "dead_letters": lambda batch: failed(client.dead_letters(batch)),
    "output": output,
    "retry": lambda batch, lines=None: retried(client.retry_rejections(batch, lines)),
    "create_schedule": create_schedule,
    "update_schedule": lambda name, job, cron, time_zone="", catch_up="once", labels=None, revision=None:
        told_schedule(client.update_schedule(
            name, job, cron=cron, time_zone=time_zone, catch_up=muster.CatchUp[catch_up.upper()], labels=labels,
            expected_revision=revision)),
    "get_schedule": lambda name: told_schedule(client.get_schedule(name)),
    "list_schedules": lambda: [told_schedule(schedule) for schedule in client.list_schedules()],
    "pause_schedule": lambda name: told_schedule(client.pause_schedule(name)),
    "resume_schedule": lambda name: told_schedule(client.resume_schedule(name)),
    "run_schedule": lambda name, run_id=None: told(client.run_schedule(name, run_id)),
    "delete_schedule": lambda name: client.delete_schedule(name),
    "send": send,
    "process": process,
    "receipt": lambda batch: client.receipt(batch).text,
}


def failure(error):
    return {"code": error.code.name, "message": error.message, "reason": error.reason,
            "facts": dict(error.facts), "retried": retried(error.retried), "fields": [found.field for found in error.violations],
            "problems": [[found.line, found.column, found.message]
                         for found in getattr(error, "problems", ())]}


def answer_calls():
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {"answer": CALLS[call.pop("call")](**call)}
        except muster.MusterError as error:
            answer = {"error": failure(error)}
        say(**answer)


def total(item, results):
    for transaction in item.transactions:
        customer = transaction["customer"]
        if customer == "retry" and item.attempt == 1:
            raise muster.Retry("once more", datetime.timedelta())
        if customer == "dead":
            raise muster.Dead("it never works")
        if customer == "gate":
            pathlib.Path(item.job.parameters["GATE"]).read_bytes()
        try:
            amount = decimal.Decimal(transaction["amount"])
            if item.job.outputs:
                results.output(transaction.line, {"customer": customer, "paid": amount or None,
                                                  "cents": amount * 100})
            results.add({"by_customer": muster.Row({"customer": customer},
                                                   {"spent": amount, "purchases": 1})})
        except decimal.InvalidOperation:
            results.reject(transaction.line, "amount: not a number")
        except muster.Unfit as reason:
            results.reject(transaction.line, str(reason))


def serve(address):
    server = muster.serve_handler(total, version="1", listen=address, columns=["customer", "amount"],
                                  concurrency=4)
    print(f"listening on {server.address}", flush=True)
    server.run()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        answer_calls()
