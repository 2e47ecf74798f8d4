// SPDX-License-Identifier: Apache-2.0
#include "services/processor/processor_service.h"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/cancelled_batches.h"
#include "muster/queue/queue_store.h"
#include "muster/queue/store_decorators.h"
#include "muster/v1/heartbeat.pb.h"
#include "services/processor/job_listeners.h"
#include "tests/fakes/processor/processor_service_fixture.h"

namespace muster::processor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Fails the first administrative call of a queue.
class UnreachableOnce final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

 private:
  absl::Status Before(queue::Verb verb, const queue::QueueId&) override {
    if (verb != queue::Verb::kAdministration || std::exchange(was_asked_, true)) return {};
    return absl::UnavailableError("no process listens there");
  }

  bool was_asked_ = false;
};

// Takes the subscription of the service, and fails that of its first listener.
class FailsFirstListener final : public bus::TriggerBus {
 public:
  explicit FailsFirstListener(bus::TriggerBus* behind) : behind_(behind) {}
  absl::Status Publish(const bus::InterRoleCommunicationEvent& event) override {
    return behind_->Publish(event);
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(Subscriber subscriber) override {
    if (++subscriptions_ == 2) return absl::UnavailableError("no server answers");
    return behind_->Subscribe(std::move(subscriber));
  }

 private:
  bus::TriggerBus* const behind_;
  std::atomic<int> subscriptions_ = 0;
};

TEST_F(ProcessorServiceTest, WorksForAllJobsThatThereAre) {
  const job::JobEntry pears = Apply(Definition("pears", 5)),
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
  const job::JobEntry apples = Apply(Definition("apples", 5));
  Tell();
  Await([&] { return ListenerOf("apples") != nullptr; });
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
}

// A parked service has all that the first item needs, and takes none.
TEST_F(ProcessorServiceTest, TakesNoItemBeforeItIsUnparked) {
  options_.standby = "go";
  const job::JobEntry apples = Apply(Definition("apples", 5));
  Start();
  EXPECT_EQ(service_->ParkedFor(), "go");
  EXPECT_THAT(Jobs(), ElementsAre("apples"));
  Put(apples, "braeburn");
  const job::JobEntry pears = Apply(Definition("pears", 5));
  Tell();
  Await([&] { return ListenerOf("pears") != nullptr; });
  Put(pears, "conference");
  EXPECT_EQ(ListenerOf("apples")->counters().messages_received, 0);
  EXPECT_EQ(ListenerOf("apples")->QueryState().current_queue_depth, 1);
  EXPECT_EQ(Logged("works for a job"), 0);
  service_->Unpark();
  service_->Unpark();
  EXPECT_EQ(service_->ParkedFor(), "");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
  EXPECT_EQ(AwaitResult("pears"), "conference");
  const job::JobEntry plums = Apply(Definition("plums", 5));
  Tell();
  Await([&] { return ListenerOf("plums") != nullptr; });
  Put(plums, "mirabelle");
  EXPECT_EQ(AwaitResult("plums"), "mirabelle");
}

TEST_F(ProcessorServiceTest, MakesTheHandlersOfAllWorkersWhileItIsParked) {
  std::atomic<int> made = 0;
  handlers_.Register(
      {"warm", "1",
       [&made](const handler::JobSchema&) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
         ++made;
         return std::make_unique<CountHandler>();
       }});
  options_.standby = "go";
  options_.threads = 7;
  Apply(Definition("apples", 5, 1, "warm"));
  Start();
  Await([&] { return made == 7; });
}

TEST_F(ProcessorServiceTest, FollowsAJobThatChangesOrGoesWhileItIsParked) {
  options_.standby = "go";
  Apply(Definition("apples", 5));
  Apply(Definition("pears", 5));
  Start();
  const auto first = ListenerOf("apples");
  const job::JobEntry changed = Apply(Definition("apples", 6));
  ASSERT_TRUE(jobs_.Delete("pears").ok());
  Tell();
  Await([&] { return ListenerOf("apples") != first && ListenerOf("pears") == nullptr; });
  AwaitStopped(first);
  service_->Unpark();
  Put(changed, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
}

TEST_F(ProcessorServiceTest, StopsWhileItIsParkedAndIsNotUnparkedThen) {
  options_.standby = "go";
  Apply(Definition("apples", 5));
  Start();
  service_->Stop(absl::InfiniteDuration());
  service_->Unpark();
  EXPECT_EQ(ListenerOf("apples")->phase(), listener::ListenerPhase::kStopped);
}

// A pause by hand is another thing than the park.
TEST_F(ProcessorServiceTest, APauseOutlastsThePark) {
  options_.standby = "go";
  const job::JobEntry apples = Apply(Definition("apples", 5));
  Start();
  ListenerOf("apples")->Pause();
  Put(apples, "braeburn");
  service_->Unpark();
  EXPECT_EQ(ListenerOf("apples")->phase(), listener::ListenerPhase::kPaused);
  ListenerOf("apples")->Resume();
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
}

TEST_F(ProcessorServiceTest, FindsAChangeOfWhichNobodyTold) {
  options_.look_interval = absl::Milliseconds(5);
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  Apply(Definition("apples", 5));
  Await([&] { return ListenerOf("apples") != nullptr; });
  EXPECT_THAT(Jobs(), ElementsAre("apples"));
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
  const queue::QueueId first = item::InputQueue(kAccount, "apples", 0),
                       second = item::InputQueue(kAccount, "apples", 1);
  ASSERT_TRUE(queues_->CreateQueue(first, {{"owner", "billing"}}).ok());
  Apply(Definition("apples", 5, 2, "count", 5, ", visibility: 2m"));
  Start();
  EXPECT_EQ(visibility(first), absl::Minutes(2));
  EXPECT_EQ(visibility(second), absl::Minutes(2));
  EXPECT_EQ(queues_->GetMetadata(first)->at("owner"), "billing");
  EXPECT_EQ(visibility(item::OutputQueue(kAccount, "apples", 0)), std::nullopt);
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

// Each of the two has partitions of its own; when one stops, the other has all.
TEST_F(ProcessorServiceTest, SharesThePartitionsOfAJobWithOrder) {
  const job::JobEntry job = Apply(Definition("apples", 5, 4) + "order_by: line\n");
  const Dependencies dependencies{.queues = processor_queues_,
                                  .bus = &bus_,
                                  .blobs = blobs_.get(),
                                  .clock = base::RealClock(),
                                  .sync = sync_.get()};
  options_.instance = "one";
  ProcessorService one(&handlers_, options_, base::RealClock());
  options_.instance = "two";
  ProcessorService two(&handlers_, options_, base::RealClock());
  ASSERT_TRUE(one.Start(dependencies, &jobs_).ok());
  ASSERT_TRUE(two.Start(dependencies, &jobs_).ok());
  for (int partition = 0; partition < 4; ++partition) {
    Put(job, absl::StrCat("line ", partition), partition);
    EXPECT_EQ(AwaitResult("apples"), absl::StrCat("line ", partition));
  }
  one.Stop(absl::InfiniteDuration());
  for (int partition = 0; partition < 4; ++partition) {
    Put(job, absl::StrCat("again ", partition), partition);
    EXPECT_EQ(AwaitResult("apples"), absl::StrCat("again ", partition));
  }
  two.Stop(absl::InfiniteDuration());
}

TEST_F(ProcessorServiceTest, WorksForAJobWithOrderThatNobodyElseReads) {
  const job::JobEntry job = Apply(Definition("apples", 5, 2) + "order_by: line\n");
  Start();
  Put(job, "first", 1);
  EXPECT_EQ(AwaitResult("apples"), "first");
}

TEST_F(ProcessorServiceTest, LeavesAJobToOthersWhoseHandlerIsNotHereAndSaysSoOnce) {
  Apply(Definition("apples", 5, 1, "elsewhere"));
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  Apply(Definition("pears", 5));
  Tell();
  Await([&] { return ListenerOf("pears") != nullptr; });  // the processor has looked again
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

// Two processors that make a new job's queues at the same time may meet a server that is not ready.
TEST_F(ProcessorServiceTest, TriesAJobAgainSoonWhoseQueuesWereOutOfReach) {
  options_.look_interval = absl::Hours(1);
  UnreachableOnce queues(queues_.get());
  processor_queues_ = &queues;
  Apply(Definition("apples", 5));
  Start();
  Await([&] { return ListenerOf("apples") != nullptr; });
  EXPECT_EQ(Logged("cannot work for a job"), 1);
  service_.reset();
}

// The next regular look made another one: half a minute later.
TEST_F(ProcessorServiceTest, LooksAgainSoonWhenAListenerCouldNotStart) {
  options_.look_interval = absl::Hours(1);
  FailsFirstListener bus(&bus_);
  processor_bus_ = &bus;
  const job::JobEntry apples = Apply(Definition("apples", 5));
  Start();
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
  EXPECT_EQ(Logged("cannot work for a job"), 1);
  service_.reset();
}

TEST_F(ProcessorServiceTest, LooksAgainSoonWhenAListenerCouldNotStartAsItWasUnparked) {
  options_.look_interval = absl::Hours(1);
  options_.standby = "go";
  FailsFirstListener bus(&bus_);
  processor_bus_ = &bus;
  const job::JobEntry apples = Apply(Definition("apples", 5));
  Start();
  service_->Unpark();
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "braeburn");
  service_.reset();
}

TEST_F(ProcessorServiceTest, WorksOnItemsOfBothDefinitionsOfAJobThatHasChanged) {
  const job::JobEntry before = Apply(Definition("apples", 5));
  Start();
  const auto old = ListenerOf("apples");
  const job::JobEntry after = Apply(Definition("apples", 6));
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
  const job::JobEntry before = Apply(Definition("apples", 5));
  Start();
  const auto old = ListenerOf("apples");
  const job::JobEntry after = Apply(Definition("apples", 5, 1, "count", 9));
  ASSERT_EQ(before.revision, after.revision);
  Tell();
  Await([&] { return ListenerOf("apples") != old; });
  EXPECT_EQ(ListenerOf("apples")->options().max_attempts, 9);
}

TEST_F(ProcessorServiceTest, EmptiesThePartitionsThatAJobHadBefore) {
  const job::JobEntry before = Apply(Definition("apples", 5, 3));
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
  const job::JobEntry after = Apply(Definition("apples", 6));
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
  Await([&] { return Jobs().empty(); });  // this look has seen the pears, too
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
  item::CancelledBatches cancelled(sync_.get());
  service_ = std::make_unique<ProcessorService>(&handlers_, options_, base::RealClock());
  ASSERT_TRUE(service_
                  ->Start({.queues = queues_.get(),
                           .bus = &bus_,
                           .blobs = blobs_.get(),
                           .clock = base::RealClock(),
                           .cancelled = &cancelled},
                          &jobs_)
                  .ok());
  const auto running = cancelled.Run(7, {});
  std::promise<std::string> acknowledged;
  const auto hearing = bus_.Subscribe([&](const bus::InterRoleCommunicationEvent& event) {
    const auto* const ack = std::get_if<bus::CancelAcknowledgedEvent>(&event.payload);
    if (ack != nullptr && ack->batch == 7) acknowledged.set_value(event.from);
  });
  ASSERT_TRUE(bus_.Publish({"me", bus::BatchCancelledEvent{7}}).ok());
  EXPECT_EQ(acknowledged.get_future().get(), options_.instance);
  EXPECT_TRUE(running->token().stop_requested());
  EXPECT_TRUE(cancelled.Contains(7));
}

TEST_F(ProcessorServiceTest, EndsWithoutHavingBegun) {
  ProcessorService service(&handlers_, options_, base::RealClock());
  EXPECT_THAT(service.OpenTroubles(), IsEmpty());
  EXPECT_THAT(service.Listeners(), IsEmpty());
  service.Stop(absl::ZeroDuration());
}

// Tests about the health trouble of a single job in the heartbeat.
class JobTroubleTest : public ProcessorServiceTest {
 protected:
  std::vector<v1::JobLoad> Loads() {
    v1::Heartbeat heartbeat;
    LoadReport(service_.get()).AddTo(absl::Seconds(2), &heartbeat);
    return {heartbeat.jobs().begin(), heartbeat.jobs().end()};
  }
  static std::string CommandDefinition(const std::string& command) {
    return absl::StrCat("name: apples\ninput: {format: lines}\nhandler: {command: [", command,
                        "]}\ngroups:\n  - {name: by_line, keys: [line], measures: {n: int}}\n");
  }
};

TEST_F(JobTroubleTest, IsInTheHeartbeatOfAProcessorThatLacksTheProgram) {
  Apply(CommandDefinition("no-such-program"));
  Apply(Definition("pears", 5));
  Start();
  const std::vector<v1::JobLoad> loads = Loads();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].job(), "pears");
  EXPECT_EQ(loads[0].trouble(), "");
  EXPECT_EQ(loads[1].job(), "apples");
  EXPECT_EQ(loads[1].trouble(), "NOT_FOUND: no program 'no-such-program' in PATH");
  EXPECT_EQ(loads[1].threads_max(), 0);
}

TEST_F(JobTroubleTest, IsThatItsWorkersArePausedUntilTheyGoOn) {
  Apply(Definition("pears", 5));
  Start();
  const auto listener = service_->Listeners().front().listener;
  listener->Pause();
  EXPECT_THAT(Loads().front().trouble(), HasSubstr("its workers are paused since 20"));
  EXPECT_THAT(Loads().front().trouble(), HasSubstr("`muster worker resume`"));
  listener->Resume();
  EXPECT_EQ(Loads().front().trouble(), "");
}

TEST_F(JobTroubleTest, IsNoneWhereAScalingAgentHasNoWorkForTheJob) {
  Apply(Definition("pears", 5));
  Start();
  const auto listener = service_->Listeners().front().listener;
  service_->NotePause("pears", /*for_lack_of_work=*/true);
  listener->Pause();
  EXPECT_EQ(Loads().front().trouble(), "");
  service_->NotePause("pears", /*for_lack_of_work=*/false);  // a person does, too
  EXPECT_THAT(Loads().front().trouble(), HasSubstr("its workers are paused since 20"));
}

TEST_F(JobTroubleTest, IsInTheHeartbeatOfAProcessorThatLacksTheScript) {
  Apply(CommandDefinition("sh, ./missing.sh"));
  Start();
  ASSERT_EQ(Loads().size(), 1u);
  EXPECT_THAT(Loads()[0].trouble(),
              AllOf(HasSubstr("no script /"), HasSubstr("a relative path leads from the folder")));
}

TEST_F(JobTroubleTest, IsOverWhenTheJobIsMendedOrDeleted) {
  options_.look_interval = absl::Hours(1);
  Apply(CommandDefinition("no-such-program"));
  Start();
  Apply(CommandDefinition("cat"));
  Tell();
  Await([&] { return ListenerOf("apples") != nullptr; });
  EXPECT_EQ(Loads()[0].trouble(), "");
  Apply(CommandDefinition("no-such-program"));
  Tell();
  Await([&] { return !Loads()[0].trouble().empty(); });
  EXPECT_NE(ListenerOf("apples"), nullptr) << "the old one stays";
  ASSERT_TRUE(jobs_.Delete("apples").ok());
  Tell();
  Await([&] { return Loads().empty(); });
}

TEST_F(JobTroubleTest, IsNoneThatOthersHaveTheLinkedHandler) {
  Apply(Definition("apples", 5, 1, "elsewhere"));
  Start();
  EXPECT_THAT(Loads(), IsEmpty());
}

TEST_F(JobTroubleTest, IsInTheHeartbeatWhenAProgramFailsAgainAndAgain) {
  const job::JobEntry apples = Apply(CommandDefinition("sh, -c, \"echo no rates >&2; exit 3\""));
  options_.threads = 1;
  Start();
  Put(apples, "braeburn");
  Await([&] { return !Loads()[0].trouble().empty(); });
  EXPECT_THAT(Loads()[0].trouble(), HasSubstr("no rates"));
  EXPECT_EQ(Loads()[0].threads_max(), 1);
}

}  // namespace
}  // namespace muster::processor
