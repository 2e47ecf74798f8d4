// SPDX-License-Identifier: Apache-2.0

// GroupSimulator: a group of members in virtual time, each request at its own instant. It shows
// what a group does under slow stores, lost replies, skewed clocks, pauses and deaths, and notices
// at once when two members hold one partition.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/partition/member_protocol.h"
#include "muster/partition/options.h"
#include "muster/partition/records.h"

namespace muster::partition::testing {

struct SimulationOptions {
  int partitions = 16;
  int page_rows = kPageRows;
  Strategy strategy = Strategy::kGreedy;
  uint32_t seed = 1;
  absl::Duration lease = absl::Seconds(40);
  absl::Duration min_latency = absl::Milliseconds(1);  // of a request, there and back
  absl::Duration max_latency = absl::Milliseconds(5);
  double fault_rate = 0;  // of requests that end with an error, carried out or not, or later
  double clock_skew = 0;  // members' clocks run faster or slower by up to this share
  absl::Duration max_drain = absl::Seconds(5);  // work takes up to this to drain
};

// Records with versions, as a sync store keeps them. Each record counts its own versions, so that
// the order of writes to different records leaves no trace, and a search over states meets fewer.
class RecordMap {
 public:
  RecordReply CarryOut(const RecordRequest& request);
  RecordReply Read(const RecordName& name) const;

  auto operator<=>(const RecordMap&) const = default;

 private:
  struct Stored {
    RecordValue value;
    uint64_t version = sync::kAbsent;

    auto operator<=>(const Stored&) const = default;
  };

  std::map<RecordName, Stored> records_;
  // A record that is written anew has a higher version than any that was removed.
  uint64_t highest_removed_ = sync::kAbsent;
};

// Not thread-safe.
class GroupSimulator {
 public:
  explicit GroupSimulator(const SimulationOptions& options);
  ~GroupSimulator();

  // Changes of the group; each begins a phase in which moves are counted against the least number.
  void Join(const std::string& member);
  void Leave(const std::string& member);
  void Crash(const std::string& member);
  // The member does nothing until then, as if its process were suspended; its clock goes on.
  void Pause(const std::string& member, absl::Duration duration);
  // As an administrator does: pins the partition to the member; empty: removes all pins. Moves are
  // not counted against a least number from then on.
  void Pin(int partition, const std::string& member);
  void RemovePins();
  // No request is carried out until then.
  void StallStore(absl::Duration duration);

  void RunFor(absl::Duration duration);
  // False: `duration` passed before `done`, which is asked after each event.
  bool RunUntil(const std::function<bool()>& done, absl::Duration duration);

  absl::Duration now() const { return now_; }
  std::vector<std::string> Members() const;  // that take part
  // How many partitions each member works on now.
  std::map<std::string, int> Held() const;
  // Who works on the partition; empty: no member.
  std::string HolderOf(int partition) const;
  // An owner that has agreed to hand over, and to whom; empty: none.
  std::pair<std::string, std::string> HandOver() const;

  int moves() const { return moves_; }  // partitions that came to another member than before
  int least_moves() const;              // that the changes so far require
  absl::Duration last_move() const { return last_move_; }
  int64_t requests() const { return requests_; }
  // What must never happen, in words; empty: it did not.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Node;
  struct Event {
    absl::Duration at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return at != other.at ? other.at < at : other.order < order;
    }
  };

  void At(absl::Duration at, std::function<void()> run);
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  absl::Duration Between(absl::Duration low, absl::Duration high);
  void Pump(const std::shared_ptr<Node>& node);
  void Send(const std::shared_ptr<Node>& node, const RecordRequest& request);
  void WakeLater(const std::shared_ptr<Node>& node);
  void HandleEvents(const std::shared_ptr<Node>& node);
  void OnAssigned(const Node& node, int partition);
  void CheckHolders(int page);
  Ownership Read(int partition) const;
  bool Holds(const Node& node, int partition) const;
  void BeginPhase();
  // Moves that bring the partitions from their last holders to an even spread over the members.
  int MovesToGo() const;

  const SimulationOptions options_;
  std::mt19937 random_;
  absl::Duration now_ = absl::Hours(1);
  absl::Duration stalled_until_ = absl::ZeroDuration();
  std::priority_queue<Event> events_;
  uint64_t order_ = 0;
  RecordMap records_;
  std::map<std::string, std::shared_ptr<Node>> nodes_;
  std::vector<std::string> last_holder_;
  int moves_ = 0;
  int least_before_ = 0;  // of the phases that have ended
  int phase_began_with_ = 0;
  absl::Duration last_move_;
  int64_t requests_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace muster::partition::testing
