// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/records.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::partition {
namespace {

using ::testing::HasSubstr;
using Kind = RecordName::Kind;
using Verb = RecordRequest::Verb;

constexpr Kind kKinds[] = {Kind::kOwners, Kind::kMembers, Kind::kPresence};

RecordValue Sample() {
  return {.owners = {{.owner = "a", .epoch = 3, .renewal = 7, .wanted_by = "b", .granted = true}},
          .members = {"a", "b"},
          .beat = 9};
}

// Stored data has this form: if this test fails, the code cannot read data of earlier versions.
TEST(PartitionRecordsTest, KeepTheirFirstFormForever) {
  const char* const stored[] = {"0a01610a0162120a08011003180720022801",
                                "0a01610a016210ffffffffffffffffff01", "0809"};
  for (const Kind kind : kKinds) {
    EXPECT_EQ(absl::BytesToHexString(EncodeRecord(kind, Sample())), stored[static_cast<int>(kind)]);
  }
}

TEST(PartitionRecordsTest, KeepTheFormWithPinsForever) {
  RecordValue value = Sample();
  value.owners[0].pinned_to = "b";
  value.owners[0].claimed_at_millis = 1700000000000;
  value.partitions = 16;
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord(Kind::kOwners, value)),
            "0a01610a016212130801100318072002280130023880d095ffbc31");
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord(Kind::kMembers, value)),
            "0a01610a016210ffffffffffffffffff011810");
}

TEST(PartitionRecordsTest, AreReadAsTheyWereWritten) {
  RecordValue sample = Sample();
  sample.owners[0].pinned_to = "b";
  sample.owners[0].claimed_at_millis = 17;
  sample.partitions = 4;
  for (const Kind kind : kKinds) {
    const absl::StatusOr<RecordValue> read = DecodeRecord(kind, EncodeRecord(kind, sample));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(EncodeRecord(kind, *read), EncodeRecord(kind, sample));
  }
}

TEST(PartitionRecordsTest, WhatMakesNoSenseIsDamage) {
  const Ownership senseless[] = {{.owner = "a"},
                                 {.epoch = -1},
                                 {.epoch = 1, .renewal = -1},
                                 {.owner = "a", .epoch = 1, .granted = true},
                                 {.epoch = 1, .wanted_by = "b", .granted = true}};
  for (const Ownership& ownership : senseless) {
    const std::string data = EncodeRecord(Kind::kOwners, {.owners = {ownership}});
    EXPECT_EQ(DecodeRecord(Kind::kOwners, data).status().code(), absl::StatusCode::kDataLoss);
  }
  const std::string unsorted = EncodeRecord(Kind::kMembers, {.members = {"b", "a"}});
  EXPECT_FALSE(DecodeRecord(Kind::kMembers, unsorted).ok());
  for (const Kind kind : kKinds) EXPECT_FALSE(DecodeRecord(kind, "\xff\xff").ok());
}

TEST(PartitionRecordsTest, EveryRecordHasItsKey) {
  EXPECT_EQ(KeyOf("orders/main", {.page = 7}), "partition/orders/main/owners/7");
  EXPECT_EQ(KeyOf("g", {.kind = Kind::kMembers}), "partition/g/members");
  EXPECT_EQ(KeyOf("g", {.kind = Kind::kPresence, .member = "a"}), "partition/g/member/a");
  EXPECT_EQ(CheckpointKey("g", 7), "partition/g/checkpoint/7");
  const std::string longest =
      KeyOf(std::string(kMaxGroupBytes, 'g'),
            {.kind = Kind::kPresence, .member = std::string(kMaxMemberBytes, 'm')});
  EXPECT_TRUE(sync::ValidateKey(longest).ok());
}

TEST(PartitionRecordsTest, ALongListOfMembersFitsIntoARecord) {
  RecordValue value;
  value.members.assign(kMaxMembers, std::string(kMaxMemberBytes, 'm'));
  EXPECT_TRUE(sync::ValidateData("k", EncodeRecord(Kind::kMembers, value)).ok());
}

TEST(PartitionRecordsTest, APageOfTheLongestNamesFitsIntoARecord) {
  RecordValue value;
  for (int row = 0; row < kPageRows; ++row) {
    std::string owner = absl::StrCat(std::string(kMaxMemberBytes - 3, 'm'), 100 + row);
    std::string wanted_by = absl::StrCat(std::string(kMaxMemberBytes - 3, 'm'), 355 - row);
    SetRow(&value.owners, row,
           {.owner = owner,
            .epoch = int64_t{1} << 40,
            .renewal = int64_t{1} << 40,
            .wanted_by = wanted_by,
            .granted = true,
            .pinned_to = owner,
            .claimed_at_millis = 1700000000000});
  }
  const std::string data = EncodeRecord(Kind::kOwners, value);
  EXPECT_TRUE(sync::ValidateData("k", data).ok()) << data.size();
  EXPECT_EQ(*DecodeRecord(Kind::kOwners, data), value);
  SetRow(&value.owners, kPageRows, {.epoch = 1});
  EXPECT_TRUE(
      absl::IsDataLoss(DecodeRecord(Kind::kOwners, EncodeRecord(Kind::kOwners, value)).status()));
}

TEST(PartitionRecordsTest, ARowThatNamesNoMemberOfItsPageIsDamage) {
  // Row 0 has the owner number 2 of one name.
  const std::string data = base::BytesFromHex("0a01611204080210011801");
  EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(Kind::kOwners, data).status()));
}

// {"a"}, with 16 partitions, as a muster with a record for each partition wrote it.
TEST(PartitionRecordsTest, AGroupOfAnEarlierMusterIsRefusedAndNamesTheRemedy) {
  const std::string data = base::BytesFromHex("0a01611010");
  const absl::Status refused = DecodeRecord(Kind::kMembers, data).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("muster partition forget"));
  EXPECT_EQ(DecodeEarlierMembers(data)->partitions, 16);
}

TEST(SyncRecordsTest, CarriesRequestsOutOnAStore) {
  sync::testing::MemorySyncStore store;
  SyncRecords records(&store, "g");
  const RecordName name{.page = 1};
  EXPECT_EQ(records.CarryOut({.name = name}).version, sync::kAbsent);
  const RecordValue value{.owners = {{.owner = "a", .epoch = 1}}};
  EXPECT_TRUE(records.CarryOut({.verb = Verb::kWrite, .name = name, .value = value}).done);
  EXPECT_FALSE(records.CarryOut({.verb = Verb::kWrite, .name = name, .value = value}).done)
      << "it is there";
  const RecordReply read = records.CarryOut({.name = name});
  EXPECT_EQ(read.value, value);
  EXPECT_TRUE(
      records.CarryOut({.verb = Verb::kDelete, .name = name, .version = read.version}).done);
  EXPECT_EQ(records.CarryOut({.name = name}).version, sync::kAbsent);
}

TEST(SyncRecordsTest, NamesTheRecordThatIsDamagedOrOutOfReach) {
  sync::testing::MemorySyncStore store;
  SyncRecords records(&store, "g");
  store.Overwrite("partition/g/owners/1", "\xff");
  const RecordReply damaged = records.CarryOut({.name = {.page = 1}});
  EXPECT_EQ(damaged.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.status.message()), HasSubstr("partition/g/owners/1"));
  store.FailNextWrite(absl::UnavailableError("down"));
  const RecordReply failed = records.CarryOut({.verb = Verb::kWrite, .name = {.page = 2}});
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(failed.done);
}

TEST(MemberOptionsTest, NameTheFieldThatIsWrong) {
  const MemberOptions good{.group = "orders/main", .member = "a-1", .partitions = 4};
  EXPECT_TRUE(Validate(good).ok());
  const auto is_refused = [&good](auto change, const char* field) {
    MemberOptions options = good;
    change(&options);
    const absl::Status status = Validate(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  };
  is_refused([](MemberOptions* o) { o->group = "a b"; }, "group");
  is_refused([](MemberOptions* o) { o->group = std::string(kMaxGroupBytes + 1, 'g'); }, "group");
  is_refused([](MemberOptions* o) { o->member = "a/b"; }, "member");
  is_refused([](MemberOptions* o) { o->member = ""; }, "member");
  is_refused([](MemberOptions* o) { o->partitions = 0; }, "partitions");
  is_refused([](MemberOptions* o) { o->partitions = kMaxPartitions + 1; }, "partitions");
  is_refused([](MemberOptions* o) { o->interval = absl::ZeroDuration(); }, "interval");
  is_refused([](MemberOptions* o) { o->lease = 3 * o->interval; }, "lease");
  is_refused([](MemberOptions* o) { o->grace = o->lease; }, "grace");
  is_refused([](MemberOptions* o) { o->least_epoch = 0; }, "least_epoch");
  is_refused([](MemberOptions* o) { o->predecessors.resize(kMaxPredecessors + 1); },
             "predecessors");
}

// Each row names three members that no other row names, and each number takes the most bytes.
std::string LargestPage(int rows, size_t name_bytes) {
  RecordValue value;
  for (int row = 0; row < rows; ++row) {
    const auto name = [&](char role) {
      std::string text = absl::StrCat(std::string(1, role), row, "-");
      return text + std::string(name_bytes - text.size(), 'x');
    };
    value.owners.push_back({.owner = name('o'),
                            .epoch = INT64_MAX,
                            .renewal = INT64_MAX,
                            .wanted_by = name('w'),
                            .granted = true,
                            .pinned_to = name('p'),
                            .claimed_at_millis = INT64_MIN});
  }
  return EncodeRecord(RecordName::Kind::kOwners, value);
}

TEST(PartitionRecordsTest, ThePageWithTheLongestNamesFitsIntoARecord) {
  for (const int partitions : {1, kMaxLongNamePartitions, kMaxLongNamePartitions + 1, kPageRows}) {
    const std::string page = LargestPage(partitions, MaxMemberBytes(partitions));
    EXPECT_TRUE(sync::ValidateData("k", page).ok()) << partitions << ": " << page.size();
    const auto read = DecodeRecord(RecordName::Kind::kOwners, page);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->owners.size(), static_cast<size_t>(partitions));
  }
  EXPECT_FALSE(sync::ValidateData("k", LargestPage(kPageRows, kMaxMemberBytes)).ok())
      << "so longer names would not fit";
}

TEST(PartitionRecordsTest, AMemberOfALargeGroupIsRefusedALongName) {
  MemberOptions options{.group = "g", .partitions = kMaxLongNamePartitions};
  options.member = std::string(kMaxMemberBytes, 'm');
  EXPECT_TRUE(Validate(options).ok());
  ++options.partitions;
  const absl::Status refused = Validate(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "partition member: member must be 1 to 64 of [A-Za-z0-9._-] in a group with 129 "
            "partitions");
  options.member = std::string(kMaxPageMemberBytes, 'm');
  EXPECT_TRUE(Validate(options).ok());
}

}  // namespace
}  // namespace muster::partition
