// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/partition_service.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/status.h"

namespace muster::initiator::api {
namespace {

absl::StatusOr<int> ParsePageSize(int32_t asked) {
  const std::optional<int> size = rpc::PageSize(asked);
  if (size.has_value()) return *size;
  return rpc::BadField("page_size",
                       absl::StrCat("is ", asked, ", must be within 1 to ", rpc::kMaxPageSize));
}

// The token is the partition that the next page begins with.
absl::StatusOr<int> ParseFirst(const std::string& token) {
  int first = 0;
  if (token.empty() || (absl::SimpleAtoi(token, &first) && first >= 0)) return first;
  return rpc::BadField("page_token", "is not one that a response gave");
}

v1::MemberGroup ToProto(const partition::GroupState& state) {
  v1::MemberGroup group;
  group.set_group(state.group);
  group.set_partitions(state.partitions);
  for (const std::string& member : state.members) group.add_members(member);
  return group;
}

}  // namespace

v1::PartitionView PartitionService::ViewOf(const std::string& group,
                                           const partition::PartitionState& state) const {
  v1::PartitionView view;
  view.set_partition(state.partition);
  view.set_owner(state.record.owner);
  view.set_epoch(state.record.epoch);
  view.set_renewal(state.record.renewal);
  view.set_wanted_by(state.record.wanted_by);
  view.set_handing_over(state.record.granted);
  view.set_pinned_to(state.record.pinned_to);
  if (!state.record.owner.empty() && state.record.claimed_at_millis > 0) {
    *view.mutable_claimed() = base::ToProto(absl::FromUnixMillis(state.record.claimed_at_millis));
  }
  if (!state.checkpoint.has_value()) return view;
  view.mutable_checkpoint()->set_offset(state.checkpoint->offset);
  view.mutable_checkpoint()->set_sequence(state.checkpoint->sequence);
  if (extent_of_ == nullptr) return view;
  if (const auto extent = extent_of_(group, state.partition); extent.has_value()) {
    // Before the first checkpoint the offset is 0; and retention may have passed a later one.
    const int64_t place = std::max(state.checkpoint->offset, extent->first);
    view.set_lag(std::max<int64_t>(0, extent->next - place));
  }
  return view;
}

grpc::Status PartitionService::ListGroups(grpc::ServerContext* context,
                                          const v1::ListGroupsRequest* request,
                                          v1::ListGroupsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const int page_size, ParsePageSize(request->page_size()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> groups, admin_.Groups());
    // The token is the name that the last page ended with.
    auto next = std::upper_bound(groups.begin(), groups.end(), request->page_token());
    if (request->page_token().empty()) next = groups.begin();
    for (; next != groups.end(); ++next) {
      if (response->groups_size() == page_size) {
        response->set_next_page_token(response->groups().rbegin()->group());
        break;
      }
      const absl::StatusOr<partition::GroupState> state = admin_.Describe(*next);
      // Noted, and its member is about to join; or forgotten meanwhile.
      if (absl::IsNotFound(state.status())) continue;
      MUSTER_RETURN_IF_ERROR(state.status());
      *response->add_groups() = ToProto(*state);
    }
    return absl::OkStatus();
  });
}

grpc::Status PartitionService::ListPartitions(grpc::ServerContext* context,
                                              const v1::ListPartitionsRequest* request,
                                              v1::ListPartitionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const int page_size, ParsePageSize(request->page_size()));
    MUSTER_ASSIGN_OR_RETURN(const int first, ParseFirst(request->page_token()));
    MUSTER_ASSIGN_OR_RETURN(const partition::GroupState group, admin_.Describe(request->group()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<partition::PartitionState> states,
                            admin_.List(group, first, page_size));
    for (const partition::PartitionState& state : states) {
      *response->add_partitions() = ViewOf(group.group, state);
    }
    if (group.partitions - first > page_size) {
      response->set_next_page_token(absl::StrCat(first + page_size));
    }
    return absl::OkStatus();
  });
}

grpc::Status PartitionService::MovePartition(grpc::ServerContext* context,
                                             const v1::MovePartitionRequest* request,
                                             v1::MovePartitionResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (request->member().empty()) return rpc::BadField("member", "is missing");
    MUSTER_RETURN_IF_ERROR(admin_.Move(request->group(), request->partition(), request->member()));
    MUSTER_ASSIGN_OR_RETURN(const partition::GroupState group, admin_.Describe(request->group()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<partition::PartitionState> states,
                            admin_.List(group, request->partition(), 1));
    if (!states.empty()) *response->mutable_partition() = ViewOf(group.group, states.front());
    return absl::OkStatus();
  });
}

grpc::Status PartitionService::Rebalance(grpc::ServerContext* context,
                                         const v1::RebalanceRequest* request,
                                         v1::RebalanceResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const int unpinned, admin_.Rebalance(request->group()));
    response->set_unpinned(unpinned);
    return absl::OkStatus();
  });
}

grpc::Status PartitionService::ForgetGroup(grpc::ServerContext* context,
                                           const v1::ForgetGroupRequest* request,
                                           v1::ForgetGroupResponse*) {
  return rpc::Answer(*context, [&] { return admin_.Forget(request->group()); });
}

}  // namespace muster::initiator::api
