// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/follower.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "muster/client/batch.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::cli {
namespace {

// What a wait may last longer than it was told to, for a look at why it was in vain.
constexpr absl::Duration kLastLook = absl::Milliseconds(500);

}  // namespace

Follower::~Follower() {
  stop_.request_stop();
  std::thread thread;
  {
    base::MutexLock lock(&mu_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Follower::Begin(uint64_t batch) {
  base::MutexLock lock(&mu_);
  if (thread_.joinable()) return;
  batch_ = batch;
  thread_ = std::thread([this, batch] { Run(batch); });
}

void Follower::Run(uint64_t batch) {
  client::WatchOptions options;
  options.on_status = [this](const v1::BatchStatus& status) {
    const bool new_problem = [&] {
      base::MutexLock lock(&mu_);
      const bool is_new = !status.problem().empty() &&
                          (!latest_.has_value() || status.problem() != latest_->problem());
      latest_ = status;
      return is_new;
    }();
    if (new_problem) {
      *environment_->err << "\nmuster: batch " << status.batch()
                         << " waits: " << Printable(status.problem()) << std::endl;
    }
  };
  options.on_trouble = [this](const absl::Status& trouble) {
    *environment_->err << "\nmuster: " << Printable(trouble.message())
                       << "; trying again for a while" << std::endl;
  };
  absl::StatusOr<v1::BatchStatus> end =
      client::Watch(mesh_->initiator(), batch, options, environment_->clock, stop_.get_token());
  if (!end.ok()) end = mesh_->Explained(end.status());
  base::MutexLock lock(&mu_);
  end_ = std::move(end);
  changed_.NotifyAll();
}

absl::StatusOr<v1::BatchStatus> Follower::AwaitEnd(absl::Duration timeout,
                                                   const std::stop_token& stop) {
  const std::stop_callback wake(stop, base::WakeAll{&mu_, &changed_});
  const absl::Duration deadline = environment_->clock->Monotonic() + timeout;
  {
    base::MutexLock lock(&mu_);
    bool is_late = false;
    while (!end_.has_value() && !is_late) {
      if (stop.stop_requested()) {
        return absl::CancelledError(absl::StrCat("stopped waiting; batch ", batch_.load(),
                                                 " goes on, and `muster batch watch ",
                                                 batch_.load(), "` shows it"));
      }
      is_late = environment_->clock->WaitUntil(&changed_, &mu_, deadline);
    }
    if (end_.has_value()) return *end_;
  }
  return LastLook();
}

// Asks the initiator again: the latest status may be old, since an initiator that hangs sends none,
// and after a short wait none has come.
absl::StatusOr<v1::BatchStatus> Follower::LastLook() {
  const std::string not_complete = absl::StrCat("batch ", batch_.load(), " is not complete yet");
  v1::GetBatchRequest request;
  request.set_batch(batch_);
  const auto response = mesh_->CallAtMost(&v1::BatchService::Stub::GetBatch, request, kLastLook);
  if (!response.ok()) {
    return absl::DeadlineExceededError(
        absl::StrCat(not_complete, "; ", response.status().message()));
  }
  const v1::BatchStatus& status = response->status();
  if (client::IsOver(status)) return status;
  const std::string& why = status.problem();
  return absl::DeadlineExceededError(
      absl::StrCat(not_complete, ", ", Grouped(static_cast<uint64_t>(status.transactions())),
                   " of its transactions are counted", why.empty() ? "" : "; it waits: ", why));
}

std::optional<RunProgress> Follower::progress() const {
  base::MutexLock lock(&mu_);
  if (!latest_.has_value()) return std::nullopt;
  const v1::BatchFlow& flow = latest_->progress();
  RunProgress progress;
  progress.read = static_cast<uint64_t>(flow.read());
  progress.queued = static_cast<uint64_t>(flow.queued());
  progress.processed = static_cast<uint64_t>(flow.processed());
  progress.committed = static_cast<uint64_t>(flow.committed());
  progress.rejected = static_cast<uint64_t>(latest_->rejected());
  progress.dead_lettered = static_cast<uint64_t>(latest_->dead_lettered());
  progress.split = flow.split();
  return progress;
}

std::unique_ptr<ProgressBar> BarOf(const Follower& follower, const Environment& environment) {
  return std::make_unique<ProgressBar>(
      ProgressBarOptions::For(environment), [&follower] { return follower.progress(); },
      environment.err, environment.clock);
}

}  // namespace muster::cli
