// SPDX-License-Identifier: Apache-2.0

// On a real server on loopback.
#include "services/initiator/api/job_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/proto_time.h"
#include "muster/bus/local/local_buses.h"
#include "muster/job/limits.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::api {
namespace {

using job::JobText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::Duration kLong = absl::Minutes(2);

class JobServiceTest : public ::testing::Test {
 protected:
  JobServiceTest() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::JobService::service_full_name(), &service_}}).value();
    rpc::ChannelOptions once;
    once.retry_unavailable = false;
    stub_ = v1::JobService::NewStub(rpc::OpenChannel(server_->addresses().front(), once).value());
  }

  // Calls `method` of the stub.
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(grpc::Status (v1::JobService::Stub::*method)(grpc::ClientContext*,
                                                                             const Request&,
                                                                             Response*),
                                const Request& request) {
    rpc::CallContext context(kLong);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return rpc::FromGrpc(status);
    return response;
  }

  absl::StatusOr<v1::ApplyJobResponse> Apply(const std::string& definition,
                                             std::optional<std::string> expected = std::nullopt) {
    v1::ApplyJobRequest request;
    request.set_definition(definition);
    if (expected.has_value()) request.set_expected_revision(*expected);
    return Call(&v1::JobService::Stub::ApplyJob, request);
  }
  absl::StatusOr<v1::GetJobResponse> Get(const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    return Call(&v1::JobService::Stub::GetJob, request);
  }
  absl::StatusOr<v1::ListJobsResponse> List(int page_size = 0, const std::string& token = "") {
    v1::ListJobsRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    return Call(&v1::JobService::Stub::ListJobs, request);
  }
  absl::Status Delete(const std::string& name) {
    v1::DeleteJobRequest request;
    request.set_name(name);
    return Call(&v1::JobService::Stub::DeleteJob, request).status();
  }
  absl::StatusOr<v1::CheckJobResponse> Check(const std::string& definition) {
    v1::CheckJobRequest request;
    request.set_definition(definition);
    return Call(&v1::JobService::Stub::CheckJob, request);
  }

  static std::vector<std::string> Fields(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const rpc::FieldViolation& violation : rpc::Violations(status)) {
      fields.push_back(violation.field);
    }
    return fields;
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  job::JobRegistry registry_{&store_, &clock_};
  bus::local::LocalTriggerBus bus_;
  absl::StatusOr<std::optional<uint64_t>> running_ = std::nullopt;  // the running batch of any job
  std::vector<std::string> changed_;                                // as the bus told
  const std::unique_ptr<bus::TriggerBus::Subscription> subscription_ =
      bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
            EXPECT_EQ(event.from, "initiator-1");
            changed_.push_back(std::get<bus::JobChangedEvent>(event.payload).job);
          })
          .value();
  JobService service_{&registry_, &bus_, "initiator-1",
                      [this](absl::string_view) { return running_; }};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

TEST_F(JobServiceTest, AnswersTheJobThatItMadeAndTellsOthers) {
  const auto applied = Apply(JobText("a"));
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_TRUE(applied->revised());
  const v1::Job& job = applied->job();
  EXPECT_EQ(job.name(), "a");
  EXPECT_EQ(job.definition(), JobText("a"));
  EXPECT_EQ(job.revision().size(), 32u);
  EXPECT_EQ(base::FromProto(job.updated()), clock_.Now());
  EXPECT_EQ(job.schema().revision(), job.revision());
  EXPECT_THAT(job.schema().columns(), ElementsAre("amount"));
  EXPECT_THAT(changed_, ElementsAre("a"));
  EXPECT_EQ(Get("a")->job().SerializeAsString(), job.SerializeAsString());
}

TEST_F(JobServiceTest, SaysWhetherResultsAreDecidedOtherwise) {
  ASSERT_TRUE(Apply(JobText("a")).ok());
  EXPECT_FALSE(Apply(JobText("a"))->revised());
  EXPECT_FALSE(Apply(JobText("a", "amount", "1d"))->revised());
  EXPECT_TRUE(Apply(JobText("a", "price"))->revised());
}

TEST_F(JobServiceTest, TellsOthersAgainWhenACallIsRepeated) {
  ASSERT_TRUE(Apply(JobText("a"), "").ok());
  ASSERT_TRUE(Apply(JobText("a"), "").ok());
  EXPECT_THAT(changed_, ElementsAre("a", "a"));
}

TEST_F(JobServiceTest, NamesEachMistakeOfADefinitionByItsPlace) {
  const absl::Status status = Apply("name: a\nnmae: b\n").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\n2:1: "));
  EXPECT_THAT(Fields(status), ElementsAre("definition"));
  EXPECT_THAT(changed_, IsEmpty());
  for (const std::string& definition :
       {std::string(), std::string(job::kMaxJobFileBytes + 1, '#')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Apply(definition).status()));
  }
}

TEST_F(JobServiceTest, HoldsAJobToTheExpectedRevision) {
  const std::string revision = Apply(JobText("a"))->job().revision();
  const absl::Status status = Apply(JobText("a", "price"), "").status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_EQ(rpc::Reason(status)->reason, "REVISION_CHANGED");
  EXPECT_EQ(rpc::Reason(status)->metadata.at("revision"), revision);
  EXPECT_TRUE(Apply(JobText("a", "price"), revision).ok());
  EXPECT_THAT(Fields(Apply(JobText("a"), "no revision").status()),
              ElementsAre("expected_revision"));
}

TEST_F(JobServiceTest, KnowsNoOtherJobs) {
  for (const absl::Status& unknown : {Get("a").status(), Delete("a")}) {
    EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
    EXPECT_EQ(rpc::Reason(unknown), (rpc::ErrorReason{"NO_SUCH_JOB", {{"job", "a"}}}));
  }
  EXPECT_THAT(Fields(Get("").status()), ElementsAre("name"));
  EXPECT_THAT(Fields(Delete("")), ElementsAre("name"));
}

TEST_F(JobServiceTest, ListsJobsInPagesInOrderOfName) {
  for (const char* name : {"c", "a", "e", "b", "d"}) ASSERT_TRUE(Apply(JobText(name)).ok());
  std::vector<std::string> names;
  std::string token;
  int pages = 0;
  do {
    const auto page = List(2, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Job& job : page->jobs()) names.push_back(job.name());
    token = page->next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(List()->jobs_size(), 5);
}

TEST_F(JobServiceTest, EndsAPageEarlyRatherThanMakeItTooLarge) {
  for (const char* name : {"a", "b", "c", "d"}) {
    std::string text = JobText(name);
    ASSERT_TRUE(Apply(text + std::string(job::kMaxJobFileBytes - text.size(), '#')).ok());
  }
  const auto first = List();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->jobs_size(), 2);
  EXPECT_EQ(List(0, first->next_page_token())->jobs(0).name(), "c");
}

TEST_F(JobServiceTest, RefusesPagesThatAreNone) {
  for (const int size : {-1, 1001}) {
    EXPECT_THAT(Fields(List(size).status()), ElementsAre("page_size"));
  }
  for (const std::string& token : {std::string("A b"), std::string(41, 'a')}) {
    EXPECT_THAT(Fields(List(1, token).status()), ElementsAre("page_token"));
  }
}

TEST_F(JobServiceTest, ListsAJobWhoseDefinitionItCannotReadAnyMore) {
  const std::string text = JobText("a");
  ASSERT_TRUE(Apply(text).ok());
  const std::string newer = "name: a\nnewer: true\n";
  auto directory = job::DecodeDirectory(store_.Get(job::kDirectoryKey)->data);
  job::JobRecord& record = directory->jobs.front();
  record.text_hash = base::Sha256Hex(newer);
  record.text_bytes = newer.size();
  store_.Overwrite(job::PieceKey(record.text_hash, 0), newer);
  store_.Overwrite(job::kDirectoryKey, job::EncodeDirectory(*directory));
  const auto page = List();
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->jobs(0).definition(), newer);
  EXPECT_FALSE(page->jobs(0).has_schema());
}

TEST_F(JobServiceTest, ForgetsAJobAndTellsOthers) {
  ASSERT_TRUE(Apply(JobText("a")).ok());
  EXPECT_TRUE(Delete("a").ok());
  EXPECT_TRUE(absl::IsNotFound(Get("a").status()));
  EXPECT_THAT(changed_, ElementsAre("a", "a"));
}

TEST_F(JobServiceTest, KeepsAJobWhoseBatchesRun) {
  ASSERT_TRUE(Apply(JobText("a")).ok());
  running_ = 17;
  const absl::Status status = Delete("a");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("batch 17 of job 'a' is not over: `muster batch get 17` says what it waits "
                        "for, `muster batch cancel 17` gives it up"));
  running_ = absl::UnavailableError("the ledger does not answer");
  EXPECT_TRUE(absl::IsUnavailable(Delete("a")));
  EXPECT_TRUE(Get("a").ok());
}

TEST_F(JobServiceTest, SaysWhatIsWrongAndChangesNothing) {
  const auto found = Check("name: a\nnmae: b\n");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_GT(found->problems_size(), 1);
  const v1::JobProblem& last = *found->problems().rbegin();
  EXPECT_EQ(last.line(), 2);
  EXPECT_EQ(last.column(), 1);
  EXPECT_THAT(last.message(), HasSubstr("nmae"));
  EXPECT_FALSE(found->has_job());
  const auto sound = Check(JobText("a"));
  EXPECT_THAT(sound->problems(), IsEmpty());
  EXPECT_EQ(sound->job().name(), "a");
  EXPECT_EQ(sound->job().revision(), Apply(JobText("a"))->job().revision());
  EXPECT_THAT(changed_, ElementsAre("a"));
}

TEST_F(JobServiceTest, PassesOnThatTheStoreDoesNotAnswer) {
  store_.FailNextGet(absl::UnavailableError("no store"));
  EXPECT_TRUE(absl::IsUnavailable(Get("a").status()));
}

}  // namespace
}  // namespace muster::initiator::api
