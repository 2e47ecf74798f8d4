// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/member_protocol.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/partition/group_simulator.h"

namespace muster::partition {
namespace {

using testing::RecordMap;
using Kind = RecordName::Kind;
using Verb = RecordRequest::Verb;

constexpr absl::Duration kLease = absl::Seconds(40);
constexpr absl::Duration kGrace = absl::Seconds(10);

class MemberProtocolTest : public ::testing::Test {
 protected:
  // Says what becomes of a request; nullptr: it is carried out.
  using Intervene = std::function<RecordReply(const RecordRequest&)>;

  static MemberProtocol NewMember(const std::string& name, int partitions = 1) {
    return MemberProtocol({.group = "g", .member = name, .partitions = partitions}, 1);
  }

  void Run(MemberProtocol* member, const Intervene& intervene = nullptr) {
    while (const std::optional<RecordRequest> request = member->Next(now_)) {
      member->OnReply(intervene ? intervene(*request) : records_.CarryOut(*request), now_);
    }
  }

  void Cycle(MemberProtocol* member, const Intervene& intervene = nullptr) {
    member->BeginCycle(now_);
    Run(member, intervene);
  }

  // Two cycles: the first one only looks.
  void Claim(MemberProtocol* member) {
    Cycle(member);
    Cycle(member);
    member->TakeEvents();
    ASSERT_TRUE(member->Held(0, now_).has_value());
  }

  Ownership Read(int partition) const {
    return RowOf(records_.Read({.page = 0}).value.owners, partition);
  }

  void Write(int partition, const Ownership& ownership) {
    const RecordName name{.page = 0};
    RecordReply read = records_.Read(name);
    SetRow(&read.value.owners, partition, ownership);
    ASSERT_TRUE(records_
                    .CarryOut({.verb = Verb::kWrite,
                               .name = name,
                               .value = std::move(read.value),
                               .version = read.version})
                    .done);
  }

  static RecordReply Lost() { return {.status = absl::UnavailableError("lost"), .done = false}; }

  static std::vector<WorkEvent::Kind> KindsOf(const std::vector<WorkEvent>& events) {
    std::vector<WorkEvent::Kind> kinds;
    for (const WorkEvent& event : events) kinds.push_back(event.kind);
    return kinds;
  }

  RecordMap records_;
  absl::Duration now_ = absl::Hours(1);
};

TEST_F(MemberProtocolTest, LooksFirstAndClaimsInItsSecondCycle) {
  MemberProtocol member = NewMember("a", 2);
  Cycle(&member);
  EXPECT_TRUE(member.TakeEvents().empty());
  EXPECT_TRUE(member.wants_cycle_soon());
  Cycle(&member);
  EXPECT_EQ(member.TakeEvents().size(), 2u);
  EXPECT_EQ(member.Held(0, now_)->epoch, 1);
  EXPECT_EQ(member.Held(1, now_)->epoch, 1);
  EXPECT_FALSE(member.Held(2, now_).has_value());
  EXPECT_FALSE(member.wants_cycle_soon());
}

TEST_F(MemberProtocolTest, OneThatDoesNotLookFirstClaimsInItsFirstCycle) {
  MemberProtocol member({.group = "g", .member = "a", .looks_first = false}, 1);
  Cycle(&member);
  EXPECT_EQ(member.Held(0, now_)->epoch, 1);
}

TEST_F(MemberProtocolTest, TakesWhatItsDeadPredecessorOwnsAtOnceAndRemovesItsEntry) {
  MemberProtocol dead = NewMember("a-1", 3);
  Claim(&dead);
  ASSERT_TRUE(dead.Held(2, now_).has_value());
  MemberProtocol other = NewMember("b", 3);
  Cycle(&other);
  MemberProtocol next({.group = "g", .member = "a-2", .partitions = 3, .predecessors = {"a-1"}}, 1);
  Cycle(&next);
  for (int p = 0; p < 3; ++p) EXPECT_EQ(next.Held(p, now_)->epoch, 2);
  EXPECT_EQ(records_.Read({.kind = Kind::kMembers}).value.members,
            (std::vector<std::string>{"a-2", "b"}));
}

// It lives after all: its next renewal finds another's record.
TEST_F(MemberProtocolTest, APredecessorThatLivesIsRevokedByItsNextCycle) {
  MemberProtocol before = NewMember("a-1");
  Claim(&before);
  MemberProtocol next({.group = "g", .member = "a-2", .predecessors = {"a-1"}}, 1);
  Cycle(&next);
  now_ += absl::Seconds(1);
  Cycle(&before);
  EXPECT_EQ(KindsOf(before.TakeEvents()), (std::vector{WorkEvent::Kind::kRevoked}));
  EXPECT_EQ(before.OwnerOf(0), "a-2");
}

TEST_F(MemberProtocolTest, ClaimsWithTheLeastEpochThatItIsGiven) {
  MemberProtocol member({.group = "g", .member = "a", .least_epoch = 7}, 1);
  Claim(&member);
  EXPECT_EQ(member.Held(0, now_)->epoch, 7);
}

TEST_F(MemberProtocolTest, HoldsForNinetyPercentOfTheLeaseFromBeforeItsWrite) {
  MemberProtocol member = NewMember("a");
  Claim(&member);
  now_ += absl::Seconds(10);
  const absl::Duration sent = now_;
  Cycle(&member, [this](const RecordRequest& request) {
    const RecordReply reply = records_.CarryOut(request);
    if (request.verb == Verb::kWrite && request.name.kind == Kind::kOwners) {
      now_ += absl::Seconds(5);  // the reply is slow
    }
    return reply;
  });
  EXPECT_EQ(member.Held(0, now_)->until, sent + kLease * 0.9);
  now_ = sent + kLease * 0.9;
  EXPECT_FALSE(member.Held(0, now_).has_value());
}

TEST_F(MemberProtocolTest, RenewsAgainAtOnceWhereARequestForItCameFirst) {
  MemberProtocol member = NewMember("a");
  Claim(&member);
  now_ += absl::Seconds(10);
  bool asked = false;
  Cycle(&member, [&](const RecordRequest& request) {
    if (request.verb == Verb::kWrite && request.name.kind == Kind::kOwners && !asked) {
      asked = true;
      Ownership wanted = Read(0);
      wanted.wanted_by = "gone";
      Write(0, wanted);
    }
    return records_.CarryOut(request);
  });
  EXPECT_TRUE(asked);
  EXPECT_EQ(member.Held(0, now_)->until, now_ + kLease * 0.9);
  EXPECT_EQ(Read(0).wanted_by, "") << "the one that asked is no member";
}

TEST_F(MemberProtocolTest, StopsAtOnceWhenItSeesAnotherOwner) {
  MemberProtocol member = NewMember("a");
  Claim(&member);
  Write(0, {.owner = "b", .epoch = 2, .renewal = 1});
  Cycle(&member);
  EXPECT_EQ(KindsOf(member.TakeEvents()), std::vector{WorkEvent::Kind::kRevoked});
  EXPECT_FALSE(member.Held(0, now_).has_value());
  member.Stopped(0, 1);
  Run(&member);
  EXPECT_EQ(Read(0).owner, "b");
}

TEST_F(MemberProtocolTest, ReadsBackAClaimWhoseReplyWasLost) {
  MemberProtocol member = NewMember("a");
  Cycle(&member);
  Cycle(&member, [this](const RecordRequest& request) {
    const RecordReply reply = records_.CarryOut(request);
    return request.verb == Verb::kWrite && request.name.kind == Kind::kOwners ? Lost() : reply;
  });
  EXPECT_EQ(member.Held(0, now_)->epoch, 1);
}

TEST_F(MemberProtocolTest, AClaimThatIsCarriedOutLateIsClaimedAnewUnderTheNextEpoch) {
  MemberProtocol member = NewMember("a");
  Cycle(&member);
  std::vector<RecordRequest> late;
  Cycle(&member, [&](const RecordRequest& request) {
    if (request.verb == Verb::kWrite && request.name.kind == Kind::kOwners) {
      late.push_back(request);
      return Lost();
    }
    return records_.CarryOut(request);
  });
  EXPECT_FALSE(member.Held(0, now_).has_value());
  ASSERT_TRUE(records_.CarryOut(late.front()).done);
  Cycle(&member);
  EXPECT_EQ(member.Held(0, now_)->epoch, 2);
}

TEST_F(MemberProtocolTest, StopsWhenItsLeaseLapsesAndReclaimsUnderTheNextEpoch) {
  MemberProtocol member = NewMember("a");
  Claim(&member);
  EXPECT_EQ(member.NextDeadline(), now_ + kLease * 0.9);
  now_ = member.NextDeadline();
  member.Expire(now_);
  EXPECT_EQ(KindsOf(member.TakeEvents()), std::vector{WorkEvent::Kind::kRevoked});
  Cycle(&member);
  EXPECT_FALSE(member.Held(0, now_).has_value()) << "the work under epoch 1 has not stopped";
  member.Stopped(0, 1);
  Cycle(&member);
  EXPECT_EQ(member.Held(0, now_)->epoch, 2);
}

TEST_F(MemberProtocolTest, TakesOverOnceItHasSeenNoRenewalForALease) {
  MemberProtocol a = NewMember("a"), b = NewMember("b");
  Claim(&a);
  Cycle(&b);
  const absl::Duration first_seen = now_;
  for (now_ += absl::Seconds(1); now_ < first_seen + kLease; now_ += absl::Seconds(1)) {
    Cycle(&b);
    ASSERT_EQ(Read(0).owner, "a");
  }
  Cycle(&b);
  EXPECT_EQ(b.Held(0, now_)->epoch, 2);
  EXPECT_FALSE(a.Held(0, now_).has_value());
}

// Has `a` own two partitions and agree to hand one over to b; returns which.
class HandOverTest : public MemberProtocolTest {
 protected:
  void SetUp() override {
    Claim(&a_);
    Cycle(&b_);
    Cycle(&b_);  // asks
    for (int p = 0; p < 2; ++p) {
      if (Read(p).wanted_by == "b") partition_ = p;
    }
    ASSERT_GE(partition_, 0);
  }

  MemberProtocol a_ = NewMember("a", 2), b_ = NewMember("b", 2);
  int partition_ = -1;
};

TEST_F(HandOverTest, TheOwnerDrainsAndFreesAndTheOtherBegins) {
  Cycle(&a_);
  EXPECT_EQ(KindsOf(a_.TakeEvents()), std::vector{WorkEvent::Kind::kDraining});
  EXPECT_TRUE(Read(partition_).granted);
  EXPECT_EQ(a_.Held(partition_, now_)->until, now_ + kGrace * 0.9);
  Cycle(&b_);
  EXPECT_FALSE(b_.Held(partition_, now_).has_value());
  a_.Drained(partition_, 1);
  EXPECT_EQ(KindsOf(a_.TakeEvents()), std::vector{WorkEvent::Kind::kRevoked});
  Run(&a_);
  EXPECT_EQ(Read(partition_).owner, "a") << "the work has not stopped yet";
  a_.Stopped(partition_, 1);
  Run(&a_);
  EXPECT_EQ(Read(partition_).owner, "");
  EXPECT_TRUE(b_.wants_cycle_soon());
  Cycle(&b_);
  EXPECT_EQ(b_.Held(partition_, now_)->epoch, 2);
  EXPECT_TRUE(a_.Held(1 - partition_, now_).has_value());
}

TEST_F(HandOverTest, ALookBetweenCyclesClaimsWhatHasBeenHandedOverAndReadsNothingElse) {
  EXPECT_TRUE(b_.awaits_hand_over());
  int requests = 0;
  const auto count = [&](const RecordRequest& request) {
    EXPECT_EQ(request.name, RecordName{.page = 0});
    ++requests;
    return records_.CarryOut(request);
  };
  const auto look = [&] {
    b_.BeginLook(now_);
    Run(&b_, count);
  };
  look();
  EXPECT_EQ(requests, 1);
  Cycle(&a_);
  a_.Drained(partition_, 1);
  a_.Stopped(partition_, 1);
  look();
  EXPECT_FALSE(b_.Held(partition_, now_).has_value()) << "the owner has only consented";
  Run(&a_);
  look();
  EXPECT_EQ(b_.Held(partition_, now_)->epoch, 2);
  EXPECT_EQ(requests, 5) << "the last look reads twice, and writes";
  EXPECT_FALSE(b_.awaits_hand_over());
  look();
  EXPECT_EQ(requests, 5);
}

TEST_F(HandOverTest, ALookThatFailsIsLeftToTheNext) {
  Cycle(&a_);
  a_.Drained(partition_, 1);
  a_.Stopped(partition_, 1);
  Run(&a_);
  b_.BeginLook(now_);
  Run(&b_, [](const RecordRequest&) { return Lost(); });
  EXPECT_FALSE(b_.in_cycle());
  b_.BeginLook(now_);
  Run(&b_);
  EXPECT_EQ(b_.Held(partition_, now_)->epoch, 2);
}

TEST_F(HandOverTest, AfterTheGraceTheOtherBeginsWithoutTheOwner) {
  Cycle(&a_);
  Cycle(&b_);  // sees it granted
  now_ += kGrace - absl::Seconds(1);
  Cycle(&b_);
  EXPECT_FALSE(b_.Held(partition_, now_).has_value());
  EXPECT_FALSE(a_.Held(partition_, now_).has_value()) << "it uses nine tenths of the grace";
  now_ += absl::Seconds(1);
  Cycle(&b_);
  EXPECT_EQ(b_.Held(partition_, now_)->epoch, 2);
}

TEST_F(HandOverTest, TheOwnerDrainsAlsoIfItsConsentMayNotBeWritten) {
  std::vector<RecordRequest> late;
  Cycle(&a_, [&](const RecordRequest& request) {
    if (request.verb == Verb::kWrite && request.name.kind == Kind::kOwners &&
        RowOf(request.value.owners, partition_).granted) {
      late.push_back(request);
      return Lost();
    }
    return records_.CarryOut(request);
  });
  EXPECT_EQ(KindsOf(a_.TakeEvents()), std::vector{WorkEvent::Kind::kDraining});
  ASSERT_TRUE(records_.CarryOut(late.front()).done);
  now_ += kGrace * 0.9;
  EXPECT_FALSE(a_.Held(partition_, now_).has_value());
}

TEST_F(HandOverTest, AMemberThatStopsFreesEverythingAndLeavesNoTrace) {
  a_.BeginStop(now_);
  Run(&a_);
  EXPECT_EQ(a_.TakeEvents().size(), 2u);
  EXPECT_FALSE(a_.has_left());
  for (int p = 0; p < 2; ++p) a_.Drained(p, 1);
  for (int p = 0; p < 2; ++p) a_.Stopped(p, 1);
  Run(&a_);
  EXPECT_TRUE(a_.has_left());
  EXPECT_EQ(Read(0).owner, "");
  EXPECT_EQ(Read(1).owner, "");
  EXPECT_EQ(records_.Read({.kind = Kind::kMembers}).value.members, std::vector<std::string>{"b"});
  EXPECT_EQ(records_.Read({.kind = Kind::kPresence, .member = "a"}).version, sync::kAbsent);
  Cycle(&b_);
  EXPECT_TRUE(b_.Held(0, now_).has_value());
  EXPECT_TRUE(b_.Held(1, now_).has_value());
}

TEST_F(MemberProtocolTest, AStoreThatLostARecordBringsNoOldEpochBack) {
  MemberProtocol a = NewMember("a"), b = NewMember("b");
  Claim(&a);
  Cycle(&b);
  Write(0, {.owner = "a", .epoch = 7, .renewal = 1});
  Cycle(&b);
  const RecordName name{.page = 0};
  records_.CarryOut({.verb = Verb::kDelete, .name = name, .version = records_.Read(name).version});
  Cycle(&b);
  EXPECT_EQ(Read(0).epoch, 8);
}

TEST_F(MemberProtocolTest, RemovesTheEntryOfAMemberThatHasLongBeenDead) {
  MemberProtocol a = NewMember("a"), b = NewMember("b");
  Cycle(&b);
  Claim(&a);
  const RecordName presence{.kind = Kind::kPresence, .member = "b"};
  for (int cycle = 0; cycle < 14; ++cycle) {
    EXPECT_NE(records_.Read(presence).version, sync::kAbsent) << cycle;
    now_ += absl::Seconds(9);
    Cycle(&a);
  }
  EXPECT_EQ(records_.Read({.kind = Kind::kMembers}).value.members, std::vector<std::string>{"a"});
  EXPECT_EQ(records_.Read(presence).version, sync::kAbsent);
  Cycle(&b);
  EXPECT_EQ(records_.Read({.kind = Kind::kMembers}).value.members.size(), 2u)
      << "it was only suspended";
}

TEST_F(MemberProtocolTest, AMemberThatFindsTheGroupFullTakesNothing) {
  RecordRequest full{.verb = Verb::kWrite, .name = {.kind = Kind::kMembers}};
  for (int m = 0; m < kMaxMembers; ++m) full.value.members.push_back(std::to_string(1000 + m));
  ASSERT_TRUE(records_.CarryOut(full).done);
  MemberProtocol member = NewMember("a");
  for (int cycle = 0; cycle < 3; ++cycle) Cycle(&member);
  EXPECT_FALSE(member.Held(0, now_).has_value());
  EXPECT_EQ(records_.Read(full.name).value.members.size(), static_cast<size_t>(kMaxMembers));
}

TEST_F(MemberProtocolTest, AMemberThatStopsDoesNotWaitForAStoreThatIsDown) {
  MemberProtocol member = NewMember("a", 64);
  Claim(&member);
  int requests = 0;
  const auto is_down = [&requests](const RecordRequest&) {
    ++requests;
    return Lost();
  };
  member.BeginStop(now_);
  for (int p = 0; p < 64; ++p) member.Drained(p, 1);
  for (int p = 0; p < 64; ++p) member.Stopped(p, 1);
  Run(&member, is_down);
  EXPECT_TRUE(member.has_left());
  EXPECT_LE(requests, 3);
}

TEST_F(MemberProtocolTest, AStoreThatIsDownIsAskedOncePerRecordAndCycle) {
  MemberProtocol member = NewMember("a", 8);
  Claim(&member);
  int requests = 0;
  Cycle(&member, [&requests](const RecordRequest&) {
    ++requests;
    return Lost();
  });
  EXPECT_LE(requests, 8 + 3);
  EXPECT_TRUE(member.Held(0, now_).has_value()) << "the lease still runs";
}

}  // namespace
}  // namespace muster::partition
