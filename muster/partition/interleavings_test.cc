// SPDX-License-Identifier: Apache-2.0

// The interleavings of the requests of three members on four partitions, as a search over states. A
// member's request, its effect and its reply are one step, since time stands still within a round;
// that a reply or a request is lost is a step of its own. States are interned part by part. The
// partitions have a record each, two records, or one.
//
// Bounds: a third member arrives; of the rounds from then on, two or three in a row are searched in
// every order of requests, for each place of that window, and the other rounds run member by
// member. With lost requests the window is one round, and one or two are lost on each path. Beats
// that no member reads are not interleaved. Clocks, slow requests and other deaths are left to the
// simulator (group_simulation_test.cc).
#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/partition/group_simulator.h"

namespace muster::partition {
namespace {

using testing::RecordMap;

constexpr int kFewPartitions = 4;
constexpr int kThree = 3;
constexpr int kRounds = 8;  // of a group, until it must be even
// Rounds in every order of requests, and lost requests or replies: pages of several partitions have
// fewer states.
int Window(int page_rows) { return page_rows == 1 ? 2 : 3; }
int Losses(int page_rows) { return page_rows == 1 ? 1 : 2; }
// Under a sanitizer, only the last and smallest windows are searched.
const int kFirstWindow = base::testing::CaseCount(10) == 10 ? 0 : 3;
constexpr absl::Duration kRoundTime = absl::Seconds(10);

// Gives equal values one number.
template <typename T>
class Interned {
 public:
  int NumberOf(const T& value) {
    const auto [it, fresh] = numbers_.emplace(value, static_cast<int>(values_.size()));
    if (fresh) values_.push_back(&it->first);
    return it->second;
  }
  const T& operator[](int number) const { return *values_[static_cast<size_t>(number)]; }
  size_t size() const { return values_.size(); }

 private:
  std::map<T, int> numbers_;
  std::vector<const T*> values_;
};

struct Member {
  MemberProtocol protocol;
  std::vector<WorkEvent> drains;  // not finished yet

  std::strong_ordering operator<=>(const Member&) const = default;
  bool operator==(const Member&) const = default;
};

struct State {
  int round = 0;
  int lost = 0;  // replies
  int records = 0;
  std::array<int, kThree> members = {};

  auto operator<=>(const State&) const = default;
};

MemberProtocol NewMember(int m, int page_rows) {
  const std::string name(1, static_cast<char>('a' + m));
  return MemberProtocol(
      {.group = "g", .member = name, .partitions = kFewPartitions, .page_rows = page_rows},
      static_cast<uint64_t>(m));
}

class Search {
 public:
  // Searches `rounds` from round `first` on, with so many partitions to a page.
  Search(int page_rows, int first, int rounds, int max_lost)
      : page_rows_(page_rows), first_(first), end_(first + rounds), max_lost_(max_lost) {}

  // a and b share the partitions, and c has arrived; the rounds before the first one have run.
  State Start() {
    RecordMap records;
    std::vector<Member> members;
    for (int m = 0; m < kThree; ++m) members.push_back({NewMember(m, page_rows_), {}});
    for (int round = -6; round < first_; ++round) {
      for (int m = 0; m < (round < 0 ? 2 : kThree); ++m) {
        RunCycle(round, &members[static_cast<size_t>(m)], &records);
      }
    }
    State state{.round = first_, .records = records_.NumberOf(records)};
    for (size_t m = 0; m < kThree; ++m) {
      members[m].protocol.BeginCycle(Now(first_));
      state.members[m] = members_.NumberOf(members[m]);
    }
    return state;
  }

  void Explore() {
    const State start = Start();
    std::deque<State> queue = {start};
    seen_.insert(start);
    while (!queue.empty()) {
      const State state = queue.front();
      queue.pop_front();
      ASSERT_NO_FATAL_FAILURE(Check(state));
      for (const State& next : Successors(state)) {
        if (seen_.insert(next).second) queue.push_back(next);
      }
    }
  }

  // How many partitions each member has `rounds` later; member `dead` does nothing any more, -1:
  // all live.
  std::vector<int> Later(const State& state, int rounds, int dead) {
    RecordMap records = records_[state.records];
    std::vector<Member> members;
    for (const int number : state.members) members.push_back(members_[number]);
    const int last = state.round + rounds;
    for (int round = state.round; round <= last; ++round) {
      for (int m = 0; m < kThree; ++m) {
        if (m != dead) RunCycle(round, &members[static_cast<size_t>(m)], &records);
      }
    }
    std::vector<int> counts;
    for (const Member& member : members) counts.push_back(CountHeld(member, Now(last)));
    return counts;
  }

  const std::set<State>& seen() const { return seen_; }
  const std::vector<State>& ends() const { return ends_; }
  static absl::Duration Now(int round) { return absl::Hours(1) + round * kRoundTime; }

 private:
  enum class Fate { kReply, kReplyLost, kRequestLost };

  static int CountHeld(const Member& member, absl::Duration now) {
    int held = 0;
    for (int p = 0; p < kFewPartitions; ++p) {
      held += member.protocol.Held(p, now).has_value() ? 1 : 0;
    }
    return held;
  }

  // Handles what the protocol says; revoked work stops at once.
  static void TakeEvents(Member* member) {
    for (;;) {
      const std::vector<WorkEvent> events = member->protocol.TakeEvents();
      if (events.empty()) return;
      for (const WorkEvent& event : events) {
        if (event.kind == WorkEvent::Kind::kDraining) member->drains.push_back(event);
        if (event.kind != WorkEvent::Kind::kRevoked) continue;
        std::erase_if(member->drains, [&event](const WorkEvent& drain) {
          return drain.partition == event.partition;
        });
        member->protocol.Stopped(event.partition, event.epoch);
      }
    }
  }

  // False: the member has nothing to request.
  static bool Step(int round, Fate fate, Member* member, RecordMap* records) {
    const std::optional<RecordRequest> request = member->protocol.Next(Now(round));
    TakeEvents(member);
    if (!request.has_value()) return false;
    RecordReply reply{.status = absl::UnavailableError("lost"), .done = false};
    if (fate != Fate::kRequestLost) {
      const RecordReply carried_out = records->CarryOut(*request);
      if (fate == Fate::kReply) reply = carried_out;
    }
    member->protocol.OnReply(reply, Now(round));
    TakeEvents(member);
    return true;
  }

  static void FinishDrains(Member* member) {
    for (const WorkEvent& drain : std::exchange(member->drains, {})) {
      member->protocol.Drained(drain.partition, drain.epoch);
    }
    TakeEvents(member);
  }

  static void RunCycle(int round, Member* member, RecordMap* records) {
    member->protocol.BeginCycle(Now(round));
    do {
      FinishDrains(member);
    } while (Step(round, Fate::kReply, member, records) || !member->drains.empty());
  }

  // What becomes of a member and the records when it carries out its next request.
  struct Move {
    bool possible = false;
    bool unseen = false;  // it touches what no other member ever reads
    int member = 0;
    int records = 0;
  };

  const Move& MoveOf(int round, int member_number, int records_number, Fate fate) {
    const auto [it, fresh] =
        moves_.try_emplace({round, member_number, records_number, static_cast<int>(fate)});
    if (!fresh) return it->second;
    RecordMap records = records_[records_number];
    Member member = members_[member_number];
    if (Step(round, fate, &member, &records)) {
      it->second = {true, IsBeatOfAnOwner(member_number, round), members_.NumberOf(member),
                    records_.NumberOf(records)};
    }
    return it->second;
  }

  // a and b own partitions, so their presence is read by themselves only.
  bool IsBeatOfAnOwner(int member_number, int round) const {
    MemberProtocol protocol = members_[member_number].protocol;
    const std::optional<RecordRequest> request = protocol.Next(Now(round));
    return request->name.kind == RecordName::Kind::kPresence &&
           request->verb == RecordRequest::Verb::kWrite && request->name.member != "c";
  }

  std::vector<State> Successors(const State& state) {
    std::vector<State> successors;
    bool quiet = true;
    for (size_t m = 0; m < kThree; ++m) {
      for (const Fate fate : {Fate::kReply, Fate::kReplyLost, Fate::kRequestLost}) {
        if (fate != Fate::kReply && state.lost >= max_lost_) continue;
        const Move& move = MoveOf(state.round, state.members[m], state.records, fate);
        if (!move.possible) break;
        quiet = false;
        State next = state;
        next.lost += fate == Fate::kReply ? 0 : 1;
        next.records = move.records;
        next.members[m] = move.member;
        if (move.unseen && max_lost_ == 0) return {next};
        successors.push_back(next);
      }
    }
    if (quiet) NextRound(state, &successors);
    return successors;
  }

  void NextRound(const State& state, std::vector<State>* successors) {
    if (state.round + 1 == end_) {
      ends_.push_back(state);
      return;
    }
    State next = state;
    ++next.round;
    for (size_t m = 0; m < kThree; ++m) {
      Member member = members_[state.members[m]];
      member.protocol.Next(Now(state.round));  // ends its cycle
      FinishDrains(&member);
      member.protocol.BeginCycle(Now(next.round));
      next.members[m] = members_.NumberOf(member);
    }
    successors->push_back(next);
  }

  void Check(const State& state) const {
    for (int p = 0; p < kFewPartitions; ++p) {
      int holders = 0;
      for (const int number : state.members) {
        holders += members_[number].protocol.Held(p, Now(state.round)).has_value() ? 1 : 0;
      }
      ASSERT_LE(holders, 1) << "partition " << p << " in round " << state.round;
    }
  }

  const int page_rows_;
  const int first_;
  const int end_;
  const int max_lost_;
  Interned<RecordMap> records_;
  Interned<Member> members_;
  std::map<std::array<int, 4>, Move> moves_;
  std::set<State> seen_;
  std::vector<State> ends_;
};

// Explores, and expects an even spread in the end wherever it ends.
void ExpectEven(Search* search) {
  ASSERT_NO_FATAL_FAILURE(search->Explore());
  ASSERT_FALSE(search->ends().empty());
  for (const State& end : search->ends()) {
    std::vector<int> counts = search->Later(end, kRounds, -1);
    std::sort(counts.begin(), counts.end());
    ASSERT_EQ(counts, (std::vector<int>{1, 1, 2}));
  }
}

class InterleavingsTest : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(PageRows, InterleavingsTest, ::testing::Values(1, 2, 4));

TEST_P(InterleavingsTest, ANewcomerGetsItsShareInEveryOrderOfRequests) {
  for (int first = kFirstWindow; first <= 3; ++first) {
    Search search(GetParam(), first, Window(GetParam()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectEven(&search)) << first;
    std::printf("%d to a page, from round %d: %zu states, %zu ends\n", GetParam(), first,
                search.seen().size(), search.ends().size());
  }
}

TEST_P(InterleavingsTest, ALostRequestOrReplyChangesNothingInTheEnd) {
  for (int first = kFirstWindow; first <= 4; ++first) {
    Search search(GetParam(), first, 1, Losses(GetParam()));
    ASSERT_NO_FATAL_FAILURE(ExpectEven(&search)) << first;
    std::printf("%d to a page, round %d with losses: %zu states, %zu ends\n", GetParam(), first,
                search.seen().size(), search.ends().size());
  }
}

TEST_P(InterleavingsTest, TheOthersShareWhatADeadMemberHadWheneverItDied) {
  for (int first = kFirstWindow; first <= 4; ++first) {
    Search search(GetParam(), first, 1, 0);
    ASSERT_NO_FATAL_FAILURE(search.Explore());
    int number = 0;
    for (const State& state : search.seen()) {
      if (++number % 10 != 0) continue;
      const int dead = number / 10 % kThree;
      std::vector<int> counts = search.Later(state, 14, dead);
      counts.erase(counts.begin() + dead);
      ASSERT_EQ(counts, (std::vector<int>{2, 2})) << "without " << dead;
    }
  }
}

}  // namespace
}  // namespace muster::partition
