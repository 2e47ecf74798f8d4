// SPDX-License-Identifier: Apache-2.0

// Schedules through their service and their runners, over every store that keeps records and blobs:
// on this machine, and on each NATS server that NatsServer::Programs names.
#include "services/initiator/api/schedule_service.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/mutex.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/blob/blob_store.h"
#include "muster/job/job_registry.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/status.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/schedule_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/initiator/schedule/runner.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::initiator::api {
namespace {

using ::testing::ElementsAre;

struct OpenStores {
  std::shared_ptr<sync::OptimisticSyncStore> records;
  std::shared_ptr<blob::BlobStore> blobs;
};

// Holds records and blobs; the stores of two initiators may be open on it.
class Home {
 public:
  virtual ~Home() = default;
  virtual OpenStores Open() = 0;
};

// One process owns the records: both share its stores.
class DirectoryHome final : public Home {
 public:
  OpenStores Open() override { return stores_; }

 private:
  const os::TempDir root_;
  const backend::DataDirUrls urls_{root_ / "data"};
  backend::Backends backends_;
  const OpenStores stores_ = {backends_.OpenSyncStore(urls_.sync).value(),
                              backends_.OpenBlobStore(urls_.blobs).value()};
};

class ServerHome final : public Home {
 public:
  explicit ServerHome(const std::string& program) : server_(program) {}
  OpenStores Open() override {
    backends_.push_back(std::make_unique<backend::Backends>());
    return {backends_.back()->OpenSyncStore(server_.url()).value(),
            backends_.back()->OpenBlobStore(server_.url()).value()};
  }

 private:
  const nats::testing::NatsServer server_;
  std::vector<std::unique_ptr<backend::Backends>> backends_;
};

using HomeMaker = std::function<std::unique_ptr<Home>()>;

// Two initiators, whose clock begins at 2011-11-11T00:00:00Z. A request id is one batch, whichever
// of them submits it.
class SchedulesTest : public ::testing::TestWithParam<HomeMaker> {
 protected:
  struct Initiator {
    Initiator(SchedulesTest* test, const std::string& name)
        : stores(test->home_->Open()),
          jobs(stores.records.get(), &test->clock_),
          schedules(stores.records.get(), stores.blobs.get(), &test->clock_),
          runner({&schedules, &test->clock_, name, test->Submitter()}),
          service({&schedules, &jobs, &test->clock_, test->Submitter(),
                   [this](absl::string_view schedule) { runner.Wake(schedule); }}) {}

    const OpenStores stores;
    job::JobRegistry jobs;
    muster::schedule::ScheduleStore schedules;
    schedule::ScheduleRunner runner;
    ScheduleService service;
  };

  SchedulesTest() { EXPECT_TRUE(a_.jobs.Apply(job::JobText("shop"), std::nullopt).ok()); }

  schedule::Submit Submitter() {
    return [this](const v1::SubmitHeader& header,
                  const std::string& content) -> absl::StatusOr<uint64_t> {
      base::MutexLock lock(&mu_);
      contents_[header.request_id()] = content.size();
      return batches_.emplace(header.request_id(), batches_.size() + 1).first->second;
    };
  }
  size_t CountBatches() {
    base::MutexLock lock(&mu_);
    return batches_.size();
  }

  absl::Status Create(Initiator& at, const std::string& name, const std::string& cron,
                      const std::string& content = "amount\n1\n") {
    v1::CreateScheduleRequest request;
    request.mutable_spec()->set_name(name);
    request.mutable_spec()->set_job("shop");
    request.mutable_spec()->set_cron(cron);
    request.set_content(content);
    v1::CreateScheduleResponse response;
    grpc::ServerContext context;
    return rpc::FromGrpc(at.service.CreateSchedule(&context, &request, &response));
  }
  absl::StatusOr<v1::Schedule> Get(Initiator& at, const std::string& name) {
    v1::GetScheduleRequest request;
    request.set_name(name);
    v1::GetScheduleResponse response;
    grpc::ServerContext context;
    MUSTER_RETURN_IF_ERROR(rpc::FromGrpc(at.service.GetSchedule(&context, &request, &response)));
    return response.schedule();
  }
  absl::Status Delete(Initiator& at, const std::string& name) {
    v1::DeleteScheduleRequest request;
    request.set_name(name);
    v1::DeleteScheduleResponse response;
    grpc::ServerContext context;
    return rpc::FromGrpc(at.service.DeleteSchedule(&context, &request, &response));
  }
  template <typename Request, typename Response>
  absl::Status Call(Initiator& at,
                    grpc::Status (ScheduleService::*method)(grpc::ServerContext*, const Request*,
                                                            Response*),
                    const std::string& name) {
    Request request;
    request.set_name(name);
    Response response;
    grpc::ServerContext context;
    return rpc::FromGrpc((at.service.*method)(&context, &request, &response));
  }
  void StartBoth() {
    a_.runner.Start();
    b_.runner.Start();
    clock_.AwaitSleepers(2);
  }
  void Pass(absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(10)) {
      clock_.Advance(absl::Seconds(10));
      clock_.AwaitSleepers(2);
    }
  }

  base::FakeClock clock_;
  base::Mutex mu_;
  std::map<std::string, uint64_t> batches_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, size_t> contents_ ABSL_GUARDED_BY(mu_);
  const std::unique_ptr<Home> home_ = GetParam()();
  Initiator a_{this, "a"};
  Initiator b_{this, "b"};
};

TEST_P(SchedulesTest, EachOccurrenceIsSubmittedOnceByOneOfTwoInitiators) {
  const std::string long_content =
      "amount\n" + std::string(muster::schedule::kMaxRecordedContentBytes, '1');
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Create(i % 2 == 0 ? a_ : b_, absl::StrCat("s", i), "* * * * *",
                       i == 4 ? long_content : "amount\n1\n")
                    .ok());
  }
  StartBoth();
  Pass(absl::Minutes(4));
  EXPECT_EQ(CountBatches(), 20u);
  for (int i = 0; i < 5; ++i) {
    const auto schedule = Get(b_, absl::StrCat("s", i));
    ASSERT_TRUE(schedule.ok());
    EXPECT_EQ(schedule->submitted(), 4);
    EXPECT_EQ(schedule->missed() + schedule->failed(), 0);
    EXPECT_EQ(base::FromProto(schedule->last()), clock_.Now());
    EXPECT_EQ(base::FromProto(schedule->next()), clock_.Now() + absl::Minutes(1));
  }
  EXPECT_EQ(a_.runner.counts().submitted + b_.runner.counts().submitted, 20);
}

TEST_P(SchedulesTest, WhatOneInitiatorPausesResumesAndDeletesTheOtherHeeds) {
  ASSERT_TRUE(Create(a_, "often", "* * * * *").ok());
  StartBoth();
  Pass(absl::Minutes(1));
  EXPECT_TRUE(Call(b_, &ScheduleService::PauseSchedule, "often").ok());
  Pass(absl::Minutes(2));
  EXPECT_EQ(CountBatches(), 1u);
  EXPECT_EQ(Get(a_, "often")->has_next(), false);
  EXPECT_TRUE(Call(a_, &ScheduleService::ResumeSchedule, "often").ok());
  Pass(absl::Minutes(1));
  EXPECT_EQ(CountBatches(), 2u);
  EXPECT_TRUE(Delete(b_, "often").ok());
  EXPECT_EQ(Delete(a_, "often").code(), absl::StatusCode::kNotFound);
  Pass(absl::Minutes(2));
  EXPECT_EQ(CountBatches(), 2u);
}

TEST_P(SchedulesTest, OneThatIsMadeAtAnInitiatorThatDiesIsTheOthers) {
  a_.runner.Start();
  clock_.AwaitSleepers(1);
  ASSERT_TRUE(Create(b_, "often", "* * * * *").ok());  // b_ never runs
  for (int look = 0; look < 6; ++look) {
    clock_.Advance(absl::Seconds(10));
    clock_.AwaitSleepers(1);
  }
  EXPECT_EQ(CountBatches(), 1u);
}

TEST_P(SchedulesTest, OneThatIsUpdatedAtAnInitiatorThatDiesOccursAsItIsNow) {
  ASSERT_TRUE(Create(a_, "rarely", "@yearly").ok());
  a_.runner.Start();
  clock_.AwaitSleepers(1);
  v1::UpdateScheduleRequest request;
  *request.mutable_spec() = Get(b_, "rarely")->spec();
  request.mutable_spec()->set_cron("* * * * *");
  request.set_expected_revision(1);
  const auto update = [&](v1::UpdateScheduleResponse* response) {  // b_ never runs
    grpc::ServerContext context;
    return rpc::FromGrpc(b_.service.UpdateSchedule(&context, &request, response));
  };
  v1::UpdateScheduleResponse response;
  ASSERT_TRUE(update(&response).ok());
  EXPECT_EQ(response.schedule().revision(), 2);
  for (int look = 0; look < 6; ++look) {
    clock_.Advance(absl::Seconds(10));
    clock_.AwaitSleepers(1);
  }
  EXPECT_EQ(CountBatches(), 1u);
  request.mutable_spec()->set_job("nowhere");
  EXPECT_TRUE(absl::IsNotFound(update(&response)));
  request.mutable_spec()->set_job("shop");
  request.mutable_spec()->set_cron("@daily");
  EXPECT_TRUE(absl::IsAborted(update(&response)));
}

TEST_P(SchedulesTest, ARunByHandIsOneBatchForEachRunId) {
  ASSERT_TRUE(Create(a_, "rarely", "@yearly").ok());
  std::vector<uint64_t> batches;
  for (const char* run : {"one", "one", "two"}) {
    v1::RunScheduleRequest request;
    request.set_name("rarely");
    request.set_run_id(run);
    v1::RunScheduleResponse response;
    grpc::ServerContext context;
    ASSERT_TRUE(b_.service.RunSchedule(&context, &request, &response).ok());
    batches.push_back(response.batch());
  }
  EXPECT_THAT(batches, ElementsAre(1, 1, 2));
  EXPECT_EQ(Get(a_, "rarely")->last_batch(), 2u);
  EXPECT_EQ(Get(a_, "rarely")->submitted(), 0);
}

TEST_P(SchedulesTest, AJobThatIsNotThereIsNamed) {
  v1::CreateScheduleRequest request;
  request.mutable_spec()->set_name("x");
  request.mutable_spec()->set_job("other");
  request.mutable_spec()->set_cron("@daily");
  request.set_content("1");
  v1::CreateScheduleResponse response;
  grpc::ServerContext context;
  const absl::Status refused =
      rpc::FromGrpc(a_.service.CreateSchedule(&context, &request, &response));
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(rpc::Reason(refused)->reason, "NO_SUCH_JOB");
}

TEST_P(SchedulesTest, WhatNoBatchOfItCouldHaveIsRefused) {
  v1::CreateScheduleRequest request;
  request.mutable_spec()->set_name("x");
  request.mutable_spec()->set_job("shop");
  request.mutable_spec()->set_cron("@daily");
  request.mutable_spec()->set_tenant(std::string(70'000, 't'));
  request.set_content("amount\n1\n");
  v1::CreateScheduleResponse response;
  grpc::ServerContext context;
  const absl::Status refused =
      rpc::FromGrpc(a_.service.CreateSchedule(&context, &request, &response));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("spec.tenant"));
  EXPECT_TRUE(absl::IsNotFound(Get(a_, "x").status()));
}

TEST_P(SchedulesTest, ContentThatTheJobCannotReadIsRefusedWhenItIsMadeAndWhenItIsUpdated) {
  const absl::Status gzip = Create(a_, "x", "@daily", "\x1f\x8b\x08");
  EXPECT_EQ(gzip.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(gzip.message(), ::testing::StartsWith("content: "));
  const absl::Status column = Create(a_, "x", "@daily", "price\n1\n");
  EXPECT_EQ(column.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(column.message(), ::testing::HasSubstr("amount"));
  EXPECT_TRUE(absl::IsNotFound(Get(a_, "x").status()));

  ASSERT_TRUE(Create(a_, "x", "@daily").ok());
  ASSERT_TRUE(a_.jobs.Apply(job::JobText("prices", "price"), std::nullopt).ok());
  v1::UpdateScheduleRequest request;
  *request.mutable_spec() = Get(a_, "x")->spec();
  request.mutable_spec()->set_job("prices");
  v1::UpdateScheduleResponse response;
  grpc::ServerContext context;
  const absl::Status update =
      rpc::FromGrpc(a_.service.UpdateSchedule(&context, &request, &response));
  EXPECT_EQ(update.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(update.message(), ::testing::HasSubstr("price"));
  EXPECT_EQ(Get(a_, "x")->spec().job(), "shop");
}

std::vector<HomeMaker> HomeMakers() {
  std::vector<HomeMaker> makers = {[] { return std::make_unique<DirectoryHome>(); }};
  for (const std::string& program : nats::testing::NatsServer::Programs()) {
    makers.emplace_back([program] { return std::make_unique<ServerHome>(program); });
  }
  return makers;
}

std::string NameOf(const ::testing::TestParamInfo<HomeMaker>& maker) {
  return maker.index == 0 ? "Directory" : absl::StrCat("NatsServer", maker.index);
}

INSTANTIATE_TEST_SUITE_P(Stores, SchedulesTest, ::testing::ValuesIn(HomeMakers()), NameOf);

}  // namespace
}  // namespace muster::initiator::api
