// SPDX-License-Identifier: Apache-2.0

// The fixture for tests of ProcessorService: a mesh's stores and jobs, with one processor.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/v1/item_result.pb.h"
#include "services/processor/processor_service.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::processor {

inline constexpr char kAccount[] = "acme";

// Counts each line under its own text.
class CountHandler final : public handler::Handler {
 public:
  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      results.Count(line, {{handler::Group{0}, {line.fields()[0]}, {base::Decimal::FromInt(1)}}});
    }
    return handler::Outcome::Ok();
  }
};

class ProcessorServiceTest : public ::testing::Test {
 protected:
  ProcessorServiceTest() {
    handlers_.Register(
        {"count", "1",
         [this](const handler::JobSchema&) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
           if (broken_) return absl::FailedPreconditionError("out of order");
           return std::make_unique<CountHandler>();
         }});
    options_.account = kAccount;
    options_.threads = 2;
  }
  ~ProcessorServiceTest() override { service_.reset(); }

  // `item_transactions` decides the revision, `attempts` does not.
  static std::string Definition(const std::string& name, int item_transactions, int partitions = 1,
                                const std::string& handler = "count", int attempts = 5,
                                const std::string& more = "") {
    return absl::StrCat("name: ", name,
                        "\ninput: {format: lines}\nitem: {transactions: ", item_transactions,
                        "}\nhandler: {linked: ", handler, "}\nqueue: {partitions: ", partitions,
                        ", max_attempts: ", attempts, more,
                        "}\ngroups:\n  - {name: by_line, keys: [line], measures: {n: int}}\n");
  }

  job::JobEntry Apply(const std::string& definition) {
    const auto applied = jobs_.Apply(definition, std::nullopt);
    EXPECT_TRUE(applied.ok()) << applied.status();
    return applied->entry;
  }
  // Publishes a change of jobs to the processor.
  void Tell() { ASSERT_TRUE(bus_.Publish({"me", bus::JobChangedEvent{"any"}}).ok()); }

  void Start() {
    service_ = std::make_unique<ProcessorService>(&handlers_, options_, base::RealClock());
    const absl::Status started = service_->Start(
        {processor_queues_, processor_bus_, blobs_.get(), base::RealClock()}, &jobs_);
    ASSERT_TRUE(started.ok()) << started;
  }

  // An item of one line.
  void Put(const job::JobEntry& job, const std::string& line, int partition = 0) {
    item::BatchIdentity identity;
    identity.batch = 7;
    identity.job = job.name;
    identity.job_revision = job.revision;
    identity.handler_version = "1";
    item::WorkItemEncoder encoder(identity, 1 << 20, blobs_.get());
    ledger::ItemBoundary item;
    item.length = line.size();
    item.transactions = 1;
    item.content = base::Fingerprint(line);
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = encoder.Encode(0, item, line).value();
    const queue::QueueId queue = item::InputQueue(kAccount, job.name, partition);
    ASSERT_TRUE(queues_->Put(queue, messages).ok());
    ASSERT_TRUE(bus_.Publish(bus::WorkDetected("me", kAccount, queue.name, 1)).ok());
  }

  // Returns the line in the next result of a job. Results of items that were done together come in
  // one message: it is the first.
  std::string AwaitResult(const std::string& job) {
    const queue::QueueId queue = item::OutputQueue(kAccount, job, 0);
    std::vector<queue::Message> messages;
    while (messages.empty()) {
      base::LetOthersRun();
      messages = queues_->Receive(queue, {1, absl::Minutes(10)}).value();
    }
    EXPECT_TRUE(queues_->Delete(queue, {{messages[0].receipt}}).ok());
    v1::ItemResult result;
    EXPECT_TRUE(result.ParseFromString(messages[0].body));
    if (!result.together().empty()) {
      const std::string first = result.together(0);
      EXPECT_TRUE(result.ParseFromString(first));
    }
    EXPECT_EQ(result.attempt(), 1u) << result.ShortDebugString();
    if (result.aggregated().groups_size() != 1) return "nothing counted";
    return result.aggregated().groups(0).rows(0).keys(0);
  }

  std::vector<std::string> Jobs() {
    std::vector<std::string> jobs;
    for (const JobListener& served : service_->Listeners()) jobs.push_back(served.job);
    return jobs;
  }
  // Returns nullptr when there is none.
  std::shared_ptr<listener::QueueListener> ListenerOf(const std::string& job) {
    for (const JobListener& served : service_->Listeners()) {
      if (served.job == job) return served.listener;
    }
    return nullptr;
  }
  static void Await(const std::function<bool()>& done) {
    while (!done()) base::LetOthersRun();
  }
  static void AwaitStopped(const std::shared_ptr<listener::QueueListener>& listener) {
    Await([&] { return listener->phase() == listener::ListenerPhase::kStopped; });
  }
  int Logged(absl::string_view text) const {
    const std::vector<std::string> lines = log_.lines();
    return static_cast<int>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return absl::StrContains(line, text);
    }));
  }

  base::LogCapture log_;
  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              base::RealClock())
          .value();
  queue::QueueStore* processor_queues_ = queues_.get();  // the store that the processor uses
  const std::unique_ptr<sync::OptimisticSyncStore> sync_ =
      backend::OpenSyncStore(urls_.sync).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  bus::local::LocalTriggerBus bus_;
  bus::TriggerBus* processor_bus_ = &bus_;  // the bus that the processor uses
  job::JobRegistry jobs_{sync_.get(), base::RealClock()};
  std::atomic<bool> broken_ = false;
  handler::HandlerRegistry handlers_;
  ServiceOptions options_;
  std::unique_ptr<ProcessorService> service_;
};

}  // namespace muster::processor
