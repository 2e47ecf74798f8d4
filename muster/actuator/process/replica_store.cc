// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/replica_store.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "muster/actuator/process/limits.h"
#include "muster/actuator/process/replica_keeper.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/names.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/os/child_process.h"
#include "muster/os/durable_file.h"
#include "muster/os/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace muster::actuator::process {

namespace {

using os::FileDescriptor;

// A started keeper that has not answered yet.
struct LaunchedKeeper {
  pid_t pid = 0;  // a child of this process, which must wait for it
  FileDescriptor answer;
};

constexpr size_t kMaxAnswerBytes = 4096;

// The setup of the child between fork and exec.
class SpawnPlan {
 public:
  explicit SpawnPlan(int answer) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, answer, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Libraries may have opened files without O_CLOEXEC: the child must not inherit them.
    posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD}) {
      sigaddset(&usual, number);
    }
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

struct AnswerPipe {
  FileDescriptor read_end, write_end;
};

// The write end is above the standard descriptors, which SpawnPlan replaces.
absl::StatusOr<AnswerPipe> MakeAnswerPipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  AnswerPipe pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  if (pipe.write_end.get() <= STDERR_FILENO) {
    pipe.write_end =
        FileDescriptor(fcntl(pipe.write_end.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (pipe.write_end.get() < 0) return absl::ErrnoToStatus(errno, "fcntl");
  }
  return pipe;
}

// Reads up to the first line feed; returns what has arrived when `deadline` passes or the keeper
// ends.
std::string ReadLine(int fd, absl::Duration deadline) {
  std::string said;
  std::array<char, 512> chunk;
  while (said.size() < kMaxAnswerBytes && said.find('\n') == std::string::npos) {
    const absl::Duration left = deadline - base::RealClock()->Monotonic();
    if (left <= absl::ZeroDuration()) break;
    pollfd event{fd, POLLIN, 0};
    if (poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got == 0) break;
    if (got > 0) said.append(chunk.data(), static_cast<size_t>(got));
  }
  return said;
}

// Runs `keeper`, the path of muster-replica-keeper, in its own session, so that it outlives this
// process. `environment` is added to this process's own, for the keeper and its program.
absl::StatusOr<LaunchedKeeper> LaunchKeeper(
    const std::string& keeper, const KeeperOrder& order,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  MUSTER_ASSIGN_OR_RETURN(AnswerPipe pipe, MakeAnswerPipe());
  std::vector<std::string> argv = ToArguments(order);
  argv.insert(argv.begin(), keeper);
  const std::vector<std::string> variables = os::MergeEnvironment(environment);
  const SpawnPlan plan(pipe.write_end.get());
  LaunchedKeeper launched;
  const int error =
      posix_spawn(&launched.pid, keeper.c_str(), plan.files(), plan.attributes(),
                  os::NullTerminated(argv).data(), os::NullTerminated(variables).data());
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", keeper));
  launched.answer = std::move(pipe.read_end);
  return launched;
}

// Waits for the keeper's answer: OK once the program was executed. On an error the keeper has
// ended; after `limit` this function kills it (Unavailable).
absl::Status AwaitAnswer(const LaunchedKeeper& launched, absl::Duration limit) {
  const std::string said = ReadLine(launched.answer.get(), base::RealClock()->Monotonic() + limit);
  if (said.empty() || said.back() != '\n') {
    // Nothing has waited for this child yet, so the pid still belongs to it. If its program runs,
    // the kernel sends that SIGTERM.
    kill(launched.pid, SIGKILL);
  }
  return ParseAnswer(absl::StripSuffix(said, "\n"));
}

namespace fs = std::filesystem;
using actuator::ReplicaState;

// Each keeper occupies a descriptor of this process until it has answered.
constexpr int kStartsAtATime = 64;

std::vector<fs::path> FoldersIn(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

ReplicaState StateOf(const ReplicaFolder& folder) {
  if (folder.Has(Mark::kLeaving) || folder.Has(Mark::kUnattended)) return ReplicaState::kDraining;
  return folder.Has(Mark::kReady) ? ReplicaState::kReady : ReplicaState::kStarting;
}

Departure DepartureOf(const ReplicaFolder& folder, const ReplicaRecord& record) {
  if (folder.Has(Mark::kUnattended) || record.keeper.boot != os::BootId()) {
    return Departure::kUnattended;
  }
  return folder.Has(Mark::kLeaving) ? Departure::kTold : Departure::kFailed;
}

// Without an end file the keeper was killed; the kernel has then sent SIGTERM to the program.
ReplicaEnd EndOf(const ReplicaFolder& folder, const ReplicaRecord& record) {
  absl::StatusOr<ReplicaEnd> end = folder.ReadEnd();
  if (end.ok()) return *std::move(end);
  return {"its keeper was killed", "", absl::Now() - record.started};
}

void Remove(const ReplicaFolder& folder) {
  std::error_code ignored;
  fs::remove_all(folder.path(), ignored);
}

struct Launched {
  ReplicaFolder folder;
  LaunchedKeeper keeper;
};

absl::StatusOr<Launched> Launch(const StartPlan& plan, const std::string& replicas) {
  Launched launched{ReplicaFolder(absl::StrCat(replicas, "/", base::MakeInstanceId("processor"))),
                    {}};
  if (mkdir(launched.folder.path().c_str(), 0750) != 0) {
    return os::FileError(errno, "creating", launched.folder.path());
  }
  const KeeperOrder order{launched.folder.path(), plan.target,
                          plan.agents_file,       plan.drain_grace + plan.kill_slack,
                          plan.unattended_limit,  plan.program};
  auto environment = plan.environment;
  environment.insert(environment.begin(),
                     {{"MUSTER_LISTEN", "127.0.0.1:0"},
                      {"MUSTER_ADVERTISE", ""},
                      {"MUSTER_DATA_DIR", launched.folder.data()},
                      {"MUSTER_DRAIN_GRACE", base::DurationToString(plan.drain_grace)}});
  environment.emplace_back("MUSTER_INSTANCE", launched.folder.instance());
  absl::StatusOr<LaunchedKeeper> keeper = LaunchKeeper(plan.keeper, order, environment);
  if (!keeper.ok()) {
    Remove(launched.folder);
    return std::move(keeper).status();
  }
  launched.keeper = *std::move(keeper);
  return launched;
}

}  // namespace

actuator::Replica LivingReplica::AsReplica() const {
  return {record.instance, record.instance, state, record.started};
}

std::string EncodeMetricsTargets(const std::vector<LivingReplica>& living) {
  using Json = nlohmann::ordered_json;
  Json targets = Json::array();
  for (const LivingReplica& replica : living) {
    if (replica.metrics.empty()) continue;
    Json one;
    one["targets"] = std::vector<std::string>{replica.metrics};
    one["labels"]["target"] = replica.record.target;
    one["labels"]["replica"] = replica.record.instance;
    targets.push_back(std::move(one));
  }
  return targets.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ReplicaStore::ReplicaStore(const std::string& folder)
    : replicas_(absl::StrCat(folder, "/replicas")), failed_(absl::StrCat(folder, "/failed")) {}

absl::Status ReplicaStore::Create() {
  for (const std::string& folder : {replicas_, failed_}) {
    MUSTER_RETURN_IF_ERROR(os::CreateFolder(folder));
  }
  return absl::OkStatus();
}

ReplicaInventory ReplicaStore::TakeInventory() const {
  ReplicaInventory stock;
  for (const fs::path& path : FoldersIn(replicas_)) {
    const ReplicaFolder folder(path.string());
    absl::StatusOr<ReplicaRecord> record = folder.ReadRecord();
    if (absl::IsNotFound(record.status())) {
      stock.without_record.push_back(folder);
      continue;
    }
    if (!record.ok()) {
      base::Log(base::kWarning, "a replica's folder is passed over",
                {{"folder", path.string()}, {"why", record.status().ToString()}});
      continue;
    }
    if (os::IsAlive(record->keeper, folder.instance())) {
      stock.living.push_back(
          {folder, *record, StateOf(folder), folder.Has(Mark::kUnattended), folder.ReadMetrics()});
    } else {
      stock.departed.push_back(
          {folder, *record, DepartureOf(folder, *record), EndOf(folder, *record)});
    }
  }
  return stock;
}

absl::Status ReplicaStore::Start(const StartPlan& plan, int count, std::vector<pid_t>* keepers) {
  absl::Status first_error;
  for (int left = count; left > 0 && first_error.ok(); left -= kStartsAtATime) {
    std::vector<Launched> launched;
    for (int i = 0; i < std::min(left, kStartsAtATime) && first_error.ok(); ++i) {
      absl::StatusOr<Launched> one = Launch(plan, replicas_);
      first_error.Update(one.status());
      if (one.ok()) launched.push_back(*std::move(one));
    }
    for (const Launched& one : launched) {
      const absl::Status answer = AwaitAnswer(one.keeper, kStartLimit);
      keepers->push_back(one.keeper.pid);
      first_error.Update(answer);
      if (!answer.ok()) Remove(one.folder);
    }
  }
  return first_error;
}

// Sets the mark first: if this process dies before the signal, the next agent that sees the mark
// sends the signal.
absl::Status ReplicaStore::LetGo(const LivingReplica& replica) {
  MUSTER_RETURN_IF_ERROR(replica.folder.Set(Mark::kLeaving));
  os::SendSignal(replica.record.keeper, SIGTERM);
  return absl::OkStatus();
}

// The keeper may be about to write the record, after which it runs its program. Renaming the folder
// decides which came first: if the renamed folder has no record, the keeper can no longer write
// one. Not synced: a keeper does not outlive a power cut.
bool ReplicaStore::Discard(const ReplicaFolder& folder) {
  const ReplicaFolder aside(absl::StrCat(failed_, "/", folder.instance()));
  std::error_code error;
  fs::rename(folder.path(), aside.path(), error);
  if (error) return false;
  if (!absl::IsNotFound(aside.ReadRecord().status())) {
    fs::rename(aside.path(), folder.path(), error);
    return false;
  }
  Remove(aside);
  return true;
}

void ReplicaStore::Discharge(const DepartedReplica& replica) {
  if (replica.departure != Departure::kFailed) return Remove(replica.folder);
  const std::string kept = absl::StrCat(failed_, "/", replica.record.instance);
  // Durable: after a power cut all that is left in replicas/ counts as unattended, and is removed.
  if (!os::Rename(replica.folder.path(), kept).ok()) Remove(replica.folder);
  PruneFailed();
}

void ReplicaStore::PruneFailed() {
  std::vector<std::pair<fs::file_time_type, fs::path>> folders;
  for (const fs::path& path : FoldersIn(failed_)) {
    std::error_code ignored;
    folders.emplace_back(fs::last_write_time(path, ignored), path);
  }
  std::sort(folders.begin(), folders.end());
  for (size_t i = 0; i + kKeptFailures < folders.size(); ++i) {
    Remove(ReplicaFolder(folders[i].second.string()));
  }
}

}  // namespace muster::actuator::process
