#include "services/processor/processor_service.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/log_capture.h"
#include "muster/base/temp_dir.h"
#include "muster/cancellation/cancelled_batches.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/lease_metadata.h"
#include "muster/trigger/work_detected.h"
#include "muster/trigger_local/local_trigger_bus.h"
#include "muster/v1/heartbeat.pb.h"
#include "muster/v1/item_result.pb.h"
#include "muster/wire/queue_names.h"
#include "muster/wire/work_item_codec.h"
#include "services/processor/load_report.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kAccount[] = "acme";

// Each line counts under itself.
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

  job_registry::JobEntry Apply(const std::string& definition) {
    const auto applied = jobs_.Apply(definition, std::nullopt);
    EXPECT_TRUE(applied.ok()) << applied.status();
    return applied->entry;
  }
  // Tells the processor that something has changed.
  void Tell() { ASSERT_TRUE(bus_.Publish({"me", trigger::JobChangedEvent{"any"}}).ok()); }

  void Start() {
    service_ = std::make_unique<ProcessorService>(&handlers_, options_, base::RealClock());
    const absl::Status started =
        service_->Start({queues_.get(), &bus_, blobs_.get(), base::RealClock()}, &jobs_);
    ASSERT_TRUE(started.ok()) << started;
  }

  // An item of one line.
  void Put(const job_registry::JobEntry& job, const std::string& line, int partition = 0) {
    wire::BatchIdentity identity;
    identity.batch = 7;
    identity.job = job.name;
    identity.job_revision = job.revision;
    identity.handler_version = "1";
    wire::WorkItemEncoder encoder(identity, 1 << 20, blobs_.get());
    ledger::ItemBoundary item;
    item.length = line.size();
    item.transactions = 1;
    item.content = base::Fingerprint(line);
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = encoder.Encode(0, item, line).value();
    const queue::QueueId queue = wire::InputQueue(kAccount, job.name, partition);
    ASSERT_TRUE(queues_->Put(queue, messages).ok());
    ASSERT_TRUE(bus_.Publish(trigger::WorkDetected("me", kAccount, queue.name, 1)).ok());
  }

  // The line that the next result of a job counts.
  std::string AwaitResult(const std::string& job) {
    const queue::QueueId queue = wire::OutputQueue(kAccount, job, 0);
    std::vector<queue::Message> messages;
    while (messages.empty()) {
      std::this_thread::yield();
      messages = queues_->Receive(queue, {1, absl::Minutes(10)}).value();
    }
    EXPECT_TRUE(queues_->Delete(queue, {{messages[0].receipt}}).ok());
    v1::ItemResult result;
    EXPECT_TRUE(result.ParseFromString(messages[0].body));
    EXPECT_EQ(result.attempt(), 1u);
    if (result.aggregated().groups_size() != 1) return "nothing counted";
    return result.aggregated().groups(0).rows(0).keys(0);
  }

  std::vector<std::string> Jobs() {
    std::vector<std::string> jobs;
    for (const JobListener& served : service_->Listeners()) jobs.push_back(served.job);
    return jobs;
  }
  // nullptr: there is none.
  std::shared_ptr<listener::QueueListener> ListenerOf(const std::string& job) {
    for (const JobListener& served : service_->Listeners()) {
      if (served.job == job) return served.listener;
    }
    return nullptr;
  }
  static void Await(const std::function<bool()>& done) {
    while (!done()) std::this_thread::yield();
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
  const base::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              base::RealClock())
          .value();
  const std::unique_ptr<sync::OptimisticSyncStore> sync_ =
      backend::OpenSyncStore(urls_.sync).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  trigger_local::LocalTriggerBus bus_;
  job_registry::JobRegistry jobs_{sync_.get(), base::RealClock()};
  std::atomic<bool> broken_ = false;
  handler::HandlerRegistry handlers_;
  ServiceOptions options_;
  std::unique_ptr<ProcessorService> service_;
};

TEST_F(ProcessorServiceTest, WorksForAllJobsThatThereAre) {
  const job_registry::JobEntry pears = Apply(Definition("pears", 5)),
                               apples = Apply(Definition("apples", 5));
  Start();
  EXPECT_THAT(Jobs(), ElementsAre("apples", "pears"));
  EXPECT_EQ(ListenerOf("apples")->options().max_dequeue_tasks, 2);
  Put(pears, "conference");
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
  EXPECT_EQ(AwaitResult("pears"), "conference");
}

TEST_F(ProcessorServiceTest, WorksForAJobThatIsAppliedLater) {
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  const job_registry::JobEntry apples = Apply(Definition("apples", 5));
  Tell();
  Await([&] { return ListenerOf("apples") != nullptr; });
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
}

TEST_F(ProcessorServiceTest, FindsAChangeOfWhichNobodyTold) {
  options_.look_interval = absl::Milliseconds(5);
  Start();
  Apply(Definition("apples", 5));
  Await([&] { return ListenerOf("apples") != nullptr; });
}

TEST_F(ProcessorServiceTest, WorksForTheJobsThatItIsToldToAlone) {
  options_.pools = {{"pears"}, {"plums"}};
  Apply(Definition("apples", 5));
  Apply(Definition("pears", 5));
  Start();
  EXPECT_THAT(Jobs(), ElementsAre("pears"));
}

TEST_F(ProcessorServiceTest, GivesEachJobAPoolOfItsOwn) {
  options_.pools = {{"apples", 7}, {"pears"}, {"plums", 3}};
  for (const char* job : {"apples", "pears", "quinces"}) Apply(Definition(job, 5));
  Start();
  EXPECT_THAT(Jobs(), ElementsAre("apples", "pears"));
  EXPECT_EQ(ListenerOf("apples")->options().max_dequeue_tasks, 7);
  EXPECT_EQ(ListenerOf("pears")->options().max_dequeue_tasks, options_.threads);
  Apply(Definition("plums", 5));
  Tell();
  Await([&] { return ListenerOf("plums") != nullptr; });
  EXPECT_EQ(ListenerOf("plums")->options().max_dequeue_tasks, 3);
}

TEST_F(ProcessorServiceTest, SaysInItsHeartbeatsHowLargeEachPoolIs) {
  options_.pools = {{"apples", 7}, {"pears", 1}};
  Apply(Definition("apples", 5));
  Apply(Definition("pears", 5));
  Start();
  LoadReport report(service_.get());
  v1::Heartbeat heartbeat;
  report.AddTo(absl::Seconds(2), &heartbeat);
  ASSERT_EQ(heartbeat.jobs_size(), 2);
  EXPECT_EQ(heartbeat.jobs(0).threads_max(), 7);
  EXPECT_EQ(heartbeat.jobs(1).threads_max(), 1);
}

TEST_F(ProcessorServiceTest, HasTheQueuesOfAJobLeaseForAsLongAsItSays) {
  const auto visibility = [&](const queue::QueueId& queue) {
    return queue::VisibilityOf(queues_->GetMetadata(queue).value());
  };
  const queue::QueueId first = wire::InputQueue(kAccount, "apples", 0),
                       second = wire::InputQueue(kAccount, "apples", 1);
  ASSERT_TRUE(queues_->CreateQueue(first, {{"owner", "billing"}}).ok());
  Apply(Definition("apples", 5, 2, "count", 5, ", visibility: 2m"));
  Start();
  EXPECT_EQ(visibility(first), absl::Minutes(2));
  EXPECT_EQ(visibility(second), absl::Minutes(2));
  EXPECT_EQ(queues_->GetMetadata(first)->at("owner"), "billing");
  EXPECT_EQ(visibility(wire::OutputQueue(kAccount, "apples", 0)), std::nullopt);
  for (const auto& [text, expected] :
       {std::pair<const char*, std::optional<absl::Duration>>{", visibility: 5s", absl::Seconds(5)},
        {"", std::nullopt}}) {
    const auto old = ListenerOf("apples");
    Apply(Definition("apples", 5, 2, "count", 5, text));
    Tell();
    Await([&] { return ListenerOf("apples") != old; });
    EXPECT_EQ(visibility(second), expected);
  }
}

TEST_F(ProcessorServiceTest, LeavesAJobToOthersWhoseHandlerIsNotHereAndSaysSoOnce) {
  Apply(Definition("apples", 5, 1, "elsewhere"));
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  Apply(Definition("pears", 5));
  Tell();
  Await([&] { return ListenerOf("pears") != nullptr; });  // there was another look
  EXPECT_EQ(Logged("cannot work for a job"), 1);
  EXPECT_EQ(Logged("elsewhere"), 1);
}

TEST_F(ProcessorServiceTest, TriesAJobAgainThatCouldNotBeStarted) {
  options_.look_interval = absl::Milliseconds(5);
  broken_ = true;
  Apply(Definition("apples", 5));
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  EXPECT_EQ(Logged("out of order"), 1);
  broken_ = false;
  Await([&] { return ListenerOf("apples") != nullptr; });
}

TEST_F(ProcessorServiceTest, WorksOnItemsOfBothDefinitionsOfAJobThatHasChanged) {
  const job_registry::JobEntry before = Apply(Definition("apples", 5));
  Start();
  const auto old = ListenerOf("apples");
  const job_registry::JobEntry after = Apply(Definition("apples", 6));
  ASSERT_NE(before.revision, after.revision);
  Tell();
  Await([&] { return ListenerOf("apples") != old; });
  AwaitStopped(old);
  Put(after, "new");
  EXPECT_EQ(AwaitResult("apples"), "new");
  Put(before, "old");
  EXPECT_EQ(AwaitResult("apples"), "old");
}

TEST_F(ProcessorServiceTest, FollowsAChangeThatDecidesNoResults) {
  const job_registry::JobEntry before = Apply(Definition("apples", 5));
  Start();
  const auto old = ListenerOf("apples");
  const job_registry::JobEntry after = Apply(Definition("apples", 5, 1, "count", 9));
  ASSERT_EQ(before.revision, after.revision);
  Tell();
  Await([&] { return ListenerOf("apples") != old; });
  EXPECT_EQ(ListenerOf("apples")->options().max_attempts, 9);
}

TEST_F(ProcessorServiceTest, EmptiesThePartitionsThatAJobHadBefore) {
  const job_registry::JobEntry before = Apply(Definition("apples", 5, 3));
  Start();
  const auto old = ListenerOf("apples");
  Apply(Definition("apples", 5, 1));
  Tell();
  Await([&] { return ListenerOf("apples") != old; });
  AwaitStopped(old);
  Put(before, "left", 2);
  EXPECT_EQ(AwaitResult("apples"), "left");
}

TEST_F(ProcessorServiceTest, LeavesAJobAsItIsWhileNothingChanges) {
  Apply(Definition("apples", 5));
  Start();
  const auto listener = ListenerOf("apples");
  Apply(Definition("pears", 5));
  Tell();
  Await([&] { return ListenerOf("pears") != nullptr; });
  EXPECT_EQ(ListenerOf("apples"), listener);
}

TEST_F(ProcessorServiceTest, EndsItsWorkForAJobThatIsDeleted) {
  Apply(Definition("apples", 5));
  Start();
  const auto listener = ListenerOf("apples");
  ASSERT_TRUE(jobs_.Delete("apples").ok());
  Tell();
  Await([&] { return ListenerOf("apples") == nullptr; });
  AwaitStopped(listener);
}

TEST_F(ProcessorServiceTest, KeepsAJobPausedThatChanges) {
  Apply(Definition("apples", 5));
  Start();
  const auto old = ListenerOf("apples");
  old->Pause();
  const job_registry::JobEntry after = Apply(Definition("apples", 6));
  Tell();
  Await([&] { return ListenerOf("apples") != old; });
  const auto listener = ListenerOf("apples");
  EXPECT_EQ(listener->phase(), listener::ListenerPhase::kPaused);
  listener->Resume();
  Put(after, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
}

TEST_F(ProcessorServiceTest, PutsNothingInTheRetiredListenersPlace) {
  Apply(Definition("apples", 5));
  Start();
  const auto retired = ListenerOf("apples");
  service_->Retire("apples");
  EXPECT_TRUE(retired->Stop(absl::InfiniteDuration()).ok());
  Apply(Definition("apples", 6));
  Apply(Definition("pears", 5));
  Tell();
  Await([&] { return ListenerOf("pears") != nullptr; });
  EXPECT_EQ(ListenerOf("apples"), retired);
}

TEST_F(ProcessorServiceTest, TakesNoNewJobOnceAllAreRetired) {
  options_.look_interval = absl::Milliseconds(1);
  Apply(Definition("apples", 5));
  Start();
  service_->Retire("");
  Apply(Definition("pears", 5));
  ASSERT_TRUE(jobs_.Delete("apples").ok());
  Await([&] { return Jobs().empty(); });  // that look has seen the pears, too
}

TEST_F(ProcessorServiceTest, StopsAllItsListenersAndShowsThemUntilItIsClosed) {
  Apply(Definition("apples", 5));
  Start();
  service_->Stop(absl::InfiniteDuration());
  EXPECT_EQ(ListenerOf("apples")->phase(), listener::ListenerPhase::kStopped);
  service_->Stop(absl::InfiniteDuration());
  service_->Close();
  EXPECT_THAT(Jobs(), IsEmpty());
}

TEST_F(ProcessorServiceTest, StopsWhatRunsOfACancelledBatchAndAcknowledgesIt) {
  cancellation::CancelledBatches cancelled(sync_.get());
  service_ = std::make_unique<ProcessorService>(&handlers_, options_, base::RealClock());
  ASSERT_TRUE(
      service_->Start({queues_.get(), &bus_, blobs_.get(), base::RealClock(), &cancelled}, &jobs_)
          .ok());
  const auto running = cancelled.Run(7, {});
  std::promise<std::string> acknowledged;
  const auto hearing = bus_.Subscribe([&](const trigger::InterRoleCommunicationEvent& event) {
    const auto* const ack = std::get_if<trigger::CancelAcknowledgedEvent>(&event.payload);
    if (ack != nullptr && ack->batch == 7) acknowledged.set_value(event.from);
  });
  ASSERT_TRUE(bus_.Publish({"me", trigger::BatchCancelledEvent{7}}).ok());
  EXPECT_EQ(acknowledged.get_future().get(), options_.instance);
  EXPECT_TRUE(running->token().stop_requested());
  EXPECT_TRUE(cancelled.Contains(7));
}

TEST_F(ProcessorServiceTest, EndsWithoutHavingBegun) {
  ProcessorService service(&handlers_, options_, base::RealClock());
  EXPECT_THAT(service.Listeners(), IsEmpty());
  service.Stop(absl::ZeroDuration());
}

}  // namespace
}  // namespace muster::processor
