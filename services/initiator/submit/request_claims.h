// SPDX-License-Identifier: Apache-2.0

// RequestClaims: makes a request id mean one batch in a mesh with several initiators, whose ledgers
// know only their own batches.
//
//   free ──Claim──► claimed ──Release, when the content of its batch is deleted──► free
//                      │ ▲
//                      └─┘ another initiator claims it: the owner has no batch of it, or a
//                      cancelled one that no schedule made
//
// An initiator claims the id of a new batch in the shared sync store, by compare-and-set, while it
// records the batch (Submissions), and has won or lost before it acknowledges a byte and before it
// puts an item. The claim names the data directory that has the batch, and not the process, which
// may restart under another name.
//
//   key    requests/<SHA-256 of tenant and request id, 64 hexadecimal digits>
//   data   v1::RequestClaim
//
// An owner that dies between its claim and its batch leaves a claim that others take over as soon
// as it runs again and tells them so. Until then the id is not free: the owner's ledger may have
// the batch. Claims are bounded by the batches whose content is kept. One that the death of a NATS
// server brings back keeps other initiators from the id, and does no other harm.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/instance_client.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/batch.pb.h"

namespace muster::initiator::submit {

// What names a submission: tenants choose their request ids without regard to each other.
struct RequestName {
  std::string tenant;
  std::string id;
};

// Asks the owner of `claim` for its batch of the request. NotFound: it has none, or a cancelled one
// that no schedule made, and will have none without a new claim. Unavailable: the owner does not
// answer.
using AskOwner = std::function<absl::StatusOr<uint64_t>(const v1::RequestClaim& claim,
                                                        const RequestName& request)>;

// Thread-safe.
class RequestClaims {
 public:
  struct Owner {
    std::string directory;  // OpenDirectoryId
    std::string instance;
    std::string address;  // HOST:PORT
  };

  // `store` is not owned. `self` is what this initiator's claims name.
  RequestClaims(sync::OptimisticSyncStore* store, Owner self, AskOwner ask_owner)
      : store_(store), self_(std::move(self)), ask_owner_(std::move(ask_owner)) {}

  // Claims the id of `batch`; one write if no other initiator has claimed it. Uses only the number,
  // the tenant and the request id. The caller holds the id until the batch is recorded and the
  // claim is decided: no other call of this process may claim it, or answer for it, meanwhile.
  //
  // FailedPrecondition, reason REQUEST_ID_ELSEWHERE: another initiator has a batch of it.
  // Unavailable: it may have, and does not answer. Otherwise the store's errors, after which the id
  // may be claimed for this initiator.
  absl::Status Claim(const ledger::Batch& batch);

  // For an initiator that starts, or whose store is back: claims the ids of its open batches again
  // if the store has lost them, as a NATS server does that was wiped; the newest first, whose
  // clients are the likeliest to ask again. One write for each, which fails where the claim is
  // there, or where another initiator has claimed the id meanwhile: it stays with that one. Errors
  // are the ledger's and the store's, after which some may be claimed, and it may be called again.
  absl::Status RestoreLost(ledger::BatchLedger* ledger);

  // Ends the claim for `batch`; fine where there is none. Errors are the store's.
  absl::Status Release(const ledger::Batch& batch);

 private:
  // Of `batch`, for this initiator.
  v1::RequestClaim MakeClaim(const ledger::Batch& batch) const;
  // OK: the owner of `claim` does not need it.
  absl::Status CheckFree(const v1::RequestClaim& claim, const ledger::Batch& batch) const;

  sync::OptimisticSyncStore* const store_;  // not owned
  const Owner self_;
  const AskOwner ask_owner_;
};

// Where the claim for the batch lies in the sync store.
std::string ClaimKeyOf(const ledger::Batch& batch);

// An AskOwner that finds the owner among the initiators at `addresses`, by LedgerService.
AskOwner AskInitiators(rpc::InstanceAddresses addresses, rpc::ChannelOptions channel_options);

}  // namespace muster::initiator::submit
