#include "muster/bus/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace muster::bus {
namespace {

uint64_t ResidentBytes() {
  uint64_t total_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

ProcessUsage MeasureProcess() {
  ProcessUsage usage;
  rusage used;
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    usage.cpu = absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
  }
  usage.resident_bytes = ResidentBytes();
  return usage;
}

}  // namespace muster::bus
