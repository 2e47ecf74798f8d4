// SPDX-License-Identifier: Apache-2.0
#include "services/processor/worker_service.h"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/memory_store.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Even the slowest machine makes any call in less time.
constexpr absl::Duration kLong = absl::Minutes(2);

// A gate at which handlers wait.
class Gate {
 public:
  void Pass() {
    base::MutexLock lock(&mu_);
    ++arrived_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(&mu_);
  }
  void Open() {
    base::MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void AwaitArrival() {
    base::MutexLock lock(&mu_);
    while (arrived_ == 0) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

// Waits for the gate with each message, then handles the message or gives it back.
class GatedSubscriber final : public listener::Subscriber {
 public:
  GatedSubscriber(Gate* gate, const std::atomic<bool>* gives_back)
      : gate_(gate), gives_back_(gives_back) {}

  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override {
    for (listener::Delivery& delivery : deliveries) {
      if (!context.Begin(delivery).ok()) continue;
      gate_->Pass();
      listener::Settlement settlement;
      settlement.kind =
          *gives_back_ ? listener::Settlement::Kind::kRelease : listener::Settlement::Kind::kOk;
      context.Settle(delivery, std::move(settlement));
    }
  }

 private:
  Gate* const gate_;
  const std::atomic<bool>* const gives_back_;
};

class WorkerServiceTest : public ::testing::Test, public JobListeners {
 protected:
  WorkerServiceTest() {
    AddListener("apples");
    AddListener("pears");
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::WorkerService::service_full_name(), &service_}}).value();
    stub_ = v1::WorkerService::NewStub(rpc::OpenChannel(server_->addresses().front()).value());
  }
  ~WorkerServiceTest() override { gate_.Open(); }

  void AddListener(const std::string& job) {
    listener::ListenerOptions options;
    options.partitions = {{"acme", job + "-in-0"}};
    options.settle_linger = absl::ZeroDuration();
    options.max_dequeue_tasks = 4;
    std::unique_ptr<listener::QueueListener> made =
        listener::QueueListener::Create(
            options, {}, [this] { return std::make_unique<GatedSubscriber>(&gate_, &gives_back_); },
            &store_, nullptr, &clock_)
            .value();
    listeners_[job] = std::move(made);
  }

  std::vector<JobListener> Listeners() override {
    std::vector<JobListener> all;
    for (const auto& [job, listener] : listeners_) all.push_back({job, listener});
    return all;
  }
  std::map<std::string, std::string> OpenTroubles() override { return {}; }
  std::string ParkedFor() override { return parked_for_; }
  void Retire(absl::string_view job) override { retired_.emplace_back(job); }

  // Calls `method` of the stub; the response is kept in `response`.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::WorkerService::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                    const Request& request, Response* response) {
    rpc::CallContext context(kLong);
    return rpc::FromGrpc((stub_.get()->*method)(&context, request, response));
  }

  std::vector<v1::ListenerState> States(const std::string& job = "") {
    v1::QueryStateRequest request;
    request.set_job(job);
    v1::QueryStateResponse response;
    EXPECT_EQ(Call(&v1::WorkerService::Stub::QueryState, request, &response), absl::OkStatus());
    return {response.listeners().begin(), response.listeners().end()};
  }
  absl::Status Set(const v1::ListenerOptions& options, const std::string& job = "") {
    v1::SetOptionsRequest request;
    request.set_job(job);
    *request.mutable_options() = options;
    v1::SetOptionsResponse response;
    return Call(&v1::WorkerService::Stub::SetOptions, request, &response);
  }
  absl::Status StartTasks(int threads, const std::string& job = "") {
    v1::StartListenerRequest request;
    request.set_job(job);
    request.set_thread_count(threads);
    v1::StartListenerResponse response;
    return Call(&v1::WorkerService::Stub::StartListener, request, &response);
  }
  absl::Status Pause(const std::string& job) {
    v1::PauseRequest request;
    request.set_job(job);
    v1::PauseResponse response;
    return Call(&v1::WorkerService::Stub::Pause, request, &response);
  }
  absl::Status Resume(const std::string& job) {
    v1::ResumeRequest request;
    request.set_job(job);
    v1::ResumeResponse response;
    return Call(&v1::WorkerService::Stub::Resume, request, &response);
  }
  absl::Status Drain(const std::string& job, std::optional<absl::Duration> grace,
                     v1::DrainResponse* response) {
    v1::DrainRequest request;
    request.set_job(job);
    if (grace.has_value()) *request.mutable_grace() = base::ToProto(*grace);
    return Call(&v1::WorkerService::Stub::Drain, request, response);
  }

  void Put(const std::string& job, int messages) {
    ASSERT_TRUE(store_
                    .Put({"acme", job + "-in-0"},
                         std::vector<queue::NewMessage>(static_cast<size_t>(messages)))
                    .ok());
  }

  static std::vector<std::string> Fields(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const rpc::FieldViolation& violation : rpc::Violations(status)) {
      fields.push_back(violation.field);
    }
    return fields;
  }

  base::FakeClock clock_;
  listener::testing::MemoryStore store_{&clock_};
  Gate gate_;
  std::atomic<bool> gives_back_ = false;
  std::map<std::string, std::shared_ptr<listener::QueueListener>> listeners_;
  std::vector<std::string> retired_;
  std::string parked_for_;
  WorkerService service_{this, &clock_};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
};

TEST_F(WorkerServiceTest, TellsWhatEachListenerIsDoing) {
  Put("pears", 3);
  const std::vector<v1::ListenerState> states = States();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].job(), "apples");
  const v1::ListenerState& pears = states[1];
  EXPECT_EQ(pears.job(), "pears");
  EXPECT_THAT(pears.partitions(), ElementsAre("acme/pears-in-0"));
  EXPECT_EQ(pears.mode(), v1::LISTENER_MODE_PUSH);
  EXPECT_EQ(pears.phase(), v1::LISTENER_PHASE_LISTENING);
  EXPECT_EQ(pears.queue_depth(), 3);
  EXPECT_EQ(pears.options().dequeue_batch_size(), 32);
  EXPECT_EQ(pears.options().max_dequeue_tasks(), 4);
  EXPECT_EQ(base::FromProto(pears.options().maximum_idle_interval()), absl::Seconds(1));
  EXPECT_EQ(base::FromProto(pears.taken()), clock_.Now());
  EXPECT_EQ(pears.totals().messages_received(), 0);
  EXPECT_GT(pears.totals().storage_transactions(), 0);  // the look at its depth
}

TEST_F(WorkerServiceTest, StartsTasksThatFindWorkAndCountsIt) {
  Put("pears", 1);
  ASSERT_EQ(StartTasks(2, "pears"), absl::OkStatus());
  gate_.AwaitArrival();
  gate_.Open();
  store_.AwaitDeleted({"acme", "pears-in-0"}, 1);
  while (States("pears")[0].totals().messages_done() == 0) base::LetOthersRun();
  const v1::ListenerState pears = States("pears")[0];
  EXPECT_EQ(pears.totals().messages_received(), 1);
  EXPECT_EQ(pears.total_dequeue_tasks(), 2);
  EXPECT_EQ(States("apples")[0].total_dequeue_tasks(), 0);
}

TEST_F(WorkerServiceTest, RefusesToStartTooFewTasksOrTooMany) {
  for (const int threads : {-1, 0, 1001}) {
    const absl::Status refused = StartTasks(threads);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Fields(refused), ElementsAre("thread_count"));
  }
}

TEST_F(WorkerServiceTest, StartsNoneWhereOneListenerIsPaused) {
  ASSERT_EQ(Pause("pears"), absl::OkStatus());
  ASSERT_EQ(Pause("pears"), absl::OkStatus());
  EXPECT_EQ(States("pears")[0].phase(), v1::LISTENER_PHASE_PAUSED);
  const absl::Status refused = StartTasks(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("pears is paused"));
  EXPECT_EQ(States("apples")[0].total_dequeue_tasks(), 0);
  ASSERT_EQ(Resume(""), absl::OkStatus());
  EXPECT_EQ(StartTasks(1), absl::OkStatus());
}

TEST_F(WorkerServiceTest, SaysThatItIsParkedAndStartsNoTaskThen) {
  parked_for_ = "go";
  listeners_["pears"]->Pause();
  EXPECT_EQ(States("apples")[0].phase(), v1::LISTENER_PHASE_PARKED);
  EXPECT_EQ(States("pears")[0].phase(), v1::LISTENER_PHASE_PAUSED);
  const absl::Status refused = StartTasks(1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("muster release go"));
}

TEST_F(WorkerServiceTest, ChangesOptionsOfAllListenersOrOfOne) {
  v1::ListenerOptions options;
  options.set_dequeue_batch_size(7);
  *options.mutable_minimum_idle_interval() = base::ToProto(absl::Milliseconds(5));
  EXPECT_EQ(Set(options), absl::OkStatus());
  v1::ListenerOptions more;
  more.set_max_dequeue_tasks(9);
  EXPECT_EQ(Set(more, "pears"), absl::OkStatus());
  const std::vector<v1::ListenerState> states = States();
  for (const v1::ListenerState& state : states) {
    EXPECT_EQ(state.options().dequeue_batch_size(), 7);
    EXPECT_EQ(base::FromProto(state.options().minimum_idle_interval()), absl::Milliseconds(5));
    EXPECT_EQ(base::FromProto(state.options().maximum_idle_interval()), absl::Seconds(1));
  }
  EXPECT_EQ(states[0].options().max_dequeue_tasks(), 4);
  EXPECT_EQ(states[1].options().max_dequeue_tasks(), 9);
}

TEST_F(WorkerServiceTest, NamesEachOptionThatIsOutOfBoundsAndChangesNone) {
  v1::ListenerOptions options;
  options.set_dequeue_batch_size(33);
  *options.mutable_minimum_idle_interval() = base::ToProto(absl::Microseconds(1));
  *options.mutable_maximum_idle_interval() = base::ToProto(absl::Hours(2));
  options.set_max_dequeue_tasks(0);
  const absl::Status refused = Set(options);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Fields(refused),
              ElementsAre("options.dequeue_batch_size", "options.minimum_idle_interval",
                          "options.maximum_idle_interval", "options.max_dequeue_tasks"));
  EXPECT_EQ(States()[0].options().dequeue_batch_size(), 32);
}

TEST_F(WorkerServiceTest, RefusesAMinimumAboveTheMaximumOfAnyListener) {
  ASSERT_TRUE(listeners_["pears"]->SetIdleIntervals(absl::ZeroDuration(), absl::Seconds(5)).ok());
  v1::ListenerOptions options;
  options.set_dequeue_batch_size(7);
  *options.mutable_minimum_idle_interval() = base::ToProto(absl::Seconds(3));
  const absl::Status refused = Set(options);
  EXPECT_THAT(Fields(refused), ElementsAre("options.minimum_idle_interval"));
  EXPECT_THAT(refused.message(), HasSubstr("apples"));
  EXPECT_EQ(States()[1].options().dequeue_batch_size(), 32);
  EXPECT_EQ(Set(options, "pears"), absl::OkStatus());
}

TEST_F(WorkerServiceTest, ChangesNothingWhereNothingIsAskedFor) {
  EXPECT_EQ(Set({}), absl::OkStatus());
  EXPECT_EQ(States()[0].options().dequeue_batch_size(), 32);
}

TEST_F(WorkerServiceTest, DrainsForGoodAndTellsWhatItGaveBack) {
  Put("pears", 2);
  gives_back_ = true;
  ASSERT_EQ(StartTasks(1, "pears"), absl::OkStatus());
  gate_.AwaitArrival();
  v1::DrainResponse response;
  std::thread draining(
      [&] { EXPECT_EQ(Drain("pears", std::nullopt, &response), absl::OkStatus()); });
  while (States("pears")[0].phase() != v1::LISTENER_PHASE_DRAINING) base::LetOthersRun();
  gate_.Open();
  draining.join();
  EXPECT_EQ(States("pears")[0].phase(), v1::LISTENER_PHASE_STOPPED);
  EXPECT_EQ(response.messages_released(), States("pears")[0].totals().messages_released());
  EXPECT_GT(response.messages_released(), 0);
  EXPECT_THAT(retired_, ElementsAre("pears"));
  EXPECT_EQ(States("apples")[0].phase(), v1::LISTENER_PHASE_LISTENING);
  EXPECT_TRUE(absl::IsFailedPrecondition(StartTasks(1, "pears")));
  EXPECT_EQ(Drain("pears", std::nullopt, &response), absl::OkStatus());
  EXPECT_EQ(response.messages_released(), 0);
}

TEST_F(WorkerServiceTest, SaysWhenTheGraceRanOutThoughTheListenersAreStopped) {
  Put("pears", 1);
  ASSERT_EQ(StartTasks(1, "pears"), absl::OkStatus());
  gate_.AwaitArrival();
  v1::DrainResponse response;
  std::thread draining(
      [&] { EXPECT_TRUE(absl::IsDeadlineExceeded(Drain("", absl::ZeroDuration(), &response))); });
  while (States("pears")[0].phase() != v1::LISTENER_PHASE_DRAINING) base::LetOthersRun();
  gate_.Open();
  draining.join();
  for (const v1::ListenerState& state : States()) {
    EXPECT_EQ(state.phase(), v1::LISTENER_PHASE_STOPPED);
  }
  EXPECT_THAT(retired_, ElementsAre(""));
}

TEST_F(WorkerServiceTest, RefusesAGraceThatIsNoneAndStopsNothing) {
  v1::DrainResponse response;
  for (const absl::Duration grace : {absl::Seconds(-1), absl::Hours(25)}) {
    const absl::Status refused = Drain("pears", grace, &response);
    EXPECT_THAT(Fields(refused), ElementsAre("grace"));
  }
  EXPECT_THAT(retired_, IsEmpty());
  EXPECT_EQ(States("pears")[0].phase(), v1::LISTENER_PHASE_LISTENING);
}

TEST_F(WorkerServiceTest, KnowsNoListenerOfAJobThatItDoesNotWorkFor) {
  v1::QueryStateRequest query;
  query.set_job("plums");
  v1::QueryStateResponse states;
  v1::DrainResponse drained;
  EXPECT_TRUE(absl::IsNotFound(Call(&v1::WorkerService::Stub::QueryState, query, &states)));
  EXPECT_TRUE(absl::IsNotFound(StartTasks(1, "plums")));
  EXPECT_TRUE(absl::IsNotFound(Set({}, "plums")));
  EXPECT_TRUE(absl::IsNotFound(Pause("plums")));
  EXPECT_TRUE(absl::IsNotFound(Resume("plums")));
  EXPECT_TRUE(absl::IsNotFound(Drain("plums", std::nullopt, &drained)));
  EXPECT_THAT(retired_, IsEmpty());
}

TEST_F(WorkerServiceTest, HasNothingToTellBeforeThereAreListeners) {
  listeners_.clear();
  EXPECT_THAT(States(), IsEmpty());
  EXPECT_EQ(Pause(""), absl::OkStatus());
}

}  // namespace
}  // namespace muster::processor
