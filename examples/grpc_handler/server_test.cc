// Runs the servers of this example against handler_grpc, each where its requirements are installed:
//   server.py           Python with grpcio and grpcio-tools. MUSTER_PYTHON: which Python; python3
//                       otherwise.
//   ../grpc_handler_go  The program that MUSTER_GO_HANDLER names; scripts/test builds it where Go
//                       is installed.
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/handler.h"
#include "muster/handler/sample_item.h"
#include "muster/job/job_file.h"

namespace muster {
namespace {

using handler::Outcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using Command = std::vector<std::string>;

std::string EnvironmentOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

absl::StatusOr<Command> PythonServer() {
  const std::string python = EnvironmentOr("MUSTER_PYTHON", "python3");
  const std::string imports = absl::StrCat(python, " -c 'import grpc, grpc_tools' 2> /dev/null");
  if (std::system(imports.c_str()) != 0) {
    return absl::NotFoundError(absl::StrCat(python, " has no grpcio and grpcio-tools"));
  }
  return Command{python, "-B", absl::StrCat(EXAMPLE_FOLDER, "/server.py")};
}

absl::StatusOr<Command> GoServer() {
  const std::string program = EnvironmentOr("MUSTER_GO_HANDLER", "");
  if (program.empty()) {
    return absl::NotFoundError(
        "MUSTER_GO_HANDLER names no program; scripts/test builds it where Go is installed");
  }
  return Command{program};
}

struct Language {
  const char* name;
  absl::StatusOr<Command> (*server)();  // NotFound: a requirement is missing
};
constexpr Language kPython = {"Python", &PythonServer};
constexpr Language kGo = {"Go", &GoServer};

std::string NameOf(const ::testing::TestParamInfo<Language>& language) {
  return language.param.name;
}

// A server on a free port.
class RunningServer {
 public:
  explicit RunningServer(Command command) {
    command.emplace_back("localhost:0");
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(pipe_ends[1]);
    std::FILE* const said = fdopen(pipe_ends[0], "r");
    int port = 0;
    EXPECT_EQ(std::fscanf(said, "listening on %*[^0-9]%d", &port), 1);
    std::fclose(said);
    address_ = absl::StrCat("localhost:", port);
  }
  ~RunningServer() {
    if (process_ != 0) End(SIGKILL);
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  const std::string& address() const { return address_; }

  // Sends the signal, and returns the status from waitpid.
  int End(int signal) {
    int status = 0;
    kill(process_, signal);
    waitpid(std::exchange(process_, 0), &status, 0);
    return status;
  }

 private:
  pid_t process_ = 0;  // 0: it has ended
  std::string address_;
};

class GrpcServerExampleTest : public ::testing::TestWithParam<Language> {
 protected:
  void SetUp() override {
    const absl::StatusOr<Command> command = GetParam().server();
    if (!command.ok()) GTEST_SKIP() << command.status().message();
    const auto job = job::LoadJobFile(absl::StrCat(EXAMPLE_FOLDER, "/job.yaml"));
    ASSERT_TRUE(job.ok()) << job.status();
    const auto& spec = std::get<job::GrpcHandlerSpec>(job->handler);
    schema_ = job->schema();
    options_.version = spec.version;
    options_.deadline = spec.deadline;
    server_.emplace(*command);
    options_.address = server_->address();
  }

  // Works on one item with each of `handlers` at the same time.
  static void ExpectOkOfAll(const std::vector<std::unique_ptr<handler::Handler>>& handlers,
                            const handler::JobSchema& schema) {
    std::vector<std::thread> workers;
    for (uint32_t worker = 0; worker < handlers.size(); ++worker) {
      workers.emplace_back([&, worker] {
        handler::ItemContext context;
        context.index = worker;
        const handler::SampleItem item({{"ada", "1.00"}}, context);
        handler::Results results(&schema, item.size());
        const Outcome outcome = handlers[worker]->Process(item.get(), results);
        EXPECT_EQ(outcome.kind, Outcome::Kind::kOk) << outcome.why;
      });
    }
    for (std::thread& worker : workers) worker.join();
  }

  handler::JobSchema schema_;  // the schema of the example's job
  handler::grpc::GrpcOptions options_;
  std::optional<RunningServer> server_;
};

TEST_P(GrpcServerExampleTest, AddsUpExactlyAndRejectsWhatMakesNoSense) {
  const auto handler = handler::grpc::GrpcHandlerFactory(options_)(schema_).value();
  const handler::SampleItem item({{"ada", "0.1"},
                                  {"bob", "3.99"},
                                  {"ada", "0.2"},
                                  {"eve", "a lot"},
                                  {"eve", "0.001"},
                                  {"eve", "1e2"},
                                  {"eve", "NaN"},
                                  {"eve", ""},
                                  {"eve", "1000000000000000"},
                                  {"flo", "999999999999999.99"},
                                  {"flo", "+999999999999999.99"},
                                  {"gus", "-7"}});
  handler::Results results(&schema_, item.size());
  const Outcome outcome = handler->Process(item.get(), results);
  ASSERT_EQ(outcome.kind, Outcome::Kind::kOk) << outcome.why;
  EXPECT_EQ(results.counted(), 6);
  std::vector<int64_t> rejected;
  for (const handler::Rejection& rejection : results.rejections()) {
    rejected.push_back(rejection.line);
  }
  EXPECT_THAT(rejected, ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_EQ(results.rejections().at(0).reason, "amount: not an amount: 'a lot'");
  std::vector<std::string> rows;
  const std::vector<handler::GroupPartial> partials = results.TakePartials();
  for (const handler::PartialRow& row : partials.at(0).rows) {
    rows.push_back(absl::StrCat(row.keys[0], " ", row.measures[0].ToString(), " ",
                                row.measures[1].ToString()));
  }
  EXPECT_THAT(rows, UnorderedElementsAre("ada 0.30 2", "bob 3.99 1", "flo 1999999999999999.98 2",
                                         "gus -7.00 1"));
}

TEST_P(GrpcServerExampleTest, RefusesAJobThatItCannotWorkOn) {
  std::vector<std::string> refusals;
  handler::ItemContext context;
  std::stop_source stop;  // stops the item, as a processor does after a refusal
  context.stop_token = stop.get_token();
  options_.on_refused = [&](const absl::Status& status) {
    refusals.emplace_back(status.message());
    stop.request_stop();
  };
  const handler::JobSchema schema{"other", "r", {"price"}, {}};
  const auto handler = handler::grpc::GrpcHandlerFactory(options_)(schema).value();
  const handler::SampleItem item({{"1"}}, context);
  handler::Results results(&schema, item.size());
  EXPECT_EQ(handler->Process(item.get(), results).kind, Outcome::Kind::kRelease);
  EXPECT_THAT(refusals, ElementsAre(AllOf(HasSubstr("customer"), HasSubstr("amount"))));
}

TEST_P(GrpcServerExampleTest, WorksForAllWorkersOfAProcessor) {
  const handler::HandlerFactory factory = handler::grpc::GrpcHandlerFactory(options_);
  std::vector<std::unique_ptr<handler::Handler>> workers;
  for (int i = 0; i < 20; ++i) workers.push_back(factory(schema_).value());
  ExpectOkOfAll(workers, schema_);
}

INSTANTIATE_TEST_SUITE_P(Each, GrpcServerExampleTest, ::testing::Values(kPython, kGo), NameOf);

class DrainingServerExampleTest : public GrpcServerExampleTest {};

// The tests of clients/go cover the items that the server is working on when it stops.
TEST_P(DrainingServerExampleTest, EndsItsCallsAndItselfWhenToldToStop) {
  options_.first_hold_back = absl::Hours(1);
  options_.max_hold_back = absl::Hours(1);
  const handler::HandlerFactory factory = handler::grpc::GrpcHandlerFactory(options_);
  std::vector<std::unique_ptr<handler::Handler>> workers;
  workers.push_back(factory(schema_).value());
  ExpectOkOfAll(workers, schema_);
  const int status = server_->End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  handler::ItemContext context;
  context.deadline = absl::Now() + absl::Seconds(1);
  const handler::SampleItem item({{"ada", "1.00"}}, context);
  handler::Results results(&schema_, item.size());
  const Outcome outcome = workers.front()->Process(item.get(), results);
  EXPECT_EQ(outcome.kind, Outcome::Kind::kDefer);
  EXPECT_THAT(outcome.why, HasSubstr("ended the call"));
}

INSTANTIATE_TEST_SUITE_P(Each, DrainingServerExampleTest, ::testing::Values(kGo), NameOf);

}  // namespace
}  // namespace muster
