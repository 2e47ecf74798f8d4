#include "services/initiator/submit/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/rpc/status.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::initiator::submit {

namespace {

// The deadline of one call to the agent: a submit waits for it.
constexpr absl::Duration kAgentTime = absl::Milliseconds(500);
// A client that tries again sooner than kSoonest finds the same estimate; one that tries later than
// kLatest may find that new processors have been idle.
constexpr absl::Duration kSoonest = absl::Seconds(1);
constexpr absl::Duration kLatest = absl::Minutes(5);
// As good as never, and it still fits in seconds.
constexpr absl::Duration kLongestDrain = absl::Hours(24 * 365 * 100);
// The most messages that one queue adds: the sum over all queues does not overflow.
constexpr int64_t kMostWaiting = int64_t{1} << 50;

absl::Duration WholeSeconds(absl::Duration duration) {
  return absl::Ceil(duration, absl::Seconds(1));
}

absl::Status TooLong(const job::JobDefinition& job, absl::Duration drain, absl::Duration limit) {
  const absl::Duration retry = std::clamp(WholeSeconds(drain - limit), kSoonest, kLatest);
  absl::Status refused = absl::ResourceExhaustedError(absl::StrCat(
      "job '", job.name, "': what waits already would take ",
      base::DurationToString(WholeSeconds(drain)), ", and its queue.max_drain is ",
      base::DurationToString(limit), ": submit again in ", base::DurationToString(retry)));
  refused = rpc::WithRetryAfter(std::move(refused), retry);
  return rpc::WithReason(
      std::move(refused),
      {"DRAIN_TOO_LONG",
       {{"job", job.name},
        {"estimate_seconds", absl::StrCat(absl::ToInt64Seconds(WholeSeconds(drain)))},
        {"limit_seconds", absl::StrCat(absl::ToInt64Seconds(WholeSeconds(limit)))}}});
}

}  // namespace

absl::Status Admission::Admit(const job::JobDefinition& job) {
  if (!job.queue.max_drain.has_value()) return absl::OkStatus();
  const int64_t waiting = Waiting(job);
  if (waiting == 0) return absl::OkStatus();
  const std::optional<absl::Duration> drain = DrainTime(job, waiting);
  if (!drain.has_value() || *drain <= *job.queue.max_drain) return absl::OkStatus();
  return TooLong(job, *drain, *job.queue.max_drain);
}

// A missing queue holds nothing. A queue that cannot be read counts as empty, too: to refuse a
// batch without need is worse than to take in one too many.
int64_t Admission::Waiting(const job::JobDefinition& job) {
  int64_t waiting = 0;
  for (const queue::QueueId& id :
       item::InputQueues(deps_.account, job.name, job.queue.partitions)) {
    const absl::StatusOr<queue::QueueStats> stats = deps_.queues->Stats(id);
    if (stats.ok()) waiting += std::clamp<int64_t>(stats->stored(), 0, kMostWaiting);
  }
  if (deps_.held_back) {
    const int64_t held_back =
        deps_.held_back(item::InputQueue(deps_.account, job.name, /*partition=*/0));
    waiting += std::clamp<int64_t>(held_back, 0, kMostWaiting);
  }
  return waiting;
}

std::optional<absl::Duration> Admission::DrainTime(const job::JobDefinition& job, int64_t waiting) {
  if (const auto told = AgentsDrainTime(job)) return std::min(*told, kLongestDrain);
  const double items_per_second = deps_.throughput->ItemsPerSecond(job.name);
  if (!(items_per_second > 0)) return std::nullopt;
  return std::min(absl::Seconds(static_cast<double>(waiting) / items_per_second), kLongestDrain);
}

std::optional<absl::Duration> Admission::AgentsDrainTime(const job::JobDefinition& job) {
  using Stub = v1::ScalingService::Stub;
  v1::SimulateRequest simulate;
  // All partitions belong to the target of the first one.
  simulate.set_queue(item::InputQueue(deps_.account, job.name, 0).name);
  simulate.set_items(1);  // one more item is done when all before it are
  const auto simulated =
      deps_.agent->Unary<v1::SimulateResponse>(&Stub::Simulate, simulate, kAgentTime);
  if (!simulated.ok() || !simulated->has_finish()) return std::nullopt;
  // The estimate of an agent that only watches counts replicas that it will not start.
  const auto agent =
      deps_.agent->Unary<v1::GetAgentResponse>(&Stub::GetAgent, v1::GetAgentRequest(), kAgentTime);
  if (!agent.ok() || !agent->leads() || agent->mode() != v1::SCALING_MODE_ACT) return std::nullopt;
  return std::max(base::FromProto(simulated->finish()) - deps_.clock->Now(), absl::ZeroDuration());
}

namespace {

// An item that was finished so long ago weighs half of one that is finished now: the cost of a
// job's items changes from batch to batch.
constexpr absl::Duration kHalfLife = absl::Minutes(1);
// Twice as many as a mesh has jobs.
constexpr size_t kMaxJobs = 1000;
// More than a processor has; the sum over all processors does not overflow.
constexpr int kMaxThreads = 1024;
// No real heartbeat reports more than this.
constexpr double kMaxItemsPerSecond = 1e9;
constexpr absl::Duration kLongestService = absl::Hours(24 * 7);
constexpr absl::Duration kLongestWindow = absl::Minutes(1);
// With fewer items per thread than this, the items that cross the ends of the heartbeat's window
// make the rate wrong by a tenth or more.
constexpr double kFewItems = 10;

double Sane(double figure, double most) {
  return std::isfinite(figure) && figure > 0 ? std::min(figure, most) : 0;
}

double ItemsOf(const v1::JobLoad& load, absl::Duration window) {
  return Sane(load.items_per_second(), kMaxItemsPerSecond) * absl::ToDoubleSeconds(window);
}

// How long one item keeps a thread; 0: unknown. Besides the handler's time this includes the time
// to fetch and settle the item, which is most of it if handlers are quick.
double ThreadSeconds(const v1::JobLoad& load, absl::Duration window) {
  if (!load.has_service_time()) return 0;
  const double service =
      absl::ToDoubleSeconds(std::min(kLongestService, base::FromProto(load.service_time().mean())));
  if (!(service > 0)) return 0;
  const double items = ItemsOf(load, window);
  if (load.threads() <= 0 || items < kFewItems * load.threads()) return service;
  const double busy = Sane(load.busy_share(), 1) * std::min(load.threads(), kMaxThreads);
  return std::max(service, busy * absl::ToDoubleSeconds(window) / items);
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobThroughput>> JobThroughput::Open(bus::HeartbeatBus* bus,
                                                                   bus::Roster* roster,
                                                                   absl::string_view account,
                                                                   base::Clock* clock) {
  std::unique_ptr<JobThroughput> throughput(new JobThroughput(roster, account, clock));
  const auto on_heartbeat = [throughput = throughput.get()](const v1::Heartbeat& heartbeat) {
    throughput->OnHeartbeat(heartbeat);
  };
  MUSTER_ASSIGN_OR_RETURN(throughput->subscription_, bus->Subscribe(on_heartbeat));
  return throughput;
}

JobThroughput::JobThroughput(bus::Roster* roster, absl::string_view account, base::Clock* clock)
    : roster_(roster), queues_(absl::StrCat(account, "/")), clock_(clock) {}

bool JobThroughput::IsOurs(const v1::JobLoad& load) const {
  return std::any_of(load.partitions().begin(), load.partitions().end(),
                     [this](const v1::PartitionLoad& partition) {
                       return absl::StartsWith(partition.queue(), queues_);
                     });
}

void JobThroughput::OnHeartbeat(const v1::Heartbeat& heartbeat) {
  if (heartbeat.instance().role() != v1::ROLE_PROCESSOR) return;
  const absl::Duration window =
      std::clamp(base::FromProto(heartbeat.window()), absl::ZeroDuration(), kLongestWindow);
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  for (const v1::JobLoad& load : heartbeat.jobs()) {
    const double each = ThreadSeconds(load, window);
    if (!(each > 0) || !IsOurs(load)) continue;
    const double items = std::max(1.0, ItemsOf(load, window));
    Learned& learned = FindOrAddLocked(load.job());
    const double faded = std::exp2(-absl::FDivDuration(now - learned.at, kHalfLife));
    learned.items = learned.items * faded + items;
    learned.thread_seconds = learned.thread_seconds * faded + items * each;
    learned.at = now;
  }
}

JobThroughput::Learned& JobThroughput::FindOrAddLocked(const std::string& job) {
  if (learned_.size() >= kMaxJobs && learned_.count(job) == 0) {
    const auto earlier = [](const auto& a, const auto& b) { return a.second.at < b.second.at; };
    learned_.erase(std::min_element(learned_.begin(), learned_.end(), earlier));
  }
  return learned_[job];
}

int JobThroughput::ThreadsFor(const std::string& job) {
  int threads = 0;
  for (const bus::RosterEntry& entry : roster_->List(v1::ROLE_PROCESSOR)) {
    if (entry.leaving) continue;
    for (const v1::JobLoad& load : entry.heartbeat.jobs()) {
      if (load.job() != job || !IsOurs(load)) continue;
      threads += std::clamp(load.threads_max(), 0, kMaxThreads);
    }
  }
  return threads;
}

double JobThroughput::ItemsPerSecond(const std::string& job) {
  const int threads = ThreadsFor(job);
  base::MutexLock lock(&mu_);
  const auto learned = learned_.find(job);
  if (learned == learned_.end()) return 0;
  return threads * learned->second.items / learned->second.thread_seconds;
}

}  // namespace muster::initiator::submit
