#include "services/host/run_service.h"

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

int Serve(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "muster-processor");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int threads = 0;
  return RunService(
      static_cast<int>(argv.size()), argv.data(),
      {.role = kProcessor,
       .about = "Works.",
       .add_options = [&](CLI::App* app) { app->add_option("--threads", threads); },
       .make_role = [](const HostOptions&, base::Clock*) -> absl::StatusOr<std::unique_ptr<Role>> {
         return absl::NotFoundError("there is no such role");
       }});
}

TEST(RunService, ShowsWhatItCanBeTold) {
  CaptureStdout();
  EXPECT_EQ(Serve({"--help"}), kDone);
  EXPECT_THAT(GetCapturedStdout(),
              AllOf(HasSubstr("Works."), HasSubstr("--nats"), HasSubstr("--threads")));
}

TEST(RunService, SaysWhichVersionItIs) {
  CaptureStdout();
  EXPECT_EQ(Serve({"--version"}), kDone);
  EXPECT_THAT(GetCapturedStdout(), HasSubstr("."));
}

TEST(RunService, AnswersUsageWhenItIsMisused) {
  CaptureStderr();
  EXPECT_EQ(Serve({"--lease", "soon"}), kMisused);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("--lease"));
}

TEST(RunService, AnswersErrorWhenItCannotServe) {
  CaptureStderr();
  EXPECT_EQ(Serve({}), kFailed);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("muster-processor: there is no such role"));
}

}  // namespace
}  // namespace muster::host
