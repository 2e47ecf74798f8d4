// SPDX-License-Identifier: Apache-2.0

// Tests a processor with a job that has a gRPC server as its handler.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/rpc/server.h"
#include "muster/v1/handler_service.grpc.pb.h"
#include "tests/fakes/processor/processor_service_fixture.h"
#include "tests/fakes/rpc/test_certificates.h"

namespace muster::processor {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Counts each transaction under "counted", or refuses the job.
class CountingServer final : public v1::HandlerService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::WorkResponse, v1::WorkRequest>;

  grpc::Status Work(grpc::ServerContext*, Stream* stream) override {
    v1::WorkRequest request;
    stream->Read(&request);
    {
      base::MutexLock lock(&mu_);
      callers_.push_back(request.hello().processor());
      if (!refusal_.empty()) return {grpc::StatusCode::FAILED_PRECONDITION, refusal_};
    }
    v1::WorkResponse response;
    response.mutable_ready()->set_version("1");
    response.mutable_ready()->set_concurrency(1);
    stream->Write(response);
    while (stream->Read(&request)) {
      if (request.has_item()) Answer(request.item().item(), stream);
    }
    return grpc::Status::OK;
  }

  // Refuses the job from the next call on; an empty `why` ends the refusal.
  void Refuse(std::string why) {
    base::MutexLock lock(&mu_);
    refusal_ = std::move(why);
  }

  // Returns the names that callers gave.
  std::vector<std::string> callers() {
    base::MutexLock lock(&mu_);
    return callers_;
  }

 private:
  static void Answer(const std::string& item, Stream* stream) {
    v1::WorkResponse response;
    response.mutable_answer()->set_item(item);
    v1::GroupPartial& group = *response.mutable_answer()->mutable_ok()->add_groups();
    group.set_group("by_line");
    v1::PartialRow& row = *group.add_rows();
    row.add_keys("counted");
    row.add_measures("1");
    stream->Write(response);
  }

  base::Mutex mu_;
  std::string refusal_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> callers_ ABSL_GUARDED_BY(mu_);
};

class GrpcJobTest : public ProcessorServiceTest {
 protected:
  GrpcJobTest() {
    options_.instance = "processor-7";
    options_.look_interval = absl::Hours(1);  // the processor looks only when the test tells it to
  }
  ~GrpcJobTest() override { service_.reset(); }  // before the server that it calls

  void Serve(rpc::ServerOptions options = {}) {
    options.addresses = {"localhost:0"};
    server_ = rpc::Server::Start(options, {{v1::HandlerService::service_full_name(), &counting_}})
                  .value();
  }
  const std::string& address() const { return server_->addresses().front(); }

  static std::string DefinitionAt(const std::string& address, const std::string& more = "") {
    return absl::StrCat("name: apples\ninput: {format: lines}\nhandler: {grpc: \"", address, "\"",
                        more,
                        "}\ngroups:\n  - {name: by_line, keys: [line], measures: {n: int}}\n");
  }

  // Waits for this many calls of the handler's server, including the call in progress.
  void AwaitCalls(size_t calls) {
    Await([&] { return counting_.callers().size() >= calls; });
  }

  CountingServer counting_;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(GrpcJobTest, TellsTheHandlerWhichProcessorCalls) {
  Serve();
  const job::JobEntry apples = Apply(DefinitionAt(address()));
  Start();
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "counted");
  EXPECT_THAT(counting_.callers(), ElementsAre("processor-7"));
}

TEST_F(GrpcJobTest, TellsItInTheNameOfAnEarlierRevisionToo) {
  Serve();
  const job::JobEntry before = Apply(DefinitionAt(address()));
  Apply(DefinitionAt(address(), ", env: {RATES: new}"));
  Start();
  Put(before, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "counted");
  EXPECT_THAT(counting_.callers(), Each("processor-7"));
}

TEST_F(GrpcJobTest, CallsNoOtherHostInPlaintext) {
  Apply(DefinitionAt("bills:7800"));
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  EXPECT_EQ(Logged("cannot work for a job"), 1);
  EXPECT_EQ(Logged("--allow-plaintext"), 1);
}

TEST_F(GrpcJobTest, CallsAnotherHostInPlaintextWhenAllowed) {
  options_.handlers.allow_plaintext = true;
  Apply(DefinitionAt("bills:7800"));
  Start();
  EXPECT_THAT(Jobs(), ElementsAre("apples"));
}

TEST_F(GrpcJobTest, ShowsItsCertificateToAServerThatAsksForOne) {
  rpc::TestAuthority authority("the handlers'");
  authority.WriteRoot(dir_ / "roots.pem");
  authority.Issue("server", "DNS:localhost", dir_ / "server");
  authority.Issue("processor", "DNS:processor", dir_ / "processor");
  rpc::ServerOptions options;
  options.tls = rpc::FilesBehind(dir_ / "server", dir_ / "roots.pem");
  Serve(options);
  options_.handlers.tls = rpc::FilesBehind(dir_ / "processor", dir_ / "roots.pem");
  const job::JobEntry apples = Apply(DefinitionAt(address()));
  Start();
  Put(apples, "braeburn");
  EXPECT_EQ(AwaitResult("apples"), "counted");
}

TEST_F(GrpcJobTest, WorksForNoJobWithACertificateThatIsNotThere) {
  options_.handlers.tls.roots = dir_ / "nowhere.pem";
  Apply(DefinitionAt("localhost:7800"));
  Start();
  EXPECT_THAT(Jobs(), IsEmpty());
  EXPECT_EQ(Logged("nowhere.pem"), 1);
}

TEST_F(GrpcJobTest, StopsWorkingForAJobThatTheHandlerRefusesAndSaysSoOnce) {
  Serve();
  counting_.Refuse("no column 'price'");
  const job::JobEntry apples = Apply(DefinitionAt(address()));
  Start();
  const auto listener = ListenerOf("apples");
  Put(apples, "braeburn");
  Await([&] { return Jobs().empty(); });
  AwaitStopped(listener);
  EXPECT_EQ(Logged("cannot work for a job"), 1);
  // Before it looks: the next listener may be gone again before the test sees it.
  Put(apples, "pippin");
  Tell();
  AwaitCalls(2);
  Await([&] { return Jobs().empty(); });
  EXPECT_EQ(Logged("cannot work for a job"), 1) << "nothing is new";
}

TEST_F(GrpcJobTest, WorksAgainForAJobThatTheHandlerRefusesNoMore) {
  Serve();
  counting_.Refuse("no column 'price'");
  const job::JobEntry apples = Apply(DefinitionAt(address()));
  Start();
  Put(apples, "braeburn");
  Await([&] { return Jobs().empty(); });
  counting_.Refuse("");
  Tell();
  Await([&] { return ListenerOf("apples") != nullptr; });
  Put(apples, "pippin");
  EXPECT_EQ(AwaitResult("apples"), "counted");
}

TEST_F(GrpcJobTest, LeavesOtherJobsAloneWhenAHandlerRefusesOne) {
  Serve();
  counting_.Refuse("no column 'price'");
  const job::JobEntry apples = Apply(DefinitionAt(address())),
                      pears = Apply(Definition("pears", 5));
  Start();
  Put(apples, "braeburn");
  Await([&] { return ListenerOf("apples") == nullptr; });
  Put(pears, "conference");
  EXPECT_EQ(AwaitResult("pears"), "conference");
}

// The health trouble lasts through all retries until the handler is ready.
TEST_F(GrpcJobTest, IsInTroubleFromARefusalUntilTheHandlerIsReady) {
  Serve();
  counting_.Refuse("no column 'price'");
  const job::JobEntry apples = Apply(DefinitionAt(address()));
  Start();
  EXPECT_THAT(service_->OpenTroubles(), IsEmpty());
  Put(apples, "braeburn");
  Await([&] { return Jobs().empty(); });
  const auto refused = ElementsAre(Pair("apples", HasSubstr("no column 'price'")));
  EXPECT_THAT(service_->OpenTroubles(), refused);
  Put(apples, "pippin");
  Tell();
  AwaitCalls(2);
  Await([&] { return Jobs().empty(); });
  EXPECT_THAT(service_->OpenTroubles(), refused) << "it was refused again";
  counting_.Refuse("");
  Tell();
  Put(apples, "russet");
  EXPECT_EQ(AwaitResult("apples"), "counted");
  EXPECT_THAT(service_->OpenTroubles(), IsEmpty());
}

}  // namespace
}  // namespace muster::processor
