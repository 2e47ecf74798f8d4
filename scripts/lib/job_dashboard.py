# SPDX-License-Identifier: Apache-2.0
"""The rows of the dashboard of a single job, muster-job.json."""

from panels import BUSY, USEFUL, WASTED, arrived, chosen, completed, most, panel, quantile, rate, total, zero_without

UID = "muster-job"
TITLE = "muster: a job"
# What the variable muster_job chooses. Items are named after the input queue. Workers are counted by the
# job's own name, which may differ from its queues', and replicas by that of the target in the rules, which may
# be any: the variable pool takes these.
INPUT, OUTPUT = 'queue="${muster_job}-in"', 'queue="${muster_job}-out"'
QUEUES = 'queue=~"${muster_job}-(in|out)"'
POOL = 'pool=~"${muster_job}|${pool}"'
LATENCY = "muster_item_latency_seconds"
WORKER_TIME, STORAGE_CALLS = "muster_worker_time_seconds_total", "muster_storage_transactions_total"


def number(title, description, unit, expression, good=None):
    """What a row says in one number."""
    return panel(title, description, unit, (expression, title), kind="stat", width=6, height=4, good=good)


UNTIL_DEADLINE = f"min({chosen('muster_batch_deadline_remaining_seconds', INPUT)})"
NEEDED = f"max({chosen('muster_batch_eta_seconds', INPUT)})"
TO_SPARE = (f"min({chosen('muster_batch_deadline_remaining_seconds', INPUT)}"
            f" - {chosen('muster_batch_eta_seconds', INPUT)})")
PROMISE = f"min({chosen('muster_sla_target_seconds', INPUT)})"
PROGRESS = f"min({chosen('muster_batch_progress', INPUT)})"
WAITING = f"max({chosen('muster_queue_backlog', INPUT)})"

ROWS = [
    ("Is it in time?", [
        number("Time to spare",
               "Of the open batches: the least time between the end of the work, at its present rate, and the "
               "deadline. Below zero, a batch will be late. No data: no batch is open, or none has a promise.",
               "s", TO_SPARE, good=0),
        number("Time to go", "Time until the open batches are counted, at their present rate.", "s", NEEDED),
        number("Progress", "Counted share of the transactions known so far of the open batches.",
               "percentunit", PROGRESS),
        number("Items that wait", "Items in the job's queue that no worker has in hand.", "short", WAITING),
        panel("Item latency against the promise",
              "Time from the put of an item until the report has counted it: the middle, the slowest "
              "twentieth and the slowest hundredth, and the promise of the job or the rules. Gaps: nothing "
              "was counted.", "s",
              (quantile("0.5", "queue", LATENCY, INPUT), "p50"),
              (quantile("0.95", "queue", LATENCY, INPUT), "p95"),
              (quantile("0.99", "queue", LATENCY, INPUT), "p99"),
              (PROMISE, "promise"), width=12),
        panel("Deadline and time to go",
              "Of the open batches: the time until the first deadline, the time that the work still needs, "
              "and what is to spare. Gaps: no batch is open.", "s",
              (UNTIL_DEADLINE, "until the deadline"), (NEEDED, "to go"), (TO_SPARE, "to spare"), width=12),
        panel("Progress of open batches", "Counted share of the transactions known so far.", "percentunit",
              (PROGRESS, "counted")),
        panel("Transactions by outcome", "What the report has counted, each transaction once.", "ops",
              (total("outcome", rate("muster_transactions_total", INPUT)), "{{outcome}}")),
        panel("Batches completed late",
              "Batches that were complete later than promised, since their initiator started.", "short",
              (f"sum({chosen('muster_sla_violations_total', INPUT)})", "late")),
    ]),
    ("What waits?", [
        panel("Backlog",
              "Items that wait, items that workers have in hand, and results that the controller has not "
              "counted yet.", "short",
              (WAITING, "waiting"),
              (f"max({chosen('muster_queue_in_flight', INPUT)})", "in flight"),
              (f"max({chosen('muster_queue_backlog', OUTPUT)})",
               "results waiting")),
        panel("Oldest message", "Age of the oldest message that is not settled; 0: there is none.", "s",
              (most("queue", chosen("muster_queue_oldest_age_seconds", QUEUES)), "{{queue}}"),
              (PROMISE, "promise")),
        panel("Held back items",
              "Items that are split and not put, because their queue holds as many as it may.", "short",
              (zero_without(total("queue", chosen("muster_held_back_items", INPUT)), INPUT), "held back")),
        panel("Arrival against completion",
              "Items per second. Completion is what the report counts; arrival is completion and what the "
              "input queue has gained, so it is rough over short times.", "ops",
              (arrived(INPUT), "arrival"), (completed(INPUT), "completion"), width=12),
        panel("Time to drain",
              "Time in which the live processors would work off what waits, and the promise. Gaps: no "
              "live processor has finished an item.", "s",
              (f"max({chosen('muster_queue_drain_time_seconds', INPUT)})", "to drain"),
              (PROMISE, "promise"), width=12),
    ]),
    ("Who works?", [
        panel("Dequeue tasks",
              "Tasks of the processors that Prometheus reads: busy with messages, idle, and the most that "
              "may run.", "short",
              (total("state", chosen("muster_dequeue_tasks", POOL)), "{{state}}")),
        panel("Shares of the workers' time",
              "What dequeue tasks did with their time: they had messages in hand, were idle, or started a "
              "handler. Gaps: no task ran.", "percentunit",
              (f"{total('state', rate(WORKER_TIME, POOL))} / on () group_left ()"
               f" sum({rate(WORKER_TIME, POOL)})", "{{state}}"), stacked=True),
        panel("Replicas",
              "What the leading scaling agent wants for the job's target, and what it sees. Ready replicas "
              "include idle ones.", "short",
              (f"max({chosen('muster_scale_desired', POOL)})", "desired"),
              (most("state", chosen("muster_workers", POOL)), "{{state}}")),
        panel("Time of work for an item",
              "Busy time of the tasks for each item that was counted, if Prometheus reads all processors of the "
              "job. Gaps: none was counted.", "s",
              (f"sum({rate(WORKER_TIME, f'{POOL},{BUSY}')}) / sum({rate('muster_items_total', INPUT)})",
               "busy")),
        panel("Wake-ups",
              "Wake-ups of idle pools that found work: by a trigger or an open receive (push), by a delay "
              "of their own (scheduled), or by the slow check (safety), which means that a trigger was "
              "lost.", "ops",
              (total("kind", rate("muster_wakeups_total", INPUT)), "{{kind}}")),
        panel("Decisions by reason",
              "Decisions about the job's target that said something new, since the agent started, by the "
              "reason that binds them.", "short",
              (total("reason, direction", chosen("muster_scale_decisions_total", POOL)),
               "{{reason}} {{direction}}")),
    ]),
    ("What went wrong?", [
        panel("Redeliveries and duplicates",
              "Items received that had been received before: given back (returned), or of a worker that "
              "died or hung (interrupted); and results dropped because the report had counted their "
              "item: one that came again (redelivered), or of another attempt (repeated).", "ops",
              (total("reason", rate("muster_redeliveries_total", INPUT)), "{{reason}}"),
              (total("reason", rate("muster_duplicates_total", INPUT)), "duplicate {{reason}}")),
        panel("Poison",
              "Messages in the dead-letter store now, and those moved there since the services started, "
              "by the reason.", "short",
              (most("queue", chosen("muster_queue_poison", QUEUES)), "{{queue}} in the store"),
              (total("queue, reason", chosen("muster_dead_letters_total", QUEUES)), "{{queue}} {{reason}}")),
        panel("Rejected transactions",
              "Transactions that attempts rejected: unreadable (format), too large (oversized), or refused "
              "by the handler.", "ops",
              (total("reason", rate("muster_rejected_total", INPUT)), "{{reason}}")),
    ]),
    ("Cost", [
        panel("Workers' time",
              "Dequeue tasks on average: with messages in hand, idle, or starting a handler. muster cost "
              "tells what idling costs in money.", "short",
              (total("state", rate(WORKER_TIME, POOL)), "{{state}}"), stacked=True),
        panel("Workers' time for a thousand transactions",
              "Time of the tasks, idling included, for each thousand transactions that were counted, if "
              "Prometheus reads all processors of the job. Gaps: none was counted.", "s",
              (f"1000 * sum({rate(WORKER_TIME, POOL)}) / sum({rate('muster_transactions_total', INPUT)})",
               "for a thousand")),
        panel("Storage calls",
              "Calls of the queue store about the job's queues. Wasted ones failed, or looked at an empty "
              "queue; each costs money where calls are billed.", "reqps",
              (f"sum({rate(STORAGE_CALLS, f'{QUEUES},{USEFUL}')})", "useful"),
              (f"sum({rate(STORAGE_CALLS, f'{QUEUES},{WASTED}')})", "wasted"), stacked=True),
    ]),
]
