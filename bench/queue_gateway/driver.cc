// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_gateway/driver.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"

namespace muster::gateway_bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

class Driver {
 public:
  Driver(const std::string& host, int port, int connections, Pace pace, Work* work)
      : signer_(absl::StrCat(host, ":", port)), pace_(pace), work_(work), poll_(epoll_create1(0)) {
    for (int i = 0; i < connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(port));
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.u32 = static_cast<uint32_t>(i);
      epoll_ctl(poll_, EPOLL_CTL_ADD, connections_.back()->descriptor(), &event);
      free_.push_back(i);
    }
    due_.resize(connections_.size());
  }
  ~Driver() { close(poll_); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  Outcome Run() {
    const std::clock_t cpu = std::clock();
    begin_ = Clock::now();
    BeginAll();
    while (free_.size() < connections_.size() || !is_over_) {
      Await();
      BeginAll();
    }
    Outcome outcome;
    outcome.seconds = Seconds(Clock::now() - begin_);
    outcome.cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    outcome.messages = work_->done();
    std::sort(request_ms_.begin(), request_ms_.end());
    outcome.request_ms = std::move(request_ms_);
    return outcome;
  }

 private:
  // When the next beginning is due.
  Clock::time_point NextDue() const {
    if (pace_.messages_per_second == 0) return Clock::now();
    const double after =
        static_cast<double>(begun_) * work_->messages_of_begin() / pace_.messages_per_second;
    return begin_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(after));
  }

  void BeginAll() {
    while (!is_over_ && !free_.empty()) {
      const Clock::time_point due = NextDue();
      if (due > Clock::now()) return;
      const std::optional<Request> request = work_->Begin(free_.back());
      if (!request.has_value()) {
        is_over_ = true;
        return;
      }
      ++begun_;
      Send(free_.back(), *request, due);
      free_.pop_back();
    }
  }

  void Send(int index, const Request& request, Clock::time_point due) {
    due_[static_cast<size_t>(index)] = due;
    connections_[static_cast<size_t>(index)]->Send(signer_.Sign(request));
  }

  // Sleeps until a reply comes, or the next beginning is due.
  void Await() {
    timespec wait = {};
    const bool has_end = pace_.messages_per_second > 0 && !is_over_ && !free_.empty();
    if (has_end) {
      constexpr int64_t kNanos = 1'000'000'000;
      const auto nanos = std::max<int64_t>(
          0,
          std::chrono::duration_cast<std::chrono::nanoseconds>(NextDue() - Clock::now()).count());
      wait = {.tv_sec = nanos / kNanos, .tv_nsec = nanos % kNanos};
    }
    std::array<epoll_event, 256> events;
    const int count =
        epoll_pwait2(poll_, events.data(), events.size(), has_end ? &wait : nullptr, nullptr);
    for (int i = 0; i < count; ++i) {
      OnReadable(static_cast<int>(events[static_cast<size_t>(i)].data.u32));
    }
  }

  void OnReadable(int index) {
    Reply reply;
    if (!connections_[static_cast<size_t>(index)]->Receive(&reply)) return;
    const Clock::time_point now = Clock::now();
    request_ms_.push_back(Seconds(now - due_[static_cast<size_t>(index)]) * 1000);
    work_->OnReply(index, reply);
    const std::optional<Request> next = work_->GoOn(index);
    if (next.has_value()) return Send(index, *next, now);
    free_.push_back(index);
  }

  Signer signer_;
  const Pace pace_;
  Work* const work_;  // not owned
  const int poll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<int> free_;
  std::vector<Clock::time_point> due_;  // of the request under way, by connection
  std::vector<double> request_ms_;
  Clock::time_point begin_;
  int64_t begun_ = 0;
  bool is_over_ = false;
};

}  // namespace

double Outcome::Percentile(double share) const {
  if (request_ms.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(request_ms.size())));
  return request_ms[std::min(request_ms.size() - 1, rank == 0 ? 0 : rank - 1)];
}

Outcome RunWork(const std::string& host, int port, int connections, Pace pace, Work* work) {
  return Driver(host, port, connections, pace, work).Run();
}

}  // namespace muster::gateway_bench
