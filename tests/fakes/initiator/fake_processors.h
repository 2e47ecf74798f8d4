// SPDX-License-Identifier: Apache-2.0

// FakeProcessors: sends the heartbeats of processors that do not exist.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/proto_time.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/roster.h"
#include "services/initiator/submit/job_throughput.h"
#include "tests/fakes/bus/mesh_fixture.h"

namespace muster::initiator {

// The load in one heartbeat.
struct ReportedLoad {
  std::string account = "acme";
  std::string job = "shop";
  int threads_max = 0;
  int threads = 0;
  double busy_share = 0;
  double items_per_second = 0;
  std::optional<absl::Duration> service_time = {};
  bool leaving = false;
};

class FakeProcessors {
 public:
  explicit FakeProcessors(base::Clock* clock) : clock_(clock), roster_(clock) {}

  // A JobThroughput of account "acme", which receives heartbeats from now on.
  std::unique_ptr<initiator::submit::JobThroughput> Throughput() {
    return initiator::submit::JobThroughput::Open(&bus_, &roster_, "acme", clock_).value();
  }

  // A heartbeat of `processor` about the last two seconds.
  void Say(const std::string& processor, const ReportedLoad& said) {
    v1::Heartbeat heartbeat = bus::Heartbeat(v1::ROLE_PROCESSOR, processor, ++sequence_);
    *heartbeat.mutable_window() = base::ToProto(bus::kHeartbeatInterval);
    heartbeat.set_leaving(said.leaving);
    v1::JobLoad& load = *heartbeat.add_jobs();
    load.set_job(said.job);
    load.add_partitions()->set_queue(absl::StrCat(said.account, "/", said.job, "-in-0"));
    load.set_threads_max(said.threads_max);
    load.set_threads(said.threads);
    load.set_busy_share(said.busy_share);
    load.set_items_per_second(said.items_per_second);
    if (said.service_time.has_value()) {
      *load.mutable_service_time()->mutable_mean() = base::ToProto(*said.service_time);
    }
    roster_.OnHeartbeat(heartbeat);
    EXPECT_TRUE(bus_.Publish(heartbeat).ok());
  }

 private:
  base::Clock* const clock_;  // not owned
  bus::Roster roster_;
  bus::local::LocalHeartbeatBus bus_;
  uint64_t sequence_ = 0;
};

}  // namespace muster::initiator
