// SPDX-License-Identifier: Apache-2.0

// A processor with only a WorkerService, which behaves as a test needs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/actuator/threads/threads_actuator.h"
#include "muster/base/mutex.h"
#include "muster/rpc/server.h"
#include "muster/v1/worker_service.grpc.pb.h"

namespace muster::actuator::threads {

class ScriptedProcessor final : public v1::WorkerService::Service {
 public:
  // Works for `jobs`, which are all parked at first.
  ScriptedProcessor(std::string instance, const std::vector<std::string>& jobs)
      : live_{std::move(instance), "", absl::Now(), {jobs.begin(), jobs.end()}} {
    for (const std::string& job : jobs) phases_[job] = v1::LISTENER_PHASE_PAUSED;
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    auto server = rpc::Server::Start(options, {{v1::WorkerService::service_full_name(), this}});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    live_.address = server_->addresses().front();
  }
  ~ScriptedProcessor() override {
    Hang(false);
    server_.reset();
  }

  const LiveProcessor& live() const { return live_; }
  // The process is gone, but the directory still lists it.
  void Die() { server_.reset(); }
  // While true, calls get no answer.
  void Hang(bool hangs) {
    base::MutexLock lock(&mu_);
    hangs_ = hangs;
    changed_.NotifyAll();
  }
  void SetPhase(const std::string& job, v1::ListenerPhase phase) {
    base::MutexLock lock(&mu_);
    phases_[job] = phase;
  }
  // What happens while the processor is given its tasks; set it before the first call.
  void OnSetTasks(std::function<void()> act) { on_set_tasks_ = std::move(act); }
  v1::ListenerPhase phase(const std::string& job) {
    base::MutexLock lock(&mu_);
    return phases_[job];
  }
  int tasks(const std::string& job) {
    base::MutexLock lock(&mu_);
    return tasks_[job];
  }
  int queries() {
    base::MutexLock lock(&mu_);
    return queries_;
  }

  grpc::Status QueryState(grpc::ServerContext* context, const v1::QueryStateRequest* request,
                          v1::QueryStateResponse* response) override {
    return AnswerFor(context, request->job(), [&](const std::string& job) {
      ++queries_;
      v1::ListenerState* const state = response->add_listeners();
      state->set_job(job);
      state->set_phase(phases_[job]);
    });
  }
  grpc::Status SetOptions(grpc::ServerContext* context, const v1::SetOptionsRequest* request,
                          v1::SetOptionsResponse*) override {
    if (on_set_tasks_) on_set_tasks_();
    return AnswerFor(context, request->job(), [&](const std::string& job) {
      tasks_[job] = request->options().max_dequeue_tasks();
    });
  }
  grpc::Status Pause(grpc::ServerContext* context, const v1::PauseRequest* request,
                     v1::PauseResponse*) override {
    return AnswerFor(context, request->job(),
                     [&](const std::string& job) { phases_[job] = v1::LISTENER_PHASE_PAUSED; });
  }
  grpc::Status Resume(grpc::ServerContext* context, const v1::ResumeRequest* request,
                      v1::ResumeResponse*) override {
    return AnswerFor(context, request->job(),
                     [&](const std::string& job) { phases_[job] = v1::LISTENER_PHASE_LISTENING; });
  }

 private:
  template <typename Act>
  grpc::Status AnswerFor(grpc::ServerContext* context, const std::string& asked, Act act) {
    return rpc::Answer(*context, [&]() -> absl::Status {
      base::MutexLock lock(&mu_);
      while (hangs_) changed_.Wait(&mu_);
      if (!asked.empty() && phases_.count(asked) == 0) return absl::NotFoundError("no such job");
      for (const auto& job : live_.jobs) {
        if (asked.empty() || job == asked) act(job);
      }
      return absl::OkStatus();
    });
  }

  LiveProcessor live_;
  std::function<void()> on_set_tasks_;
  base::Mutex mu_;
  base::CondVar changed_;
  bool hangs_ = false;
  int queries_ = 0;
  std::map<std::string, v1::ListenerPhase> phases_;
  std::map<std::string, int> tasks_;
  std::unique_ptr<rpc::Server> server_;
};

// Several processors, named p0, p1, …, the first being the oldest.
class ScriptedProcessors {
 public:
  ScriptedProcessors(int count, const std::vector<std::string>& jobs) {
    for (int i = 0; i < count; ++i) {
      processors_.push_back(std::make_unique<ScriptedProcessor>(absl::StrCat("p", i), jobs));
    }
  }
  ScriptedProcessor& operator[](size_t index) { return *processors_[index]; }
  ProcessorDirectory directory() {
    return [this] {
      std::vector<LiveProcessor> live;
      for (const auto& processor : processors_) live.push_back(processor->live());
      return live;
    };
  }
  int AtWork(const std::string& job) {
    int count = 0;
    for (const auto& processor : processors_) {
      count += processor->phase(job) == v1::LISTENER_PHASE_LISTENING ? 1 : 0;
    }
    return count;
  }

 private:
  std::vector<std::unique_ptr<ScriptedProcessor>> processors_;
};

}  // namespace muster::actuator::threads
