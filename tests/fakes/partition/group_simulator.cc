// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/partition/group_simulator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::partition::testing {

RecordReply RecordMap::Read(const RecordName& name) const {
  const auto it = records_.find(name);
  if (it == records_.end()) return {};
  return {.value = it->second.value, .version = it->second.version};
}

RecordReply RecordMap::CarryOut(const RecordRequest& request) {
  if (request.verb == RecordRequest::Verb::kRead) return Read(request.name);
  const auto it = records_.find(request.name);
  const uint64_t stored = it == records_.end() ? sync::kAbsent : it->second.version;
  if (stored != request.version) return {.done = false};
  if (request.verb == RecordRequest::Verb::kDelete) {
    highest_removed_ = std::max(highest_removed_, stored);
    records_.erase(request.name);
  } else {
    records_[request.name] = {request.value, std::max(highest_removed_, stored) + 1};
  }
  return {};
}

struct GroupSimulator::Node {
  Node(const MemberOptions& member_options, uint64_t seed, double clock_rate)
      : options(member_options), rate(clock_rate), protocol(member_options, seed) {}

  absl::Duration Local(absl::Duration global) const { return global * rate; }
  absl::Duration Global(absl::Duration local) const { return local / rate; }

  const MemberOptions options;
  const double rate;
  MemberProtocol protocol;
  bool alive = true;
  bool takes_part = true;  // false: it leaves, or is paused
  bool in_flight = false;
  absl::Duration paused_until = absl::ZeroDuration();
  absl::Duration cycle_began = -absl::InfiniteDuration();
  double cycle_share = 1;
};

GroupSimulator::GroupSimulator(const SimulationOptions& options)
    : options_(options),
      random_(options.seed),
      last_holder_(static_cast<size_t>(options.partitions)) {}

GroupSimulator::~GroupSimulator() = default;

void GroupSimulator::At(absl::Duration at, std::function<void()> run) {
  events_.push({at, order_++, std::move(run)});
}

absl::Duration GroupSimulator::Between(absl::Duration low, absl::Duration high) {
  return low + (high - low) * Uniform();
}

void GroupSimulator::Join(const std::string& member) {
  const MemberOptions member_options{.group = "simulated",
                                     .member = member,
                                     .partitions = options_.partitions,
                                     .strategy = options_.strategy,
                                     .lease = options_.lease,
                                     .page_rows = options_.page_rows};
  const double rate = 1 + options_.clock_skew * (2 * Uniform() - 1);
  const uint64_t seed = random_();
  BeginPhase();
  nodes_[member] = std::make_shared<Node>(member_options, seed, rate);
  phase_began_with_ = MovesToGo();
  At(now_, [this, node = nodes_[member]] { Pump(node); });
}

void GroupSimulator::Leave(const std::string& member) {
  BeginPhase();
  const std::shared_ptr<Node> node = nodes_.at(member);
  node->takes_part = false;
  phase_began_with_ = MovesToGo();
  node->protocol.BeginStop(node->Local(now_));
  Pump(node);
}

void GroupSimulator::Crash(const std::string& member) {
  BeginPhase();
  nodes_.at(member)->alive = false;
  nodes_.erase(member);
  phase_began_with_ = MovesToGo();
}

void GroupSimulator::Pause(const std::string& member, absl::Duration duration) {
  BeginPhase();
  const std::shared_ptr<Node> node = nodes_.at(member);
  node->takes_part = false;
  node->paused_until = now_ + duration;
  phase_began_with_ = MovesToGo();
  At(node->paused_until, [this, node] {
    if (!node->alive) return;
    BeginPhase();
    node->takes_part = true;
    phase_began_with_ = MovesToGo();
    Pump(node);
  });
}

void GroupSimulator::Pin(int partition, const std::string& member) {
  const RecordName name{.page = partition / options_.page_rows};
  RecordReply read = records_.Read(name);
  Ownership ownership = Read(partition);
  ownership.pinned_to = member;
  SetRow(&read.value.owners, partition % options_.page_rows, std::move(ownership));
  records_.CarryOut({.verb = RecordRequest::Verb::kWrite,
                     .name = name,
                     .value = read.value,
                     .version = read.version});
}

void GroupSimulator::RemovePins() {
  for (int p = 0; p < options_.partitions; ++p) Pin(p, "");
}

void GroupSimulator::StallStore(absl::Duration duration) { stalled_until_ = now_ + duration; }

void GroupSimulator::RunFor(absl::Duration duration) {
  RunUntil([] { return false; }, duration);
}

bool GroupSimulator::RunUntil(const std::function<bool()>& done, absl::Duration duration) {
  const absl::Duration end = now_ + duration;
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
    if (done()) return true;
  }
  now_ = end;
  return false;
}

// A member sends its next request, or sleeps until its next cycle or deadline.
void GroupSimulator::Pump(const std::shared_ptr<Node>& node) {
  if (!node->alive || node->in_flight || now_ < node->paused_until) return;
  MemberProtocol& protocol = node->protocol;
  const absl::Duration local = node->Local(now_);
  std::optional<RecordRequest> request = protocol.Next(local);
  const double share = protocol.wants_cycle_soon() ? kSoonCycle : node->cycle_share;
  if (!request.has_value() && local >= node->cycle_began + node->options.interval * share) {
    node->cycle_began = local;
    node->cycle_share = kShortestCycle + Uniform() * (kLongestCycle - kShortestCycle);
    protocol.BeginCycle(local);
    request = protocol.Next(local);
  }
  HandleEvents(node);
  if (request.has_value()) return Send(node, *request);
  if (protocol.has_left()) {
    node->alive = false;
    nodes_.erase(node->options.member);
    return;
  }
  WakeLater(node);
}

void GroupSimulator::WakeLater(const std::shared_ptr<Node>& node) {
  const double share = node->protocol.wants_cycle_soon() ? kSoonCycle : node->cycle_share;
  const absl::Duration local =
      std::min(node->cycle_began + node->options.interval * share, node->protocol.NextDeadline());
  const absl::Duration wake = std::max(node->Global(local), now_) + absl::Nanoseconds(10);
  if (wake == absl::InfiniteDuration()) return;
  At(wake, [this, node] { Pump(node); });
}

// A request that fails is carried out never, now, or some seconds after its failure is reported.
void GroupSimulator::Send(const std::shared_ptr<Node>& node, const RecordRequest& request) {
  node->in_flight = true;
  ++requests_;
  const absl::Duration latency = Between(options_.min_latency, options_.max_latency);
  const absl::Duration arrives = std::max(now_ + latency / 2, stalled_until_);
  const bool fails = Uniform() < options_.fault_rate;
  const double fault = Uniform();
  const absl::Duration late = Between(absl::ZeroDuration(), absl::Seconds(20));
  const auto finish = [this, node, page = request.name.page](const RecordReply& reply) {
    if (!node->alive) return;
    node->in_flight = false;
    node->protocol.OnReply(reply, node->Local(now_));
    CheckHolders(page);
    Pump(node);
  };
  // A reply that reaches a paused member waits for it.
  const auto deliver = [this, node, finish](const RecordReply& reply) {
    At(std::max(now_, node->paused_until), [finish, reply] { finish(reply); });
  };
  At(arrives, [this, request, latency, fails, fault, late, deliver] {
    if (!fails) {
      const RecordReply reply = records_.CarryOut(request);
      At(now_ + latency / 2, [deliver, reply] { deliver(reply); });
      return;
    }
    if (fault < 0.33) records_.CarryOut(request);
    At(now_ + absl::Seconds(1),
       [deliver] { deliver({.status = absl::UnavailableError("no reply"), .done = false}); });
    if (fault > 0.66) At(now_ + late, [this, request] { records_.CarryOut(request); });
  });
}

void GroupSimulator::HandleEvents(const std::shared_ptr<Node>& node) {
  for (const WorkEvent& event : node->protocol.TakeEvents()) {
    switch (event.kind) {
      case WorkEvent::Kind::kAssigned:
        OnAssigned(*node, event.partition);
        break;
      case WorkEvent::Kind::kDraining:
        At(now_ + Between(absl::ZeroDuration(), options_.max_drain), [this, node, event] {
          node->protocol.Drained(event.partition, event.epoch);
          Pump(node);
        });
        break;
      case WorkEvent::Kind::kRevoked:
        // Commits ask Held, so the work has stopped; the driver says so in a call of its own.
        At(now_, [this, node, event] {
          node->protocol.Stopped(event.partition, event.epoch);
          Pump(node);
        });
        break;
    }
  }
}

void GroupSimulator::OnAssigned(const Node& node, int partition) {
  std::string& last = last_holder_[static_cast<size_t>(partition)];
  if (last != node.options.member) {
    ++moves_;
    last_move_ = now_;
  }
  last = node.options.member;
}

bool GroupSimulator::Holds(const Node& node, int partition) const {
  return node.protocol.Held(partition, node.Local(now_)).has_value();
}

void GroupSimulator::CheckHolders(int page) {
  const int first = page * options_.page_rows;
  const int end = std::min(options_.partitions, first + options_.page_rows);
  for (int p = first; p < end; ++p) {
    std::vector<std::string> holders;
    for (const auto& [name, node] : nodes_) {
      if (Holds(*node, p)) holders.push_back(name);
    }
    if (holders.size() < 2) continue;
    violations_.push_back(absl::StrCat("at ", absl::FormatDuration(now_), " ", holders[0], " and ",
                                       holders[1], " hold partition ", p));
  }
}

Ownership GroupSimulator::Read(int partition) const {
  const RecordReply page = records_.Read({.page = partition / options_.page_rows});
  return RowOf(page.value.owners, partition % options_.page_rows);
}

std::vector<std::string> GroupSimulator::Members() const {
  std::vector<std::string> members;
  for (const auto& [name, node] : nodes_) {
    if (node->takes_part) members.push_back(name);
  }
  return members;
}

std::map<std::string, int> GroupSimulator::Held() const {
  std::map<std::string, int> held;
  for (const auto& [name, node] : nodes_) {
    if (!node->takes_part) continue;
    held[name] = 0;
    for (int p = 0; p < options_.partitions; ++p) held[name] += Holds(*node, p) ? 1 : 0;
  }
  return held;
}

std::string GroupSimulator::HolderOf(int partition) const {
  for (const auto& [name, node] : nodes_) {
    if (Holds(*node, partition)) return name;
  }
  return "";
}

std::pair<std::string, std::string> GroupSimulator::HandOver() const {
  for (int p = 0; p < options_.partitions; ++p) {
    const Ownership record = Read(p);
    if (record.granted && nodes_.contains(record.owner) && nodes_.contains(record.wanted_by)) {
      return {record.owner, record.wanted_by};
    }
  }
  return {};
}

int GroupSimulator::least_moves() const { return least_before_ + phase_began_with_ - MovesToGo(); }

void GroupSimulator::BeginPhase() { least_before_ += phase_began_with_ - MovesToGo(); }

// Partitions whose holder is gone must move. Of the others, the members with most keep one more
// than the quota while there is a remainder, and what is above that must move.
int GroupSimulator::MovesToGo() const {
  std::map<std::string, int> counts;
  for (const std::string& member : Members()) counts[member] = 0;
  if (counts.empty()) return 0;
  int moves = 0;
  for (const std::string& holder : last_holder_) {
    const auto it = counts.find(holder);
    it == counts.end() ? ++moves : ++it->second;
  }
  std::vector<int> sorted;
  for (const auto& [_, count] : counts) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  const int members = static_cast<int>(sorted.size());
  const int quota = options_.partitions / members;
  const int remainder = options_.partitions % members;
  for (int i = 0; i < members; ++i) {
    const int keeps = quota + (i < remainder ? 1 : 0);
    moves += std::max(0, sorted[static_cast<size_t>(i)] - keeps);
  }
  return moves;
}

}  // namespace muster::partition::testing
