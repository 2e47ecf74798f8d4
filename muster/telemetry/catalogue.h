// SPDX-License-Identifier: Apache-2.0

// The catalogue: every metric of muster. Its reference, docs/operations/metrics.md, is checked
// against it.
//
// Names follow Prometheus: counters end in _total, and a unit is part of the name. Batch ids are
// never labels. The label `queue` is a logical queue, such as "retail-in", whose partitions count
// together, and for the queue gateway "account/queue"; `pool` is a job where dequeue tasks are
// counted, and a target of the rules where replicas are.
#pragma once

#include <array>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/telemetry/metric.h"

namespace muster::telemetry {

// Upper bounds in seconds.
// Of the way of an item through the mesh: from a few milliseconds, which an idle mesh needs, to the
// hours of a night's work.
inline constexpr double kItemSeconds[] = {0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,
                                          1,     2.5,  5,     10,   30,   60,   150,
                                          300,   600,  1800,  3600, 7200, 14400};
// Of a sync of a disk or a call: a fast disk takes some 0.3 ms.
inline constexpr double kSyncSeconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                          0.025,  0.05,    0.1,    0.25,  0.5,    1,     5};
// Of a call of the API: streams that wait for news stay open for hours.
inline constexpr double kCallSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                          0.25,   0.5,   1,      2.5,   5,    10,    60,   600};
// Of a call of a handler: linked code needs less than a millisecond, a program may work for hours.
inline constexpr double kHandlerSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                             0.1,    0.25,  0.5,    1,     2.5,  5,     10,
                                             30,     60,    300,    1800,  7200};
// Of a start: a process needs a tenth of a second, a pod on a new machine minutes.
inline constexpr double kStartSeconds[] = {0.1, 0.25, 0.5, 1,   2.5, 5,  10,
                                           20,  30,   60,  120, 300, 600};

// The results of work, as the report has them.
inline constexpr CounterMetric<2> kTransactions{
    "muster_transactions_total",
    "transactions",
    kController,
    {"queue", "outcome"},
    "Transactions that the report has counted, each once: aggregated, rejected or dead_lettered"};
inline constexpr CounterMetric<2> kItems{
    "muster_items_total",
    "items",
    kController,
    {"queue", "outcome"},
    "Items that the report has counted, each once: aggregated or dead_lettered"};
inline constexpr HistogramMetric<1> kItemLatency{
    "muster_item_latency_seconds",
    "seconds",
    kController,
    {"queue"},
    "Time from the put of an item into its queue until the report has counted it",
    kItemSeconds};
inline constexpr CounterMetric<2> kDuplicates{
    "muster_duplicates_total",
    "results",
    kController,
    {"queue", "reason"},
    "Results dropped because the report had counted their item before: redelivered (the result "
    "itself came again) or repeated (another attempt at the item, or another submission of its "
    "result)"};
inline constexpr CounterMetric<2> kRejected{
    "muster_rejected_total",
    "transactions",
    kProcessor,
    {"queue", "reason"},
    "Transactions that an attempt rejected: format (unreadable), oversized, or handler (by the "
    "handler); an item that is worked on again counts again"};

// The handlers.
inline constexpr HistogramMetric<2> kHandlerCall{
    "muster_handler_call_duration_seconds",
    "seconds",
    kProcessor,
    {"queue", "outcome"},
    "Time of a call of the job's handler, the start of its program and the wait for its server "
    "included, by what it ended with: ok, retry, defer, dead, unfit (a value that the job cannot "
    "hold) or release (it had to stop)",
    kHandlerSeconds};
inline constexpr CounterMetric<2> kHandlerRestarts{
    "muster_handler_restarts_total",
    "restarts",
    kProcessor,
    {"queue", "reason"},
    "Programs of handlers, and connections to handler servers, that another one had to follow: "
    "finished (it ended as it may), ended (it died, or closed its pipes), deadline (an item got no "
    "answer in time), answer (it broke the contract), not_started (there was none, or it took no "
    "item), stopped (its item had to stop)"};

// The queues.
inline constexpr GaugeMetric<1> kQueueBacklog{"muster_queue_backlog",
                                              "messages",
                                              kInitiator | kQueueGateway,
                                              {"queue"},
                                              "Messages that wait, now or after a delay"};
inline constexpr GaugeMetric<1> kQueueInFlight{"muster_queue_in_flight",
                                               "messages",
                                               kInitiator | kQueueGateway,
                                               {"queue"},
                                               "Messages that workers have leased"};
inline constexpr GaugeMetric<1> kQueuePoison{"muster_queue_poison",
                                             "messages",
                                             kInitiator | kQueueGateway,
                                             {"queue"},
                                             "Messages in the dead-letter store"};
inline constexpr GaugeMetric<1> kQueueOldestAge{
    "muster_queue_oldest_age_seconds",
    "seconds",
    kInitiator | kQueueGateway,
    {"queue"},
    "Age of the oldest message that is not settled; 0: there is none",
    {},
    Fold::kMax};
inline constexpr GaugeMetric<1> kQueueDrainTime{"muster_queue_drain_time_seconds",
                                                "seconds",
                                                kInitiator,
                                                {"queue"},
                                                "Time in which the live processors would work off "
                                                "what waits; absent while none has finished an "
                                                "item",
                                                {},
                                                Fold::kMax};
inline constexpr GaugeMetric<1> kHeldBackItems{
    "muster_held_back_items",
    "items",
    kInitiator,
    {"queue"},
    "Items that this initiator has split and not put, because the queue holds as many as it may"};
inline constexpr GaugeMetric<0> kHeldBackBatches{
    "muster_held_back_batches", "batches", kInitiator, {}, "Batches that have such items"};
inline constexpr CounterMetric<0> kHeldBackTime{
    "muster_held_back_seconds_total",
    "seconds",
    kInitiator,
    {},
    "Time for which this initiator held batches back from full queues, added up over the queues"};
inline constexpr CounterMetric<2> kRedeliveries{
    "muster_redeliveries_total",
    "messages",
    kEveryRole,
    {"queue", "reason"},
    "Messages received that had been received before: interrupted (a handler had begun on it, and "
    "its worker died or hung) or returned (given back, or its lease ended before a handler began)"};
inline constexpr CounterMetric<2> kDeadLetters{
    "muster_dead_letters_total",
    "messages",
    kEveryRole,
    {"queue", "reason"},
    "Messages moved to the dead-letter store: attempts (the last one failed, or none was left), "
    "crash (the worker of the last one died or hung), refused (the handler said that it will never "
    "work, or it is malformed), output (what it returned fits no queue) or result (a result that "
    "no report can count)"};
inline constexpr CounterMetric<1> kLeasesLost{
    "muster_leases_lost_total",
    "leases",
    kProcessor,
    {"queue"},
    "Leases of items that ran out or went to another worker before the item was settled; what this "
    "worker did is done again"};
inline constexpr CounterMetric<1> kSuspects{
    "muster_suspects_total",
    "items",
    kProcessor,
    {"queue"},
    "Items received whose worker had died or hung with them"};
inline constexpr CounterMetric<0> kDeadHolders{
    "muster_dead_holders_total",
    "instances",
    kEveryRole,
    {},
    "Dead instances whose messages this service has given back"};
inline constexpr CounterMetric<1> kDeadHolderMessages{
    "muster_dead_holder_messages_total",
    "messages",
    kEveryRole,
    {"queue"},
    "Messages that dead instances had leased, and that this service has given back to others"};
inline constexpr CounterMetric<1> kRefilledItems{
    "muster_refilled_items_total",
    "items",
    kInitiator,
    {"queue"},
    "Items put again from the ledger, because no queue had them and the report did not either"};
inline constexpr CounterMetric<1> kDamage{
    "muster_damage_found_total",
    "reads",
    kEveryService,
    {"where"},
    "Reads of this service that met damaged bytes: store (a record of queues, ledger, records or "
    "streams), report, blob, or content (of a batch); damage that stays is met again"};
inline constexpr CounterMetric<3> kStorageTransactions{
    "muster_storage_transactions_total",
    "calls",
    kEveryRole,
    {"queue", "operation", "useful"},
    "Calls of the queue store by what they do; useful=false: failed, or looked at an empty queue"};
inline constexpr CounterMetric<2> kWakeups{
    "muster_wakeups_total",
    "wakeups",
    kProcessor,
    {"queue", "kind"},
    "Wake-ups of an idle pool that found work: push (a trigger, or a message that came to an open "
    "receive), scheduled (a delay of its own), safety (the slow check: a trigger was lost)"};

// The queues once more, by OpenTelemetry's conventions for messaging, whose spans have the same
// attributes (docs/tracing.md).
inline constexpr char kMessagingSystem[] = "muster";
inline constexpr std::array<absl::string_view, 4> kMessagingLabels = {
    "messaging_destination_name", "messaging_operation_name", "messaging_system", "error_type"};
inline constexpr HistogramMetric<4> kMessagingOperation{
    "messaging_client_operation_duration_seconds",
    "seconds",
    kEveryRole,
    kMessagingLabels,
    "Time of a call of the queue store that sends, receives or settles messages, waits for a first "
    "message left out; error_type: the status of one that failed",
    kSyncSeconds};
inline constexpr CounterMetric<4> kMessagingSent{
    "messaging_client_sent_messages_total", "messages", kEveryRole, kMessagingLabels,
    "Messages that this service has sent to a queue, or tried to, with an error_type"};
inline constexpr CounterMetric<4> kMessagingConsumed{
    "messaging_client_consumed_messages_total", "messages", kEveryRole, kMessagingLabels,
    "Messages that this service has received, those that came again included"};
inline constexpr HistogramMetric<4> kMessagingProcess{
    "messaging_process_duration_seconds",
    "seconds",
    kProcessor,
    kMessagingLabels,
    "Time of an attempt at an item, reading, handler and result together; error_type: retry or "
    "dead",
    kHandlerSeconds};

// The workers.
inline constexpr GaugeMetric<2> kDequeueTasks{"muster_dequeue_tasks",
                                              "tasks",
                                              kProcessor,
                                              {"pool", "state"},
                                              "Dequeue tasks of a job's pool: busy, idle, and max "
                                              "(the most that may run)"};
inline constexpr CounterMetric<2> kWorkerTime{"muster_worker_time_seconds_total",
                                              "seconds",
                                              kProcessor,
                                              {"pool", "state"},
                                              "Time of all dequeue tasks of a pool: busy (with "
                                              "messages in hand), idle, or starting (making a "
                                              "handler)"};
inline constexpr GaugeMetric<2> kWorkers{
    "muster_workers",
    "replicas",
    kScalingAgent,
    {"pool", "state"},
    "Replicas of a target as the leading agent sees them: ready (idle ones included), idle, "
    "starting, parked, draining"};
inline constexpr HistogramMetric<1> kWorkerColdStart{
    "muster_worker_cold_start_seconds",
    "seconds",
    kScalingAgent,
    {"pool"},
    "Time from the order for a replica until its first heartbeat at work",
    kStartSeconds};

// Scaling.
inline constexpr GaugeMetric<1> kScaleDesired{
    "muster_scale_desired",
    "replicas",
    kScalingAgent,
    {"pool"},
    "Replicas that the leading agent wants, parked ones included"};
inline constexpr GaugeMetric<1> kScaleActuated{
    "muster_scale_actuated",
    "flag",
    kScalingAgent,
    {"pool"},
    "1 where the agent or another autoscaler starts the replicas that are wanted; 0 where nobody "
    "does: in mode observe or notify, or in a dry run"};
inline constexpr GaugeMetric<1> kScaleForecast{"muster_scale_forecast",
                                               "items_per_second",
                                               kScalingAgent,
                                               {"pool"},
                                               "Arrivals that nine of ten such quarters of an hour "
                                               "do not exceed, for the time of a cold start "
                                               "from now; absent until two weeks were seen"};
inline constexpr CounterMetric<3> kScaleDecisions{
    "muster_scale_decisions_total",
    "decisions",
    kScalingAgent,
    {"pool", "reason", "direction"},
    "Decisions that said something new, by the reason that binds them, and up, down or hold"};

// The promises.
inline constexpr GaugeMetric<1> kSlaTarget{
    "muster_sla_target_seconds",
    "seconds",
    kInitiator | kScalingAgent,
    {"queue"},
    "Promised time: of a batch by its job (initiator), of an item by the rules (scaling agent)",
    {},
    Fold::kMin};
inline constexpr CounterMetric<1> kSlaViolations{"muster_sla_violations_total",
                                                 "batches",
                                                 kInitiator,
                                                 {"queue"},
                                                 "Batches that were complete later than promised"};
inline constexpr GaugeMetric<1> kBatchProgress{
    "muster_batch_progress",
    "ratio",
    kInitiator,
    {"queue"},
    "Counted share, 0 to 1, of the transactions known so far of the open batches",
    {},
    Fold::kMin};
inline constexpr GaugeMetric<1> kBatchEta{
    "muster_batch_eta_seconds",
    "seconds",
    kInitiator,
    {"queue"},
    "Time until the open batches are counted, at the rate since their first result; the latest of "
    "them",
    {},
    Fold::kMax};
inline constexpr GaugeMetric<1> kBatchDeadlineRemaining{
    "muster_batch_deadline_remaining_seconds",
    "seconds",
    kInitiator,
    {"queue"},
    "Time until the first deadline of the open batches; negative: it has passed",
    {},
    Fold::kMin};
inline constexpr GaugeMetric<0> kStoppedUploads{
    "muster_stopped_uploads",
    "uploads",
    kInitiator,
    {},
    "Uploads that were cut off, and wait for their clients until they expire; with as many as "
    "--max-stopped-uploads no further one begins"};
inline constexpr GaugeMetric<0> kStoppedUploadBytes{
    "muster_stopped_upload_bytes", "bytes", kInitiator, {}, "What has arrived of these"};

// Who works on which partition, and who waits. A group of processors that read an event stream is
// "STREAM/GROUP"; the controllers are "controller/ACCOUNT".
inline constexpr unsigned kHasMembers = kInitiator | kController | kProcessor;
inline constexpr GaugeMetric<1> kPartitionsOwned{
    "muster_partitions_owned",
    "partitions",
    kHasMembers,
    {"group"},
    "Partitions that the members in this service work on; an initiator has those of its callers"};
inline constexpr GaugeMetric<1> kPartitionsUnowned{
    "muster_partitions_unowned",
    "partitions",
    kHasMembers,
    {"group"},
    "Partitions that nothing works on, as a member in this service sees it: no owner is recorded, "
    "or its lease is over",
    {},
    Fold::kMax};
inline constexpr CounterMetric<2> kPartitionChanges{
    "muster_partition_changes_total",
    "partitions",
    kHasMembers,
    {"group", "change"},
    "Partitions that came, each with a new epoch: claimed (free or handed over) or taken_over (its "
    "owner had died); and that went: given (to another member, or at a stop) or lost (the lease "
    "was over)"};
inline constexpr CounterMetric<2> kPartitionCycles{
    "muster_partition_cycles_total",
    "cycles",
    kHasMembers,
    {"group", "outcome"},
    "Cycles in which members looked at their group: ok, or failed (a request did)"};
inline constexpr CounterMetric<2> kPartitionRequests{
    "muster_partition_requests_total",
    "requests",
    kHasMembers,
    {"group", "outcome"},
    "Requests of members to the sync store: ok, raced (another writer was first), or failed"};
inline constexpr GaugeMetric<1> kCheckpointLag{
    "muster_checkpoint_lag",
    "events",
    kInitiator,
    {"group"},
    "Events behind the checkpoints of the event streams' partitions that this service's callers "
    "own"};
inline constexpr GaugeMetric<1> kParkedProcessors{
    "muster_parked_processors",
    "processors",
    kProcessor,
    {"release"},
    "1: this processor is parked until the release; 0: it has left"};
inline constexpr GaugeMetric<1> kSchedules{
    "muster_schedules",
    "schedules",
    kInitiator,
    {"state"},
    "Schedules of the mesh as this initiator saw them last: active, or paused"};
inline constexpr GaugeMetric<0> kSchedulesWithProblem{
    "muster_schedules_with_problem",
    "schedules",
    kInitiator,
    {},
    "Of these, those that did not do what they should; muster schedule list says why"};
inline constexpr CounterMetric<1> kScheduleOccurrences{
    "muster_schedule_occurrences_total",
    "occurrences",
    kInitiator,
    {"outcome"},
    "Occurrences of schedules that this initiator has decided: submitted, missed (no initiator was "
    "there in time) or failed (refused until the next one)"};
inline constexpr GaugeMetric<1> kReleaseArmed{
    "muster_release_armed",
    "releases",
    kInitiator,
    {"release"},
    "1: processors that start with this release park; 0: it is released",
    {},
    Fold::kMax};
inline constexpr GaugeMetric<1> kReleasedEpoch{"muster_released_epoch",
                                               "epochs",
                                               kInitiator,
                                               {"release"},
                                               "The epoch that was released last; 0: none was",
                                               {},
                                               Fold::kMax};

// The parts.
inline constexpr HistogramMetric<2> kRpcCallDuration{
    "rpc_server_call_duration_seconds",
    "seconds",
    kEveryService,
    {"method", "code"},
    "Time of the calls that the service has answered, streams included, by gRPC status",
    kCallSeconds};
inline constexpr CounterMetric<1> kNatsReconnects{"muster_nats_reconnects_total",
                                                  "reconnects",
                                                  kEveryService,
                                                  {"connection"},
                                                  "Times that a lost NATS connection came back"};
inline constexpr CounterMetric<1> kNatsErrors{
    "muster_nats_errors_total",
    "errors",
    kEveryService,
    {"connection"},
    "Errors that the NATS client reported, lost connections included"};
inline constexpr GaugeMetric<1> kNatsInFlight{
    "muster_nats_requests_in_flight",
    "requests",
    kEveryService,
    {"connection"},
    "Requests that wait for an answer of the NATS server"};
inline constexpr GaugeMetric<1> kNatsStreamMessages{
    "muster_nats_stream_messages",
    "messages",
    kInitiator | kQueueGateway,
    {"stream"},
    "Messages in a stream that muster has on the NATS server",
    {},
    Fold::kSum};
inline constexpr GaugeMetric<1> kNatsStreamBytes{"muster_nats_stream_bytes",
                                                 "bytes",
                                                 kInitiator | kQueueGateway,
                                                 {"stream"},
                                                 "Size of such a stream"};
inline constexpr GaugeMetric<1> kNatsStreamFirstAge{
    "muster_nats_stream_first_age_seconds",
    "seconds",
    kInitiator | kQueueGateway,
    {"stream"},
    "Age of the first message of such a stream; 0: it is empty",
    {},
    Fold::kMax};
inline constexpr GaugeMetric<1> kNatsStreamConsumers{
    "muster_nats_stream_consumers",
    "consumers",
    kInitiator | kQueueGateway,
    {"stream"},
    "Consumers of such a stream; 0 for the stream of a queue: nothing can be received"};
inline constexpr GaugeMetric<1> kNatsStreamLimitUsed{
    "muster_nats_stream_limit_used",
    "ratio",
    kInitiator | kQueueGateway,
    {"stream"},
    "Used share, 0 to 1, of the most bytes that such a stream may have; absent without a bound",
    {},
    Fold::kMax};
inline constexpr GaugeMetric<1> kNatsStorage{
    "muster_nats_storage_bytes",
    "bytes",
    kInitiator | kQueueGateway,
    {"kind"},
    "Of the NATS account on disk: used, and limit (absent where the account has none of its own)",
    {},
    Fold::kMax};
inline constexpr HistogramMetric<0> kSqliteCommit{"muster_sqlite_commit_seconds",
                                                  "seconds",
                                                  kController,
                                                  {},
                                                  "Time of a transaction that counts results",
                                                  kSyncSeconds};
inline constexpr GaugeMetric<0> kSqliteWal{
    "muster_sqlite_wal_bytes", "bytes", kController, {}, "Size of the report's write-ahead log"};
inline constexpr HistogramMetric<1> kRocksDbSync{
    "muster_rocksdb_sync_seconds",
    "seconds",
    kInitiator | kQueueGateway,
    {"store"},
    "Time of a sync of a store's write-ahead log; writers share syncs",
    kSyncSeconds};
inline constexpr GaugeMetric<1> kRocksDbMemtables{"muster_rocksdb_memtable_bytes",
                                                  "bytes",
                                                  kInitiator | kQueueGateway,
                                                  {"store"},
                                                  "Size of a store's memtables"};
inline constexpr GaugeMetric<1> kRocksDbWal{"muster_rocksdb_wal_bytes",
                                            "bytes",
                                            kInitiator | kQueueGateway,
                                            {"store"},
                                            "Size of a store's write-ahead logs"};
inline constexpr CounterMetric<1> kRocksDbStall{
    "muster_rocksdb_write_stall_seconds_total",
    "seconds",
    kInitiator | kQueueGateway,
    {"store"},
    "Time for which a store held writers up, because flushes or compactions were behind"};

// The queue gateway.
inline constexpr CounterMetric<2> kGatewayRequests{
    "muster_gateway_requests_total",
    "requests",
    kQueueGateway,
    {"operation", "code"},
    "Requests answered, by operation (none: it was not understood) and by error code or HTTP "
    "status"};
inline constexpr HistogramMetric<1> kGatewayRequestDuration{
    "muster_gateway_request_duration_seconds",
    "seconds",
    kQueueGateway,
    {"operation"},
    "Time from a whole request to its reply, waits for a message included",
    kCallSeconds};
inline constexpr CounterMetric<1> kGatewayThrottled{
    "muster_gateway_throttled_total",
    "requests",
    kQueueGateway,
    {"queue"},
    "Requests beyond the target of their queue or account; a queue is named after its account"};
inline constexpr CounterMetric<1> kGatewayAuthFailures{
    "muster_gateway_auth_failures_total",
    "requests",
    kQueueGateway,
    {"code"},
    "Requests whose sender did not prove that it may do what it asked"};
inline constexpr GaugeMetric<0> kGatewayConnections{
    "muster_gateway_connections", "connections", kQueueGateway, {}, "Open connections of clients"};

// The process, by the names that all client libraries of Prometheus give.
inline constexpr CounterMetric<0> kProcessCpu{"process_cpu_seconds_total",
                                              "seconds",
                                              kEveryService,
                                              {},
                                              "CPU time of the process, user and system"};
inline constexpr GaugeMetric<0> kProcessResident{"process_resident_memory_bytes",
                                                 "bytes",
                                                 kEveryService,
                                                 {},
                                                 "Memory of the process that is in RAM"};
inline constexpr GaugeMetric<0> kProcessOpenFds{
    "process_open_fds", "descriptors", kEveryService, {}, "Open file descriptors of the process"};
inline constexpr GaugeMetric<0> kProcessMaxFds{
    "process_max_fds", "descriptors", kEveryService, {}, "The most that it may have open"};
inline constexpr GaugeMetric<0> kProcessThreads{
    "process_threads", "threads", kEveryService, {}, "Threads of the process"};
inline constexpr GaugeMetric<0> kProcessStart{"process_start_time_seconds",
                                              "seconds",
                                              kEveryService,
                                              {},
                                              "When the process started, in seconds since 1970"};

// The service itself.
inline constexpr GaugeMetric<1> kCertificateExpiry{
    "muster_certificate_expiry_timestamp_seconds",
    "seconds",
    kEveryService,
    {"certificate"},
    "When a certificate that the service uses ends, in seconds since 1970, by its file"};
inline constexpr GaugeMetric<1> kCertificateLifetime{
    "muster_certificate_lifetime_seconds",
    "seconds",
    kEveryService,
    {"certificate"},
    "Time from the beginning of that certificate's validity to its end"};
inline constexpr GaugeMetric<2> kBuildInfo{"muster_build_info",
                                           "info",
                                           kEveryService,
                                           {"version", "revision"},
                                           "Always 1; the labels say what runs"};
inline constexpr CounterMetric<1> kOverLimit{
    "muster_metrics_over_limit_total",
    "records",
    kEveryService,
    {"metric"},
    "Records and readings that went to the label value other, because the metric has too many"};
inline constexpr CounterMetric<1> kRefusedValues{
    "muster_metrics_refused_values_total",
    "values",
    kEveryService,
    {"metric"},
    "Values that were not recorded, because they are no finite number, or below zero and meant for "
    "a counter"};
inline constexpr CounterMetric<1> kReadFailures{
    "muster_metrics_read_failures_total",
    "scrapes",
    kEveryService,
    {"source"},
    "Scrapes that lack the metrics of a source, because it did not answer"};
inline constexpr CounterMetric<2> kTelemetryExports{
    "muster_telemetry_exports_total",
    "calls",
    kEveryService,
    {"signal", "outcome"},
    "Calls that sent traces, metrics or logs to an OpenTelemetry collector: ok or failed"};
inline constexpr CounterMetric<1> kTelemetryDropped{
    "muster_telemetry_dropped_total",
    "records",
    kEveryService,
    {"signal"},
    "Spans and log records that the collector did not take in time, and that are lost"};

// All of the above, in this order.
std::vector<Metric> Catalogue();

}  // namespace muster::telemetry
