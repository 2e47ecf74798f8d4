// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/partition_service.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/partition/group_registry.h"
#include "muster/partition/records.h"
#include "muster/rpc/status.h"
#include "muster/stream/event_stream_store.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PartitionServiceTest : public ::testing::Test {
 protected:
  void AddGroup(const std::string& group, int partitions) {
    ASSERT_TRUE(partition::GroupRegistry(&sync_).Note(group).ok());
    const partition::RecordName name{.kind = partition::RecordName::Kind::kMembers};
    sync_.Overwrite(
        partition::KeyOf(group, name),
        partition::EncodeRecord(name.kind, {.members = {"a"}, .partitions = partitions}));
  }

  absl::StatusOr<v1::ListPartitionsResponse> List(const std::string& group, int size,
                                                  const std::string& token) {
    v1::ListPartitionsRequest request;
    request.set_group(group);
    request.set_page_size(size);
    request.set_page_token(token);
    v1::ListPartitionsResponse response;
    grpc::ServerContext context;
    const absl::Status status =
        rpc::FromGrpc(service_.ListPartitions(&context, &request, &response));
    if (!status.ok()) return status;
    return response;
  }

  sync::testing::MemorySyncStore sync_;
  stream::PartitionExtent orders_{.first = 1, .next = 50};
  PartitionService service_{
      &sync_, [this](const std::string& group, int) -> std::optional<stream::PartitionExtent> {
        if (group != "orders/main") return std::nullopt;
        return orders_;
      }};
};

TEST_F(PartitionServiceTest, ListsThePartitionsPageByPage) {
  AddGroup("orders/main", 5);
  std::string token;
  int pages = 0;
  std::vector<int> seen;
  do {
    const v1::ListPartitionsResponse page = List("orders/main", 2, token).value();
    for (const v1::PartitionView& view : page.partitions()) seen.push_back(view.partition());
    token = page.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(pages, 3);
}

TEST_F(PartitionServiceTest, TellsTheLagWhereTheEndIsKnown) {
  for (const char* group : {"orders/main", "jobs"}) {
    AddGroup(group, 1);
    ASSERT_TRUE(partition::CheckpointStore(&sync_, group).Save(0, 1, {.offset = 42}).ok());
  }
  EXPECT_EQ(List("orders/main", 0, "")->partitions(0).lag(), 8);
  EXPECT_FALSE(List("jobs", 0, "")->partitions(0).has_lag());
}

TEST_F(PartitionServiceTest, NothingButEventsThatAreKeptIsBehindACheckpoint) {
  AddGroup("orders/main", 1);
  partition::CheckpointStore checkpoints(&sync_, "orders/main");
  ASSERT_TRUE(checkpoints.Begin(0, 1).ok());
  orders_ = {.first = 1, .next = 1};
  EXPECT_EQ(List("orders/main", 0, "")->partitions(0).lag(), 0) << "no event was ever there";
  orders_ = {.first = 31, .next = 50};
  EXPECT_EQ(List("orders/main", 0, "")->partitions(0).lag(), 19);
  ASSERT_TRUE(checkpoints.Save(0, 1, {.offset = 21, .sequence = 20}).ok());
  EXPECT_EQ(List("orders/main", 0, "")->partitions(0).lag(), 19) << "ten of them are gone";
}

TEST_F(PartitionServiceTest, ListsTheGroupsPageByPage) {
  for (const char* group : {"c", "a", "b"}) AddGroup(group, 1);
  // Noted, while its member has not joined yet.
  ASSERT_TRUE(partition::GroupRegistry(&sync_).Note("aa").ok());
  v1::ListGroupsRequest request;
  request.set_page_size(2);
  std::vector<std::string> seen;
  do {
    v1::ListGroupsResponse response;
    grpc::ServerContext context;
    ASSERT_TRUE(service_.ListGroups(&context, &request, &response).ok());
    for (const v1::MemberGroup& group : response.groups()) seen.push_back(group.group());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(seen, ElementsAre("a", "b", "c"));
}

TEST_F(PartitionServiceTest, NamesTheFieldThatIsWrong) {
  AddGroup("g", 1);
  EXPECT_THAT(std::string(List("g", 1001, "").status().message()), HasSubstr("page_size"));
  EXPECT_THAT(std::string(List("g", 1, "x").status().message()), HasSubstr("page_token"));
  EXPECT_TRUE(absl::IsNotFound(List("h", 1, "").status()));
  v1::MovePartitionRequest request;
  request.set_group("g");
  v1::MovePartitionResponse response;
  grpc::ServerContext context;
  EXPECT_THAT(rpc::FromGrpc(service_.MovePartition(&context, &request, &response)).message(),
              HasSubstr("member"));
}

}  // namespace
}  // namespace muster::initiator::api
