// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller_seat.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/partition/options.h"

namespace muster::controller {
namespace {

// Controllers that run over one data directory at a time; one counts, the others wait.
constexpr int kSeats = 8;
constexpr size_t kMaxBytes = (partition::kMaxPredecessors + 1) * (partition::kMaxMemberBytes + 1);

std::string SeatFile(const std::string& folder, int seat) {
  return absl::StrCat(folder, "/controller-seat-", seat);
}

bool IsTaken(const std::string& path) {
  const os::FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControllerSeat>> ControllerSeat::Take(const std::string& folder,
                                                                     const std::string& instance) {
  for (int seat = 0; seat < kSeats; ++seat) {
    const std::string path = SeatFile(folder, seat);
    os::FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (file.get() < 0) return absl::ErrnoToStatus(errno, path);
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::unique_ptr<ControllerSeat> taken(new ControllerSeat(instance, std::move(file)));
    taken->is_alone_ = seat == 0;
    for (int other = 1; other < kSeats; ++other) {
      if (IsTaken(SeatFile(folder, other))) taken->is_alone_ = false;
    }
    taken->Read();
    taken->Write();
    return taken;
  }
  return std::unique_ptr<ControllerSeat>(new ControllerSeat(instance, os::FileDescriptor()));
}

void ControllerSeat::Read() {
  std::string text(kMaxBytes, '\0');
  const ssize_t bytes = pread(file_.get(), text.data(), text.size(), 0);
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  // A name that was cut short by a crash is no member's, and does no harm.
  for (const absl::string_view name : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (name.size() <= partition::kMaxMemberBytes) predecessors_.emplace_back(name);
  }
  if (predecessors_.size() > partition::kMaxPredecessors) {
    predecessors_.erase(predecessors_.begin(), predecessors_.end() - partition::kMaxPredecessors);
  }
}

// Of a write that fails, the next process has to wait for a lease.
void ControllerSeat::Write() {
  std::vector<std::string> names = predecessors_;
  names.push_back(instance_);
  const std::string text = absl::StrJoin(names, "\n") + "\n";
  const bool written =
      ftruncate(file_.get(), 0) == 0 &&
      pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  static_cast<void>(written);
}

void ControllerSeat::Keep() {
  if (file_.get() < 0 || predecessors_.empty()) return;
  predecessors_.clear();
  Write();
}

}  // namespace muster::controller
