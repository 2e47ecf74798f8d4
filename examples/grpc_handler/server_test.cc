// Runs server.py, where Python has grpcio and grpcio-tools. MUSTER_PYTHON: which Python; python3
// otherwise.
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/handler.h"
#include "muster/handler/sample_item.h"
#include "muster/handler_grpc/grpc_handler.h"
#include "muster/job/job_file.h"

namespace muster {
namespace {

using handler::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string Python() {
  const char* const python = std::getenv("MUSTER_PYTHON");
  return python == nullptr ? "python3" : python;
}

bool HasGrpc() {
  return std::system(
             absl::StrCat(Python(), " -c 'import grpc, grpc_tools' 2> /dev/null").c_str()) == 0;
}

// server.py on a port that is free.
class PythonServer {
 public:
  PythonServer() {
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      const std::string python = Python(), server = absl::StrCat(EXAMPLE_FOLDER, "/server.py");
      execlp(python.c_str(), python.c_str(), "-B", server.c_str(), "localhost:0", nullptr);
      _exit(127);
    }
    close(pipe_ends[1]);
    std::FILE* const said = fdopen(pipe_ends[0], "r");
    int port = 0;
    EXPECT_EQ(std::fscanf(said, "listening on port %d", &port), 1);
    std::fclose(said);
    address_ = absl::StrCat("localhost:", port);
  }
  ~PythonServer() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  PythonServer(const PythonServer&) = delete;
  PythonServer& operator=(const PythonServer&) = delete;

  const std::string& address() const { return address_; }

 private:
  pid_t process_ = 0;
  std::string address_;
};

TEST(GrpcServerExampleTest, AddsUpExactlyAndRejectsWhatMakesNoSense) {
  if (!HasGrpc()) GTEST_SKIP() << Python() << " has no grpcio and grpcio-tools";
  const PythonServer server;
  const auto job = job::LoadJobFile(absl::StrCat(EXAMPLE_FOLDER, "/job.yaml"));
  ASSERT_TRUE(job.ok()) << job.status();
  const auto& spec = std::get<job::GrpcHandlerSpec>(job->handler);
  handler_grpc::GrpcOptions options;
  options.address = server.address();
  options.version = spec.version;
  options.deadline = spec.deadline;
  const handler::JobSchema schema = job->schema();
  const auto handler = handler_grpc::GrpcHandlerFactory(options)(schema).value();
  const handler::SampleItem item(
      {{"ada", "0.1"}, {"bob", "3.99"}, {"ada", "0.2"}, {"eve", "a lot"}, {"eve", "0.001"}});
  handler::Results results(&schema, item.size());
  const Outcome outcome = handler->Process(item.get(), results);
  ASSERT_EQ(outcome.kind, Outcome::Kind::kOk) << outcome.why;
  EXPECT_EQ(results.counted(), 3);
  ASSERT_EQ(results.rejections().size(), 2u);
  EXPECT_THAT(results.rejections()[0].reason, HasSubstr("not an amount: 'a lot'"));
  std::vector<std::string> rows;
  const std::vector<handler::GroupPartial> partials = results.TakePartials();
  for (const handler::PartialRow& row : partials.at(0).rows) {
    rows.push_back(absl::StrCat(row.keys[0], " ", row.measures[0].ToString(), " ",
                                row.measures[1].ToString()));
  }
  EXPECT_THAT(rows, UnorderedElementsAre("ada 0.30 2", "bob 3.99 1"));
}

TEST(GrpcServerExampleTest, RefusesAJobThatItCannotWorkOn) {
  if (!HasGrpc()) GTEST_SKIP() << Python() << " has no grpcio and grpcio-tools";
  const PythonServer server;
  std::vector<std::string> refusals;
  handler_grpc::GrpcOptions options;
  options.address = server.address();
  options.deadline = absl::Seconds(10);
  options.max_hold_back = absl::Hours(1);
  options.on_refused = [&](const absl::Status& status) { refusals.emplace_back(status.message()); };
  const handler::JobSchema schema{"other", "r", {"price"}, {}};
  const auto handler = handler_grpc::GrpcHandlerFactory(options)(schema).value();
  const handler::SampleItem item({{"1"}});
  handler::Results results(&schema, item.size());
  EXPECT_EQ(handler->Process(item.get(), results).kind, Outcome::Kind::kDefer);
  EXPECT_THAT(refusals, ElementsAre(HasSubstr("customer and amount")));
}

}  // namespace
}  // namespace muster
