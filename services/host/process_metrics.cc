// SPDX-License-Identifier: Apache-2.0
#include "services/host/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::host {
namespace {

// Fields of /proc/self/stat behind the program's name, which may hold anything (proc(5) counts the
// first of these as 3).
constexpr size_t kThreadsField = 20 - 3;
constexpr size_t kStartField = 22 - 3;  // in clock ticks since the boot

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.empty()) return absl::UnavailableError(absl::StrCat(path, " cannot be read"));
  return text;
}

absl::StatusOr<double> NumberAt(const std::vector<std::string>& fields, size_t place,
                                absl::string_view path) {
  double number = 0;
  if (place < fields.size() && absl::SimpleAtod(fields[place], &number)) return number;
  return absl::UnavailableError(absl::StrCat(path, " has another form"));
}

absl::Status ReadStat(telemetry::Samples* samples) {
  MUSTER_ASSIGN_OR_RETURN(const std::string stat, ReadText("/proc/self/stat"));
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(stat.rfind(')') + 1), ' ', absl::SkipEmpty());
  MUSTER_ASSIGN_OR_RETURN(const double threads, NumberAt(fields, kThreadsField, "/proc/self/stat"));
  samples->Set(telemetry::kProcessThreads, {}, threads);
  MUSTER_ASSIGN_OR_RETURN(const double ticks, NumberAt(fields, kStartField, "/proc/self/stat"));
  timespec now = {}, since_boot = {};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const double boot = static_cast<double>(now.tv_sec - since_boot.tv_sec) +
                      static_cast<double>(now.tv_nsec - since_boot.tv_nsec) / 1e9;
  samples->Set(telemetry::kProcessStart, {},
               boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
  return absl::OkStatus();
}

absl::Status ReadMemory(telemetry::Samples* samples) {
  MUSTER_ASSIGN_OR_RETURN(const std::string statm, ReadText("/proc/self/statm"));
  const std::vector<std::string> fields = absl::StrSplit(statm, ' ');
  MUSTER_ASSIGN_OR_RETURN(const double pages, NumberAt(fields, 1, "/proc/self/statm"));
  samples->Set(telemetry::kProcessResident, {}, pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  return absl::OkStatus();
}

absl::Status ReadDescriptors(telemetry::Samples* samples) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return absl::UnavailableError("/proc/self/fd cannot be read");
  int open = -1;                                         // without that of the folder itself
  while (const dirent* const entry = readdir(folder)) {  // NOLINT(concurrency-mt-unsafe): own DIR
    if (entry->d_name[0] != '.') ++open;
  }
  closedir(folder);
  samples->Set(telemetry::kProcessOpenFds, {}, open);
  return absl::OkStatus();
}

absl::Status Read(telemetry::Samples* samples) {
  timespec cpu = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  samples->Set(telemetry::kProcessCpu, {},
               static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) / 1e9);
  rlimit descriptors = {};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  samples->Set(telemetry::kProcessMaxFds, {}, static_cast<double>(descriptors.rlim_cur));
  absl::Status read = ReadStat(samples);
  read.Update(ReadMemory(samples));
  read.Update(ReadDescriptors(samples));
  return read;
}

}  // namespace

std::unique_ptr<telemetry::Reading> ReadProcess(telemetry::Registry* registry) {
  return telemetry::ReadAtScrape(
      registry, "process",
      {telemetry::kProcessCpu.entry(), telemetry::kProcessResident.entry(),
       telemetry::kProcessOpenFds.entry(), telemetry::kProcessMaxFds.entry(),
       telemetry::kProcessThreads.entry(), telemetry::kProcessStart.entry()},
      Read);
}

}  // namespace muster::host
