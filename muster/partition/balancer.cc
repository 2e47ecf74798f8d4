// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/balancer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"

namespace muster::partition {
namespace {

// In the place of a member's number.
constexpr int kNoMember = -1;
constexpr int kNotLive = -2;

// Of partitions: from begin to before end.
struct Range {
  int begin = 0;
  int end = 0;
};

// A partition, with members as their places in GroupView::live.
struct Row {
  int owner = kNoMember;
  int wanted_by = kNoMember;
  int pinned_to = kNoMember;
  bool granted = false;
  bool known = false;
  bool claimable = false;
  bool inherited = false;
  bool running = false;

  // An administrator has given the partition to a member, and that lives.
  bool IsPinned() const { return pinned_to >= 0; }
};

// The group as it is, and as the actions that are decided already will leave it.
class Standing {
 public:
  explicit Standing(const GroupView& view)
      : self_(PlaceOf(view, view.self)),
        rows_(view.partitions.size()),
        held_(view.live.size()),
        projected_(view.live.size()),
        pinned_(view.live.size()) {
    for (size_t p = 0; p < rows_.size(); ++p) {
      rows_[p] = RowFor(view, view.partitions[p]);
      Count(rows_[p], 1);
    }
    quota_ = Quota();
  }

  Range all() const { return {0, static_cast<int>(rows_.size())}; }

  Action Next(const Range& range, uint64_t draw) const {
    const Action duty = Duty(range, draw);
    return duty.kind != Action::Kind::kNone ? duty : Take(range, draw);
  }

  Action Duty(const Range& range, uint64_t draw) const {
    const Action answer = Answer(range, draw);
    return answer.kind != Action::Kind::kNone ? answer : ClaimDue(range, draw);
  }

  // From now on, decides as if `action` were carried out.
  void Presume(const Action& action) {
    Row& row = rows_[static_cast<size_t>(action.partition)];
    Count(row, -1);
    switch (action.kind) {
      case Action::Kind::kNone:
        break;
      case Action::Kind::kGrant:
        if (row.IsPinned()) row.wanted_by = row.pinned_to;
        row.granted = true;
        row.running = false;
        break;
      case Action::Kind::kRefuse:
        row.wanted_by = kNoMember;
        break;
      case Action::Kind::kClaim:
        row.owner = self_;
        row.wanted_by = kNoMember;
        row.granted = row.claimable = row.inherited = false;
        row.running = true;
        break;
      case Action::Kind::kAsk:
        row.wanted_by = self_;
        break;
    }
    Count(row, 1);
  }

 private:
  static int PlaceOf(const GroupView& view, absl::string_view member) {
    if (member.empty()) return kNoMember;
    const auto it = std::lower_bound(view.live.begin(), view.live.end(), member);
    if (it == view.live.end() || *it != member) return kNotLive;
    return static_cast<int>(it - view.live.begin());
  }

  static Row RowFor(const GroupView& view, const PartitionView& partition) {
    const Ownership& record = partition.record;
    return {.owner = PlaceOf(view, record.owner),
            .wanted_by = PlaceOf(view, record.wanted_by),
            .pinned_to = PlaceOf(view, record.pinned_to),
            .granted = record.granted,
            .known = partition.known,
            .claimable = partition.claimable,
            .inherited = partition.inherited,
            .running = partition.running};
  }

  static size_t At(int member) { return static_cast<size_t>(member); }

  // Who has the partition once everything that is agreed has happened; kNoMember: no live member.
  int HolderOf(const Row& row) const {
    if (row.IsPinned()) return row.pinned_to;
    const bool leaves = row.granted || row.owner == kNoMember;
    const int holder = leaves ? row.wanted_by : row.owner;
    if (holder != self_ && (row.claimable || holder < 0)) return kNoMember;
    return holder;
  }

  // An owner has the partition, and a live member asks for it.
  static bool IsAsked(const Row& row) {
    return !row.granted && !row.claimable && !row.IsPinned() && row.wanted_by >= 0 &&
           row.owner >= 0;
  }

  // No member is known to have it, or to be about to.
  bool IsOrphan(const Row& row) const { return !row.known || HolderOf(row) == kNoMember; }

  // Adds the row to all counts, or takes it out of them.
  void Count(const Row& row, int sign) {
    if (row.IsPinned()) pinned_[At(row.pinned_to)] += sign;
    if (IsOrphan(row)) orphans_ += sign;
    const int holder = HolderOf(row);
    if (holder >= 0) {
      held_[At(holder)] += sign;
      projected_[At(holder)] += sign;
    }
    if (!IsAsked(row)) return;
    projected_[At(row.wanted_by)] += sign;
    projected_[At(row.owner)] -= sign;
  }

  // What every member is to have at least. Members with more pinned partitions keep exactly those,
  // and the others share the rest; each round finds another such member, or ends.
  int Quota() const {
    int partitions = static_cast<int>(rows_.size());
    int members = static_cast<int>(pinned_.size());
    std::vector<int> counts = pinned_;
    std::sort(counts.rbegin(), counts.rend());
    for (const int count : counts) {
      if (members == 1 || count <= partitions / members) break;
      partitions -= count;
      --members;
    }
    return partitions / members;
  }

  // The first partition of `range` that `fits`, from a drawn one on; -1: none does.
  template <typename Fits>
  int Pick(const Range& range, uint64_t draw, Fits fits) const {
    const auto count = static_cast<uint64_t>(range.end - range.begin);
    for (uint64_t i = 0; i < count; ++i) {
      const int p = range.begin + static_cast<int>((draw + i) % count);
      if (fits(rows_[static_cast<size_t>(p)])) return p;
    }
    return -1;
  }

  static Action Of(Action::Kind kind, int partition) {
    return partition < 0 ? Action() : Action{kind, partition};
  }

  Action Answer(const Range& range, uint64_t draw) const {
    const int moved = Pick(range, draw, [this](const Row& row) {
      return row.running && !row.granted && row.IsPinned() && row.pinned_to != self_;
    });
    if (moved >= 0) return Of(Action::Kind::kGrant, moved);
    const int asked = Pick(range, draw, [](const Row& row) {
      return row.running && !row.granted && row.wanted_by != kNoMember;
    });
    if (asked < 0) return Action();
    const Row& row = rows_[static_cast<size_t>(asked)];
    if (row.wanted_by < 0 || row.IsPinned()) return Of(Action::Kind::kRefuse, asked);
    const int mine = held_[At(self_)];
    const bool agreed = mine > quota_ && mine - held_[At(row.wanted_by)] >= 2;
    return Of(agreed ? Action::Kind::kGrant : Action::Kind::kRefuse, asked);
  }

  Action ClaimDue(const Range& range, uint64_t draw) const {
    return Of(Action::Kind::kClaim, Pick(range, draw, [this](const Row& row) {
                const bool inherits = row.inherited && !row.IsPinned();
                return row.claimable && (inherits || HolderOf(row) == self_);
              }));
  }

  bool OthersHaveTheQuota() const {
    for (size_t m = 0; m < projected_.size(); ++m) {
      if (m != At(self_) && projected_[m] < quota_) return false;
    }
    return true;
  }

  // An owner gives nothing of what is pinned to it.
  bool CanGive(size_t member) const { return projected_[member] > pinned_[member]; }

  // The owner to ask for a partition: one with most, if it has more than one above the quota, or
  // exactly one above it while self lacks some of its own quota. kNoMember: none.
  int ChooseOwner() const {
    int largest = kNoMember;
    for (size_t m = 0; m < projected_.size(); ++m) {
      if (!CanGive(m)) continue;
      if (largest == kNoMember || projected_[m] > projected_[At(largest)]) {
        largest = static_cast<int>(m);
      }
    }
    if (largest == kNoMember || largest == self_) return kNoMember;
    const int above = projected_[At(largest)] - quota_;
    const bool enough = above > 1 || (above == 1 && projected_[At(self_)] < quota_);
    return enough ? largest : kNoMember;
  }

  Action Take(const Range& range, uint64_t draw) const {
    const int mine = projected_[At(self_)];
    const bool eligible = mine < quota_ || (mine == quota_ && OthersHaveTheQuota());
    if (!eligible) return Action();
    const int free =
        Pick(range, draw, [](const Row& row) { return row.claimable && !row.IsPinned(); });
    if (free >= 0) return Of(Action::Kind::kClaim, free);
    // The partitions of a dead owner are free soon: asking now would move more than is needed.
    if (orphans_ > 0) return Action();
    const int owner = ChooseOwner();
    if (owner == kNoMember) return Action();
    // Of a page, also a partition of another owner that has as many: they share the loss.
    const bool whole = range.end - range.begin == all().end;
    return Of(Action::Kind::kAsk, Pick(range, draw, [&](const Row& row) {
                if (row.owner < 0 || row.granted || row.IsPinned() || IsAsked(row)) return false;
                if (row.owner == owner) return true;
                return !whole && row.owner != self_ && CanGive(At(row.owner)) &&
                       projected_[At(row.owner)] == projected_[At(owner)];
              }));
  }

  const int self_;
  std::vector<Row> rows_;
  // How many partitions each live member has once everything that is agreed has happened.
  std::vector<int> held_;
  // The same, as if every request were agreed to: a member that has asked for what it lacks must
  // not ask for more.
  std::vector<int> projected_;
  std::vector<int> pinned_;  // how many are pinned to it
  int orphans_ = 0;
  int quota_ = 0;
};

template <typename Decide>
std::vector<Action> Batch(const GroupView& view, int page_rows, int most, Decide decide) {
  Standing standing(view);
  std::vector<Action> batch;
  Action action = decide(standing, standing.all());
  const int page = action.partition / page_rows;
  const Range range{page * page_rows, std::min(standing.all().end, (page + 1) * page_rows)};
  const Action::Kind kind = action.kind;
  while (action.kind == kind && kind != Action::Kind::kNone) {
    batch.push_back(action);
    if (static_cast<int>(batch.size()) >= most) break;
    standing.Presume(action);
    action = decide(standing, range);
  }
  return batch;
}

}  // namespace

Action DecideDuty(const GroupView& view, uint64_t draw) {
  const Standing standing(view);
  return standing.Duty(standing.all(), draw);
}

Action DecideNext(const GroupView& view, uint64_t draw) {
  const Standing standing(view);
  return standing.Next(standing.all(), draw);
}

std::vector<Action> DecideBatch(const GroupView& view, uint64_t draw, int page_rows, int most) {
  return Batch(view, page_rows, most, [draw](const Standing& standing, const Range& range) {
    return standing.Next(range, draw);
  });
}

std::vector<Action> DecideDutyBatch(const GroupView& view, uint64_t draw, int page_rows) {
  return Batch(view, page_rows, page_rows, [draw](const Standing& standing, const Range& range) {
    return standing.Duty(range, draw);
  });
}

}  // namespace muster::partition
