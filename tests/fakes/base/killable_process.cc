// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/base/killable_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::base::testing {
namespace {

constexpr char kNameVariable[] = "MUSTER_TEST_VICTIM";
constexpr char kArgumentVariable[] = "MUSTER_TEST_VICTIM_ARGUMENT";
constexpr int kSayFd = 3;

using Act = std::function<void(const std::string&)>;

std::map<std::string, Act>& Acts() {
  static auto* const acts = new std::map<std::string, Act>;
  return *acts;
}

// GoogleTest calls SetUp before the first test; in a victim it never returns.
class Stage final : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* const name = std::getenv(kNameVariable);
    if (name == nullptr) return;
    const auto act = Acts().find(name);
    if (act == Acts().end()) _exit(1);
    act->second(std::getenv(kArgumentVariable));
    _exit(0);
  }
};

// Makes a pipe whose ends avoid the victim's fixed descriptors, and which no other child inherits.
void MakePipe(int* ends) {
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  for (int i = 0; i < 2; ++i) {
    const int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, kSayFd + 1);
    close(ends[i]);
    ends[i] = moved;
  }
}

}  // namespace

// One short line is one atomic write into the pipe.
void Send(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  if (write(kSayFd, text.data(), text.size()) < 0) _exit(1);
}

void AwaitKill() {
  while (true) pause();
}

RegisteredProcess::RegisteredProcess(std::string name, Act act) {
  if (Acts().empty()) ::testing::AddGlobalTestEnvironment(new Stage);
  Acts()[std::move(name)] = std::move(act);
}

KillableProcess::KillableProcess(const std::string& name, const std::string& argument) {
  int ends[2];
  MakePipe(ends);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kSayFd);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  setenv(kNameVariable, name.c_str(), 1);
  setenv(kArgumentVariable, argument.c_str(), 1);
  char self[] = "/proc/self/exe";
  char* arguments[] = {self, nullptr};
  EXPECT_EQ(posix_spawn(&process_, self, &actions, nullptr, arguments, environ), 0);
  unsetenv(kNameVariable);
  unsetenv(kArgumentVariable);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  received_ = fdopen(ends[0], "r");
}

KillableProcess::~KillableProcess() {
  Kill();
  fclose(received_);
}

std::optional<std::string> KillableProcess::Receive() {
  char* line = nullptr;
  size_t room = 0;
  const ssize_t length = getline(&line, &room, received_);
  std::optional<std::string> heard;
  // A last line without its end was cut off by the kill.
  if (length > 0 && line[length - 1] == '\n') heard.emplace(line, static_cast<size_t>(length) - 1);
  free(line);
  return heard;
}

bool KillableProcess::Kill() {
  if (process_ <= 0) return killed_;
  kill(process_, SIGKILL);
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = 0;
  killed_ = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return killed_;
}

}  // namespace muster::base::testing
