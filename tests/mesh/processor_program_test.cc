// SPDX-License-Identifier: Apache-2.0

// The muster-processor program on a real NATS server: it waits for the server, works for a job that
// is applied while it runs, and ends in order.
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/retail/handler.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/handler/handler.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/job/job_registry.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/sync/unique_id_generator.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/worker_service.grpc.pb.h"
#include "services/initiator/batch/enqueuer.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/opener.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/mesh/service_program.h"

namespace muster {
namespace {

using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kAccount[] = "acme";
constexpr int kLines = 1200;
constexpr absl::Duration kLong = absl::Minutes(2);

// The retail job with its items' content in the queue: no initiator runs here that could send it.
std::string RetailJob() {
  std::ifstream file(absl::StrCat(MUSTER_SOURCE, "/examples/retail/job.yaml"));
  std::stringstream text;
  text << file.rdbuf();
  return absl::StrReplaceAll(text.str(), {{"queue: {", "queue: {content: inline, "}});
}

class ProcessorProgramTest : public ::testing::TestWithParam<std::string> {
 protected:
  ProcessorProgramTest() {
    std::ofstream input(input_);
    input << "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n";
    for (int i = 0; i < kLines; ++i) {
      input << i << ",A,thing,2,2010-12-01 08:26:00,1.25,ann,France\n";
    }
  }

  void StartProgram(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {MUSTER_PROCESSOR, "--listen", "localhost:0", "--nats",
                                         server_.url(), "--account", kAccount, "--threads", "2"});
    program_ = std::make_unique<ServiceProgram>(arguments);
    const std::string address = program_->AwaitAddress();
    ASSERT_THAT(address, Not(IsEmpty()));
    channel_ = rpc::OpenChannel(address).value();
  }

  // Waits until health answers `wanted`, also across the change of the program's server.
  void AwaitHealth(HealthCheckResponse::ServingStatus wanted) {
    const auto stub = grpc::health::v1::Health::NewStub(channel_);
    HealthCheckResponse response;
    while (response.status() != wanted) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      const auto watch = stub->Watch(&context, {});
      while (response.status() != wanted && watch->Read(&response)) continue;
      context.TryCancel();
    }
  }

  // Applies the job as an initiator does.
  void Apply(const std::string& definition) {
    job::JobRegistry jobs(sync_.get(), base::RealClock());
    const auto applied = jobs.Apply(definition, std::nullopt);
    ASSERT_TRUE(applied.ok()) << applied.status();
    job_ = applied->job;
    ASSERT_TRUE(bus_->Publish({"me", bus::JobChangedEvent{job_.name}}).ok());
  }

  void OpenStores() {
    queues_ = backends_
                  .OpenQueueStore(server_.url(), backend::Mode::kReadWrite,
                                  backend::Holders::kElsewhere, base::RealClock())
                  .value();
    sync_ = backends_.OpenSyncStore(server_.url()).value();
    blobs_ = backends_.OpenBlobStore(server_.url()).value();
    bus_ = backends_.OpenTriggerBus(server_.url()).value();
  }

  // Splits the input into items and puts them.
  void Submit(const std::string& request_id) {
    const auto ledger = backend::OpenBatchLedger(backend::DataDirUrls(dir_ / request_id).ledger,
                                                 backend::Mode::kReadWrite)
                            .value();
    const auto source = initiator::batch::BatchSource::Open(input_, job_.input).value();
    sync::UniqueIdGenerator numbers(sync_.get(), "batch-numbers", {.range_size = 1});
    initiator::batch::BatchEnqueuer initiator(
        &job_, source.get(),
        {queues_.get(), bus_.get(), ledger.get(), blobs_.get(), base::RealClock()},
        {.account = kAccount});
    handler::HandlerRegistry handlers;
    retail::RegisterRetail(handlers);
    initiator::batch::SubmitRequest request;
    request.request_id = request_id;
    request.handler_version = handlers.Find("retail").value()->version;
    ASSERT_TRUE(initiator::batch::CreateQueues(queues_.get(), kAccount, job_).ok());
    const auto submitted = initiator::batch::BatchOpener(&job_, source.get(), ledger.get(),
                                                         &numbers, base::RealClock())
                               .Open(request);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    const absl::Status enqueued = initiator.Enqueue(submitted->batch.number, {});
    ASSERT_TRUE(enqueued.ok()) << enqueued;
  }

  static std::vector<v1::ItemResult> ResultsIn(const queue::Message& message) {
    std::vector<v1::ItemResult> results(1);
    EXPECT_TRUE(results[0].ParseFromString(message.body));
    if (results[0].together().empty()) return results;
    const v1::ItemResult whole = std::exchange(results, {})[0];
    for (const std::string& part : whole.together()) {
      EXPECT_TRUE(results.emplace_back().ParseFromString(part));
    }
    return results;
  }

  // Takes results until they make up the whole input; answers the units sold.
  int AwaitUnits() {
    const queue::QueueId queue = item::OutputQueue(kAccount, job_.name, 0);
    int units = 0;
    for (int transactions = 0; transactions < kLines;) {
      const auto messages = queues_->Receive(queue, {32, absl::Minutes(1)});
      if (!messages.ok()) continue;
      for (const queue::Message& message : *messages) {
        for (const v1::ItemResult& result : ResultsIn(message)) {
          transactions += static_cast<int>(result.transactions());
          for (const v1::PartialRow& row : result.aggregated().groups(0).rows()) {
            units += std::stoi(row.measures(1));
          }
        }
        EXPECT_TRUE(queues_->Delete(queue, {{message.receipt}}).ok());
      }
    }
    return units;
  }

  const os::TempDir dir_;
  const std::string input_ = dir_ / "input.csv";
  nats::testing::NatsServer server_{GetParam()};
  backend::Backends backends_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<sync::OptimisticSyncStore> sync_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<bus::TriggerBus> bus_;
  job::JobDefinition job_;
  std::unique_ptr<ServiceProgram> program_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_P(ProcessorProgramTest, WorksForAJobThatIsAppliedWhileItRunsAndEndsInOrder) {
  StartProgram();
  AwaitHealth(HealthCheckResponse::SERVING);
  OpenStores();
  Apply(RetailJob());
  Submit("first");
  EXPECT_EQ(AwaitUnits(), 2 * kLines);
  rpc::CallContext context(kLong);
  v1::QueryStateResponse state;
  ASSERT_TRUE(v1::WorkerService::NewStub(channel_)->QueryState(&context, {}, &state).ok());
  ASSERT_EQ(state.listeners_size(), 1);
  EXPECT_EQ(state.listeners(0).job(), "retail");
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0);
  EXPECT_THAT(program_->AwaitLine("msg=drained"), Not(IsEmpty()));
}

TEST_P(ProcessorProgramTest, WorksOnABatchOfTheDefinitionThatItsJobHadBefore) {
  OpenStores();
  Apply(RetailJob());
  Submit("first");
  const std::string before = job_.revision;
  Apply(absl::StrReplaceAll(RetailJob(), {{"transactions: 500,", "transactions: 400,"}}));
  ASSERT_NE(job_.revision, before);
  StartProgram();
  EXPECT_EQ(AwaitUnits(), 2 * kLines);
}

TEST_P(ProcessorProgramTest, WaitsForAServerThatIsNotThereYetAndOutlastsItsDeath) {
  server_.Kill();
  StartProgram();
  AwaitHealth(HealthCheckResponse::NOT_SERVING);
  EXPECT_THAT(program_->AwaitLine("not ready"), HasSubstr(server_.url()));
  server_.Restart();
  AwaitHealth(HealthCheckResponse::SERVING);
  server_.Kill();
  AwaitHealth(HealthCheckResponse::NOT_SERVING);
  server_.Restart();
  AwaitHealth(HealthCheckResponse::SERVING);
  OpenStores();
  Apply(RetailJob());
  Submit("first");
  EXPECT_EQ(AwaitUnits(), 2 * kLines);
}

TEST_P(ProcessorProgramTest, EndsWhileItWaitsForItsServer) {
  server_.Kill();
  StartProgram();
  program_->AwaitLine("not ready");
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0);
}

TEST(ProcessorProgram, AnswersUsageForWhatItDoesNotKnow) {
  ServiceProgram program({MUSTER_PROCESSOR, "--thread", "2"});
  EXPECT_EQ(program.Wait(), 2);
}

TEST(ProcessorProgram, ServesTheHandlerOfASuspectsJobUntilItsInputEnds) {
  setenv("MUSTER_SERVED_JOB", RetailJob().c_str(), 1);
  ServiceProgram program({MUSTER_PROCESSOR, "serve-handler"});
  EXPECT_EQ(program.Wait(), 0);
  unsetenv("MUSTER_SERVED_JOB");
}

TEST(ProcessorProgram, ServesNoHandlerToPeople) {
  ServiceProgram program({MUSTER_PROCESSOR, "serve-handler"});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.AwaitLine("muster-processor:"), HasSubstr("by itself"));
}

INSTANTIATE_TEST_SUITE_P(Servers, ProcessorProgramTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster
