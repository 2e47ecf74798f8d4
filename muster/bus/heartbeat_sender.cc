// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/heartbeat_sender.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/proto_time.h"

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

HeartbeatSender::HeartbeatSender(v1::InstanceInfo instance, Complete complete, HeartbeatBus* bus,
                                 Roster* roster, base::Clock* clock, HeartbeatOptions options)
    : instance_(std::move(instance)),
      complete_(std::move(complete)),
      bus_(bus),
      roster_(roster),
      clock_(clock),
      options_(std::move(options)),
      sent_at_(clock->Monotonic()),
      cpu_(options_.measure().cpu) {
  MUSTER_CHECK(options_.interval > absl::ZeroDuration(), "interval ",
               absl::FormatDuration(options_.interval));
}

HeartbeatSender::~HeartbeatSender() { Leave(); }

void HeartbeatSender::Start() {
  base::MutexLock lock(&thread_mu_);
  thread_ = std::thread([this] { Run(); });
}

void HeartbeatSender::Leave() {
  base::MutexLock leaving(&thread_mu_);
  if (!thread_.joinable()) return;
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  Send(/*leaving=*/true);
}

// The schedule follows the clock, not the end of the last send: a slow bus loses heartbeats but
// does not stretch their interval.
void HeartbeatSender::Run() {
  absl::Duration due = clock_->Monotonic();
  while (true) {
    Send(/*leaving=*/false);
    const absl::Duration now = clock_->Monotonic();
    while (due <= now) due += options_.interval;
    if (!AwaitNext(due)) return;
  }
}

bool HeartbeatSender::AwaitNext(absl::Duration regular) {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    const absl::Duration next = greet_ ? std::min(regular, sent_at_ + kGreetInterval) : regular;
    if (clock_->WaitUntil(&changed_, &mu_, next)) break;
  }
  greet_ = false;  // new instances receive the heartbeat that comes now
  return !stopping_;
}

void HeartbeatSender::Greet() {
  base::MutexLock lock(&mu_);
  greet_ = true;
  changed_.NotifyAll();
}

void HeartbeatSender::Send(bool leaving) {
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration window = now - sent_at_;
  const ProcessUsage usage = options_.measure();
  v1::Heartbeat heartbeat;
  *heartbeat.mutable_instance() = instance_;
  heartbeat.set_sequence(++sequence_);
  *heartbeat.mutable_sent() = base::ToProto(clock_->Now());
  *heartbeat.mutable_window() = base::ToProto(window);
  if (window > absl::ZeroDuration()) {
    heartbeat.set_cpu_cores(absl::FDivDuration(usage.cpu - cpu_, window));
  }
  heartbeat.set_resident_bytes(usage.resident_bytes);
  heartbeat.set_leaving(leaving);
  if (complete_) complete_(window, &heartbeat);
  Shorten(&heartbeat);
  sent_at_ = now;
  cpu_ = usage.cpu;
  if (roster_ != nullptr) roster_->OnHeartbeat(heartbeat);
  Note(bus_->Publish(heartbeat));
}

void HeartbeatSender::Shorten(v1::Heartbeat* heartbeat) {
  while (heartbeat->jobs_size() > 0 && heartbeat->ByteSizeLong() > kMaxHeartbeatBytes) {
    heartbeat->mutable_jobs()->RemoveLast();
  }
}

void HeartbeatSender::Note(const absl::Status& published) {
  if (published.ok() != bus_fails_) return;
  bus_fails_ = !bus_fails_;
  if (bus_fails_) {
    base::Log(base::kWarning, "heartbeats do not get through", {{"why", published.ToString()}});
  } else {
    base::Log(base::kInfo, "heartbeats get through again");
  }
}

}  // namespace muster::bus
