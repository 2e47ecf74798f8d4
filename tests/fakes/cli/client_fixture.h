// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of commands that talk to services: an initiator and a controller serve a
// data directory in this process, with real queues and a real report, and with batches and jobs
// that the test makes up.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/app.h"
#include "cli/output/environment.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/item/redrive.h"
#include "muster/job/job_registry.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/schedule/schedule_store.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "muster/v1/mesh_service.grpc.pb.h"
#include "services/controller/report_service.h"
#include "services/initiator/api/partition_service.h"
#include "services/initiator/api/schedule_service.h"
#include "services/initiator/batch/read_records.h"
#include "services/initiator/batch/source.h"
#include "services/queue-admin/queue_service.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::cli {

// Tells of the batches that the test put in, one a page, the newest first.
class FakeBatches final : public v1::BatchService::Service {
 public:
  // Before the first call.
  std::map<uint64_t, v1::BatchStatus> batches;
  std::map<uint64_t, v1::GetReceiptResponse> receipts;
  // What Quote answers.
  absl::StatusOr<v1::QuoteResponse> quote = absl::NotFoundError("no such job");

  // The errors that refuse submits, in order: the first submit gets the first error.
  std::deque<absl::Status> refusals;

  // The header that was sent last.
  v1::SubmitHeader submitted() const {
    base::MutexLock lock(&mu_);
    return submitted_;
  }

  // The statuses that a watch sends, one after the other. A watch ends when its batch has ended;
  // otherwise when the client leaves.
  std::vector<v1::BatchStatus> news;

  // True: GetBatch does not answer until the client gives up.
  bool holds_answers = false;
  // What the client of the last GetBatch gave it.
  std::atomic<int64_t> milliseconds_left = 0;
  // Uploads are accepted, and not sealed until the client gives up.
  bool holds_uploads = false;
  // Called when an upload begins, which is then not answered; may be empty.
  std::function<void()> on_upload;
  // Called when a watch begins; may be empty.
  std::function<void()> on_watch;
  // Called with each list, by several threads; may be empty.
  std::function<void()> on_list;

  // Of the batches whose records may be read; content in files is not there. Not owned.
  ledger::BatchLedger* ledger = nullptr;

  grpc::Status ReadRecords(grpc::ServerContext* context, const v1::ReadRecordsRequest* request,
                           v1::ReadRecordsResponse* response) override {
    return rpc::Answer(*context, [&] {
      return initiator::batch::ReadRecords(
          *request, ledger,
          [](const ledger::Batch& batch) { return initiator::batch::SourceOf(batch.content); },
          response);
    });
  }

  // What RetryRejections answers, one call after the other. Before the first call.
  std::deque<absl::StatusOr<v1::RetryRejectionsResponse>> retries;

  // The requests to retry, in order.
  std::vector<v1::RetryRejectionsRequest> retried() const {
    base::MutexLock lock(&mu_);
    return retried_;
  }

  grpc::Status RetryRejections(grpc::ServerContext* context,
                               const v1::RetryRejectionsRequest* request,
                               v1::RetryRejectionsResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      milliseconds_left = LeftOf(*context);
      base::MutexLock lock(&mu_);
      retried_.push_back(*request);
      if (retries.empty()) return absl::InternalError("the test expects no more");
      const absl::StatusOr<v1::RetryRejectionsResponse> answer = std::move(retries.front());
      retries.pop_front();
      if (answer.ok()) *response = *answer;
      return answer.status();
    });
  }

  // The latest list request.
  v1::ListBatchesRequest listed() const {
    base::MutexLock lock(&mu_);
    return listed_;
  }

  // The latest quote request.
  v1::QuoteRequest quoted() const {
    base::MutexLock lock(&mu_);
    return quoted_;
  }

  grpc::Status Quote(grpc::ServerContext* context, const v1::QuoteRequest* request,
                     v1::QuoteResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      base::MutexLock lock(&mu_);
      quoted_ = *request;
      if (quote.ok()) *response = *quote;
      return quote.status();
    });
  }
  // Accepts any content: the batch is the newest one, in its current state.
  grpc::Status Submit(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>* stream) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      v1::SubmitRequest request;
      if (!stream->Read(&request)) return absl::CancelledError("no header");
      Note(request.header());
      if (!refusals.empty()) {
        const absl::Status refused = refusals.front();
        refusals.pop_front();
        return refused;
      }
      if (on_upload) {
        on_upload();
        WaitUntilLeft(*context);
        return absl::CancelledError("who asked has left");
      }
      const v1::BatchStatus& status = batches.rbegin()->second;
      v1::SubmitResponse response;
      response.mutable_accepted()->set_batch(status.batch());
      response.mutable_accepted()->set_state(status.state());
      stream->Write(response);
      while (stream->Read(&request) && (holds_uploads || !request.has_seal())) continue;
      if (holds_uploads) {
        WaitUntilLeft(*context);
        return absl::CancelledError("who asked has left");
      }
      *response.mutable_sealed()->mutable_status() = status;
      stream->Write(response);
      return absl::OkStatus();
    });
  }
  grpc::Status GetBatch(grpc::ServerContext* context, const v1::GetBatchRequest* request,
                        v1::GetBatchResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      milliseconds_left = LeftOf(*context);
      if (holds_answers) WaitUntilLeft(*context);
      const auto found = batches.find(request->batch());
      if (found == batches.end()) return absl::NotFoundError("no such batch");
      *response->mutable_status() = found->second;
      return absl::OkStatus();
    });
  }
  grpc::Status ListBatches(grpc::ServerContext* context, const v1::ListBatchesRequest* request,
                           v1::ListBatchesResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      if (on_list) on_list();
      base::MutexLock lock(&mu_);
      listed_ = *request;
      auto next = batches.end();
      if (!request->page_token().empty()) next = batches.find(std::stoul(request->page_token()));
      const auto wanted = [request](const v1::BatchStatus& status) {
        const auto& states = request->states();
        return (request->job().empty() || request->job() == status.job()) &&
               (states.empty() ||
                std::find(states.begin(), states.end(), status.state()) != states.end());
      };
      do {
        if (next == batches.begin()) return absl::OkStatus();
        --next;
      } while (!wanted(next->second));
      *response->add_batches() = next->second;
      if (next != batches.begin()) response->set_next_page_token(absl::StrCat(next->first));
      return absl::OkStatus();
    });
  }
  grpc::Status WatchBatch(grpc::ServerContext* context, const v1::WatchBatchRequest* request,
                          grpc::ServerWriter<v1::WatchBatchResponse>* writer) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      if (!batches.contains(request->batch())) return absl::NotFoundError("no such batch");
      if (on_watch) on_watch();
      for (size_t i = 0; i < news.size(); ++i) {
        v1::WatchBatchResponse response;
        *response.mutable_status() = news[i];
        response.mutable_status()->set_revision(request->after_revision() + i + 1);
        writer->Write(response);
      }
      const bool over = !news.empty() && (news.back().state() == v1::BATCH_STATE_COMPLETE ||
                                          news.back().state() == v1::BATCH_STATE_CANCELLED);
      if (!over) WaitUntilLeft(*context);
      return absl::OkStatus();
    });
  }
  grpc::Status GetReceipt(grpc::ServerContext* context, const v1::GetReceiptRequest* request,
                          v1::GetReceiptResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      const auto found = receipts.find(request->batch());
      if (found == receipts.end()) return absl::FailedPreconditionError("it is not complete");
      *response = found->second;
      return absl::OkStatus();
    });
  }

 private:
  // Nothing notifies a serving thread when its client leaves, so the thread polls.
  static void WaitUntilLeft(const grpc::ServerContext& context) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  }
  // Milliseconds until the deadline of the call.
  static int64_t LeftOf(const grpc::ServerContext& context) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(context.deadline() -
                                                                 std::chrono::system_clock::now())
        .count();
  }
  void Note(const v1::SubmitHeader& header) {
    base::MutexLock lock(&mu_);
    submitted_ = header;
  }

  mutable base::Mutex mu_;
  v1::SubmitHeader submitted_ ABSL_GUARDED_BY(mu_);
  v1::QuoteRequest quoted_ ABSL_GUARDED_BY(mu_);
  v1::ListBatchesRequest listed_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::RetryRejectionsRequest> retried_ ABSL_GUARDED_BY(mu_);
};

// Accepts definitions that begin with the job's name and a colon; finds a mistake in all others.
class FakeJobs final : public v1::JobService::Service {
 public:
  grpc::Status ApplyJob(grpc::ServerContext* context, const v1::ApplyJobRequest* request,
                        v1::ApplyJobResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      if (!IsSound(request->definition())) {
        return absl::InvalidArgumentError("1:1: no name\n2:3: no columns");
      }
      v1::Job job = Make(request->definition());
      base::MutexLock lock(&mu_);
      v1::Job& kept = jobs_[job.name()];
      if (request->has_expected_revision() && request->expected_revision() != kept.revision()) {
        return absl::AbortedError(absl::StrCat("job ", job.name(), " is at another revision"));
      }
      response->set_revised(kept.revision() != job.revision());
      kept = job;
      *response->mutable_job() = std::move(job);
      return absl::OkStatus();
    });
  }
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      base::MutexLock lock(&mu_);
      const auto found = jobs_.find(request->name());
      if (found == jobs_.end()) return absl::NotFoundError("no such job");
      *response->mutable_job() = found->second;
      return absl::OkStatus();
    });
  }
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      base::MutexLock lock(&mu_);
      auto next = jobs_.upper_bound(request->page_token());
      if (next == jobs_.end()) return absl::OkStatus();
      *response->add_jobs() = next->second;
      if (std::next(next) != jobs_.end()) response->set_next_page_token(next->first);
      return absl::OkStatus();
    });
  }
  grpc::Status DeleteJob(grpc::ServerContext* context, const v1::DeleteJobRequest* request,
                         v1::DeleteJobResponse*) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      base::MutexLock lock(&mu_);
      return jobs_.erase(request->name()) > 0 ? absl::OkStatus()
                                              : absl::NotFoundError("no such job");
    });
  }
  grpc::Status CheckJob(grpc::ServerContext* context, const v1::CheckJobRequest* request,
                        v1::CheckJobResponse* response) override {
    return rpc::Answer(*context, [&]() -> absl::Status {
      if (IsSound(request->definition())) {
        *response->mutable_job() = Make(request->definition());
        return absl::OkStatus();
      }
      v1::JobProblem* const problem = response->add_problems();
      problem->set_line(1);
      problem->set_column(1);
      problem->set_message("no name");
      return absl::OkStatus();
    });
  }

 private:
  static bool IsSound(const std::string& definition) {
    return definition.find(':') != std::string::npos;
  }
  // The revision is as long as the definition.
  static v1::Job Make(const std::string& definition) {
    v1::Job job;
    job.set_name(definition.substr(0, definition.find(':')));
    job.set_definition(definition);
    job.set_revision(std::string(definition.size(), 'f'));
    job.mutable_schema()->add_groups()->set_name("by_day");
    *job.mutable_updated() = base::ToProto(absl::FromUnixSeconds(1323435000));
    return job;
  }

  base::Mutex mu_;
  std::map<std::string, v1::Job> jobs_ ABSL_GUARDED_BY(mu_);
};

// Knows the instances that the test named.
class FakeMesh final : public v1::MeshService::Service {
 public:
  // Before the first call.
  std::vector<v1::Instance> controllers;
  std::vector<v1::Instance> others;
  bool disconnected = false;

  // The remaining time of the last call's deadline.
  absl::Duration patience() const {
    base::MutexLock lock(&mu_);
    return patience_;
  }

  grpc::Status ListInstances(grpc::ServerContext* context, const v1::ListInstancesRequest* request,
                             v1::ListInstancesResponse* response) override {
    return rpc::Answer(*context, [&] {
      base::MutexLock lock(&mu_);
      patience_ = absl::FromChrono(context->deadline()) - absl::Now();
      response->set_disconnected(disconnected);
      const bool all = request->role() == v1::ROLE_UNSPECIFIED;
      for (const v1::Instance& instance : others) {
        if (all || instance.info().role() == request->role()) {
          *response->add_instances() = instance;
        }
      }
      if (!all && request->role() != v1::ROLE_CONTROLLER) return absl::OkStatus();
      for (const v1::Instance& instance : controllers) *response->add_instances() = instance;
      return absl::OkStatus();
    });
  }

 private:
  mutable base::Mutex mu_;
  absl::Duration patience_ ABSL_GUARDED_BY(mu_);
};

class ClientTest : public ::testing::Test {
 protected:
  // The exit code and the output of a command.
  struct Done {
    int code = 0;
    std::string out;
    std::string err;
  };

  ClientTest() {
    const backend::DataDirUrls urls(data_dir());
    queues_ = backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                      backend::Holders::kInProcess, &clock_)
                  .value();
    ledger_ = backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite).value();
    report_ = backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, &clock_).value();
    batches_.ledger = ledger_.get();
    desk_ = std::make_unique<report::LocalReportClient>(report_.get());
    reopener_ = std::make_unique<item::LedgerBatchReopener>(ledger_.get(), desk_.get());
    records_ = backend::OpenSyncStore(urls.sync, backend::Mode::kReadWrite).value();
    queue_service_ =
        std::make_unique<queue_admin::QueueService>(queues_.get(), reopener_.get(), records_.get());
    report_service_ = std::make_unique<controller::ReportService>(report_.get());
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    initiator_ =
        rpc::Server::Start(options, {{v1::QueueService::service_full_name(), queue_service_.get()},
                                     {v1::BatchService::service_full_name(), &batches_},
                                     {v1::JobService::service_full_name(), &jobs_},
                                     {v1::PartitionService::service_full_name(), &partitions_},
                                     {v1::ScheduleService::service_full_name(), &schedule_service_},
                                     {v1::MeshService::service_full_name(), &mesh_}})
            .value();
    controller_ = rpc::Server::Start(
                      options, {{v1::ReportService::service_full_name(), report_service_.get()}})
                      .value();
    v1::Instance instance;
    instance.mutable_info()->set_role(v1::ROLE_CONTROLLER);
    instance.mutable_info()->set_instance("controller-1");
    instance.mutable_info()->set_address(controller_address());
    mesh_.controllers = {instance};
  }

  std::string data_dir() const { return dir_.path(); }
  std::string server() const { return initiator_->addresses().front(); }
  std::string controller_address() const { return controller_->addresses().front(); }

  // Runs `muster` with these arguments.
  Done Run(std::vector<std::string> arguments) {
    std::ostringstream out;
    std::ostringstream err;
    const handler::HandlerRegistry handlers;
    Environment environment;
    environment.handlers = &handlers;
    environment.clock = &clock_;
    environment.out = &out;
    environment.err = &err;
    arguments.insert(arguments.begin(), "muster");
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    Done done;
    done.code = RunCommandLine(static_cast<int>(argv.size()), argv.data(), environment);
    done.out = out.str();
    done.err = err.str();
    return done;
  }
  Done RunOnServer(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--server", server()});
    return Run(std::move(arguments));
  }
  // Runs the command on the data directory and on the server, and expects the same results.
  Done RunBoth(const std::vector<std::string>& arguments) {
    std::vector<std::string> local = arguments;
    local.insert(local.end(), {"--data-dir", data_dir()});
    const Done here = Run(local);
    const Done there = RunOnServer(arguments);
    EXPECT_EQ(here.code, there.code) << there.err;
    EXPECT_EQ(here.out, there.out);
    return there;
  }

  base::FakeClock clock_;
  const os::TempDir dir_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<report::LocalReportClient> desk_;
  std::unique_ptr<item::LedgerBatchReopener> reopener_;
  std::unique_ptr<sync::OptimisticSyncStore> records_;  // of held keys
  std::unique_ptr<queue_admin::QueueService> queue_service_;
  std::unique_ptr<controller::ReportService> report_service_;
  sync::testing::MemorySyncStore sync_;
  initiator::api::PartitionService partitions_{&sync_};
  // Schedules are of the jobs in registry_.
  const std::unique_ptr<blob::BlobStore> blobs_ =
      backend::OpenBlobStore(backend::DataDirUrls(data_dir()).blobs).value();
  job::JobRegistry registry_{&sync_, &clock_};
  schedule::ScheduleStore schedules_{&sync_, blobs_.get(), &clock_};
  // What schedules submit becomes batch 41, 42, and so on.
  std::vector<v1::SubmitHeader> submitted_by_schedules_;
  initiator::api::ScheduleService schedule_service_{
      {&schedules_, &registry_, &clock_,
       [this](const v1::SubmitHeader& header, const std::string&) {
         submitted_by_schedules_.push_back(header);
         return uint64_t{40} + submitted_by_schedules_.size();
       },
       [](absl::string_view) {}}};
  FakeBatches batches_;
  FakeJobs jobs_;
  FakeMesh mesh_;
  std::unique_ptr<rpc::Server> initiator_;
  std::unique_ptr<rpc::Server> controller_;
};

}  // namespace muster::cli
