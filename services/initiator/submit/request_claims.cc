// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/request_claims.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"
#include "muster/v1/ledger_service.grpc.pb.h"

namespace muster::initiator::submit {
namespace {

// Each lost race means that another initiator has claimed or released the id meanwhile.
constexpr int kMaxRaces = 10;
// Initiators that take longer count as away for now. Each looks into its ledger, at most behind one
// submit that is being recorded.
constexpr absl::Duration kAskTimeout = absl::Seconds(4);

absl::StatusOr<v1::RequestClaim> ClaimIn(absl::string_view data, absl::string_view key) {
  v1::RequestClaim claim;
  if (claim.ParseFromArray(data.data(), static_cast<int>(data.size()))) return claim;
  return absl::DataLossError(absl::StrCat("sync record '", key, "' is no claim of a request id"));
}

std::string NameOf(const v1::RequestClaim& claim) {
  return absl::StrCat("initiator ", claim.instance(), " (", claim.address(), ")");
}

}  // namespace

// The tenant's length comes first: otherwise two pairs could make one text.
std::string ClaimKeyOf(const ledger::Batch& batch) {
  return absl::StrCat("requests/", base::Sha256Hex(absl::StrCat(batch.tenant.size(), " ",
                                                                batch.tenant, batch.request_id)));
}

v1::RequestClaim RequestClaims::MakeClaim(const ledger::Batch& batch) const {
  v1::RequestClaim mine;
  mine.set_directory(self_.directory);
  mine.set_instance(self_.instance);
  mine.set_address(self_.address);
  mine.set_batch(batch.number);
  return mine;
}

absl::Status RequestClaims::RestoreLost(ledger::BatchLedger* ledger) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<uint64_t> open, ledger->ListOpen());
  std::sort(open.begin(), open.end(), std::greater<>());
  for (const uint64_t number : open) {
    const absl::StatusOr<ledger::Batch> batch = ledger->Get(number);
    // A record that is damaged is told where its batch is worked on.
    if (!batch.ok() || !batch->request_claimed || batch->undecided) continue;
    const std::string key = ClaimKeyOf(*batch);
    MUSTER_ASSIGN_OR_RETURN(
        const bool was_lost,
        store_->TryWrite(key, MakeClaim(*batch).SerializeAsString(), sync::kAbsent));
    if (was_lost) {
      base::Log(base::kWarning, "claimed a request id again, whose claim was lost",
                {{"batch", number}});
    }
  }
  return absl::OkStatus();
}

absl::Status RequestClaims::Claim(const ledger::Batch& batch) {
  const std::string key = ClaimKeyOf(batch);
  const v1::RequestClaim mine = MakeClaim(batch);
  uint64_t version = sync::kAbsent;
  for (int race = 0; race < kMaxRaces; ++race) {
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            store_->TryWrite(key, mine.SerializeAsString(), version));
    if (written) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(key));
    version = record.version;
    if (version == sync::kAbsent) continue;
    MUSTER_ASSIGN_OR_RETURN(const v1::RequestClaim claim, ClaimIn(record.data, key));
    // A claim of this directory has no batch in the ledger, or a cancelled one: the caller looked.
    if (claim.directory() != self_.directory) MUSTER_RETURN_IF_ERROR(CheckFree(claim, batch));
  }
  return absl::UnavailableError("other initiators claim this request id all the time");
}

absl::Status RequestClaims::CheckFree(const v1::RequestClaim& claim,
                                      const ledger::Batch& batch) const {
  const absl::StatusOr<uint64_t> begun = ask_owner_(claim, {batch.tenant, batch.request_id});
  if (begun.ok()) {
    return rpc::WithReason(absl::FailedPreconditionError(absl::StrCat(
                               "this request id belongs to batch ", *begun, " of ", NameOf(claim),
                               ": submit it there, or choose another one")),
                           {"REQUEST_ID_ELSEWHERE",
                            {{"batch", absl::StrCat(*begun)},
                             {"initiator", claim.instance()},
                             {"address", claim.address()}}});
  }
  if (!absl::IsNotFound(begun.status())) {
    return absl::UnavailableError(
        absl::StrCat("this request id may belong to batch ", claim.batch(), " of ", NameOf(claim),
                     ", which cannot be asked: ", begun.status().message()));
  }
  base::Log(base::kInfo, "takes over a request id whose batch was never begun, or is cancelled",
            {{"batch", claim.batch()}, {"initiator", claim.instance()}, {"new", batch.number}});
  return absl::OkStatus();
}

absl::Status RequestClaims::Release(const ledger::Batch& batch) {
  const std::string key = ClaimKeyOf(batch);
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, store_->Get(key));
  if (record.version == sync::kAbsent) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const v1::RequestClaim claim, ClaimIn(record.data, key));
  const bool is_its = claim.directory() == self_.directory && claim.batch() == batch.number;
  // False: another batch has claimed the id since.
  return is_its ? store_->TryDelete(key, record.version).status() : absl::OkStatus();
}

AskOwner AskInitiators(rpc::InstanceAddresses addresses, rpc::ChannelOptions channel_options) {
  const auto initiators = std::make_shared<rpc::InstanceClient<v1::LedgerService>>(
      "initiator", std::move(addresses), std::move(channel_options));
  return [initiators](const v1::RequestClaim& claim,
                      const RequestName& named) -> absl::StatusOr<uint64_t> {
    v1::FindRequestRequest request;
    request.set_directory(claim.directory());
    request.set_request_id(named.id);
    request.set_tenant(named.tenant);
    // First where it was; it may have come back elsewhere, with its data directory.
    const rpc::AskOptions options{.first = claim.address(), .timeout = kAskTimeout};
    const auto judge = [](const absl::Status& answer) {
      return rpc::Verdict{.ask_on = !answer.ok() && !absl::IsNotFound(answer)};
    };
    v1::FindRequestResponse response;
    MUSTER_ASSIGN_OR_RETURN(
        const rpc::Asked asked,
        initiators->Ask(options, &v1::LedgerService::Stub::FindRequest, request, &response, judge));
    if (asked.answer.has_value()) {
      MUSTER_RETURN_IF_ERROR(*asked.answer);
      return response.batch();
    }
    return absl::UnavailableError(absl::StrCat(
        "none of the ", asked.instances, " initiators that are known has its data directory",
        asked.silence.ok() ? "" : absl::StrCat("; ", asked.silence.message())));
  };
}

}  // namespace muster::initiator::submit
