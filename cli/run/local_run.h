// SPDX-License-Identifier: Apache-2.0

// LocalRun: all roles of one job in this process, over one data directory, for one batch.
//
//   BatchEngine ─► input queue ─► Processor (threads) ─► output queue ─► Controller ─► report.db
//
// It ends with the batch. If an earlier run of the same input was cut off (a crash, Ctrl-C), this
// one continues from the state of the ledger, the queues and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/progress_bar.h"
#include "cli/run/held_watch.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/content/ledger_content.h"
#include "muster/item/held_key_admin.h"
#include "muster/item/promise.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/store_decorators.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "muster/sync/unique_id_generator.h"
#include "muster/telemetry/registry.h"
#include "services/controller/controller.h"
#include "services/host/host_telemetry.h"
#include "services/initiator/batch/back_pressure.h"
#include "services/initiator/batch/engine.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/opener.h"
#include "services/initiator/batch/run_to_end.h"
#include "services/initiator/batch/source.h"
#include "services/processor/job_handler.h"
#include "services/processor/processor.h"
#include "services/processor/slow_items.h"

namespace muster::cli {

struct RunRequest {
  const job::JobDefinition* job = nullptr;  // not owned
  processor::JobHandler handler;
  std::string handler_place = {};  // for errors of the handler: as HandlerPlace
  std::string input;
  std::string data_dir;
  std::string metrics;  // HOST:PORT where Prometheus reads them; empty: nowhere
  bool allow_plaintext_metrics = false;
  int threads = 1;
  double calls_per_second = 0;  // the limit of each queue; 0: none
  initiator::batch::BackPressureOptions back_pressure;
  std::string request_id;  // empty: made of the job's name and the input's path
  bool always_new = false;
  std::optional<base::TraceContext> trace = std::nullopt;  // none: the batch begins a trace
  std::optional<absl::Duration> sla = std::nullopt;        // none: what the job promises
};

struct RunSummary {
  ledger::Batch batch;
  report::Progress progress;
  initiator::batch::Start start = initiator::batch::Start::kNew;
  bool complete = false;
  std::optional<item::PromiseState> promise = std::nullopt;  // none: nothing was promised
  // What is left waits behind these; none: it does not.
  std::optional<item::HeldSummary> held = std::nullopt;
  // Transactions that earlier runs had counted; 0: the batch was done before.
  uint64_t counted_before = 0;
  absl::Duration lapse;  // of this run; of the whole batch if it was done before
};

// Thread-compatible; progress() is thread-safe.
class LocalRun {
 public:
  // Opens input and data directory and finds the batch; starts nothing. Errors are for people: what
  // is wrong with the input, which process holds the data directory, why an earlier batch does not
  // fit. Cancelled: `stop` was requested while the input was compared with an earlier batch.
  static absl::StatusOr<std::unique_ptr<LocalRun>> Open(RunRequest request, base::Clock* clock,
                                                        const std::stop_token& stop);
  ~LocalRun();

  const initiator::batch::Submission& submission() const { return submission_; }

  // Runs the batch to its end, or until `stop`, or until all that is left waits behind held keys. A
  // summary with complete = false means that it was stopped, or that keys are held; the same run
  // goes on later.
  absl::StatusOr<RunSummary> Run(const std::stop_token& stop);

  RunProgress progress() const;
  report::ReportStore& report() { return *report_; }

 private:
  LocalRun(RunRequest request, base::Clock* clock);

  // Where the request or the environment asks for telemetry.
  absl::Status OpenTelemetry();
  telemetry::Registry* metrics() const;
  telemetry::SpanSink* spans() const;
  absl::Status OpenStores();
  absl::Status CreateRoles();
  controller::Events ControllerEvents();
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t batch);
  void OnDamage(uint64_t batch, const absl::Status& why);
  void OnNoWorker(const absl::Status& why);
  absl::StatusOr<initiator::batch::Submission> Submit(const std::stop_token& stop);
  // `refused`, and what is left to do about an open batch whose input or job is not there any more.
  absl::Status WithWayOut(const absl::Status& refused,
                          const initiator::batch::SubmitRequest& submit);
  // DataLoss when the report holds a batch of the job that the ledger does not know: it may be one
  // of this input, which would be counted twice.
  absl::Status CheckReportIsKnown();
  // Reopens a batch that is complete in the ledger if the report lacks some of its items.
  absl::Status ReopenIfReportIncomplete();
  initiator::batch::EngineDependencies EngineDependencies();
  absl::Status StopRoles();
  absl::StatusOr<RunSummary> Summarise(absl::Duration lapse);
  // Null: the job holds no keys. Calls `end`.
  std::unique_ptr<HeldWatch> WatchHeldKeys(std::function<void()> end);
  // Writes down what this run used, for `muster cost`.
  void RecordUsage(absl::Duration lapse);
  absl::StatusOr<report::Progress> CountedSoFar();

  const RunRequest request_;
  base::Clock* const clock_;                        // not owned
  std::unique_ptr<host::HostTelemetry> telemetry_;  // null: nothing is measured

  std::unique_ptr<initiator::batch::BatchSource> source_;  // until engine_ has it
  std::shared_ptr<const input::ByteSource> bytes_;         // of the source
  uint64_t content_batch_ = 0;  // whose content they are; set before Start
  uint64_t source_size_ = 0;
  initiator::batch::Wakeup wakeup_;  // outlives the stores, which tell it that they fail
  std::unique_ptr<queue::QueueStore> stored_queues_;
  std::unique_ptr<queue::ThrottledStore> throttle_;  // only with calls_per_second
  std::unique_ptr<queue::MeteredStore> queues_;      // what all use
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<sync::OptimisticSyncStore> sync_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<bus::TriggerBus> bus_;
  std::unique_ptr<sync::UniqueIdGenerator> batch_numbers_;
  initiator::batch::Submission submission_;  // fixed before any role starts
  uint64_t counted_before_ = 0;              // transactions, by earlier runs of the batch

  std::unique_ptr<initiator::batch::JobQueues> job_queues_;
  std::unique_ptr<initiator::batch::BackPressure> back_pressure_;
  std::unique_ptr<report::LocalReportClient> report_client_;

  processor::SlowItems slow_items_;                  // outlives the processor
  std::unique_ptr<content::LedgerContent> content_;  // likewise
  // Roles, in the order in which data passes them; they use all of the above.
  std::unique_ptr<initiator::batch::BatchEngine> engine_;
  std::unique_ptr<processor::Processor> processor_;
  std::unique_ptr<controller::Controller> controller_;

  mutable base::Mutex mu_;
  report::Progress counted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::cli
