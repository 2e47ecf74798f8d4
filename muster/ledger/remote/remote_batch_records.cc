#include "muster/ledger/remote/remote_batch_records.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rpc/status.h"

namespace muster::ledger::remote {
namespace {

// Batches with a remembered initiator; for others, the initiators are asked again.
constexpr size_t kMaxHomes = 10'000;
constexpr size_t kMaxItemsOfCall = 4096;

}  // namespace

RemoteBatchRecords::RemoteBatchRecords(KnownInitiators initiators,
                                       rpc::ChannelOptions channel_options, absl::Duration timeout,
                                       base::Clock* clock)
    : initiators_(std::move(initiators)),
      channel_options_(std::move(channel_options)),
      timeout_(timeout),
      clock_(clock) {}

RemoteBatchRecords::~RemoteBatchRecords() = default;

template <typename Request, typename Response>
absl::StatusOr<Response> RemoteBatchRecords::Call(
    uint64_t batch, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  Response response;
  MUSTER_RETURN_IF_ERROR(Ask(batch, [&](Stub& stub, absl::Duration timeout) {
    rpc::CallContext context(timeout);
    return rpc::FromGrpc((stub.*method)(&context, request, &response));
  }));
  return response;
}

absl::StatusOr<ledger::Batch> RemoteBatchRecords::Get(uint64_t number) {
  v1::GetLedgerBatchRequest request;
  request.set_batch(number);
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(number, &Stub::GetLedgerBatch, request));
  ledger::Batch batch;
  MUSTER_RETURN_IF_ERROR(ledger::Fill(response.record(), &batch));
  MUSTER_RETURN_IF_ERROR(ledger::Fill(response.progress(), &batch));
  return batch;
}

absl::StatusOr<std::vector<ledger::ItemBoundary>> RemoteBatchRecords::Items(uint64_t batch,
                                                                            uint64_t first_index,
                                                                            size_t max_items) {
  v1::ListItemsRequest request;
  request.set_batch(batch);
  request.set_first_index(first_index);
  request.set_max_items(static_cast<int>(std::min(max_items, kMaxItemsOfCall)));
  MUSTER_ASSIGN_OR_RETURN(const auto response, Call(batch, &Stub::ListItems, request));
  return ledger::FromProtos(response.items());
}

absl::Status RemoteBatchRecords::MarkComplete(uint64_t batch, absl::Time when) {
  v1::MarkCompleteRequest request;
  request.set_batch(batch);
  *request.mutable_completed() = base::ToProto(when);
  return Call(batch, &Stub::MarkComplete, request).status();
}

absl::Status RemoteBatchRecords::ReopenItems(uint64_t batch, absl::Span<const uint64_t> items) {
  v1::ReopenItemsRequest request;
  request.set_batch(batch);
  request.mutable_items()->Add(items.begin(), items.end());
  return Call(batch, &Stub::ReopenItems, request).status();
}

absl::Status RemoteBatchRecords::Ask(
    uint64_t batch, const std::function<absl::Status(Stub&, absl::Duration timeout)>& call) {
  std::vector<std::string> addresses = initiators_();
  ForgetOthers(addresses);
  const std::string home = HomeOf(batch);
  // First the last known address; then the others, because an initiator may have come back
  // elsewhere, with its ledger.
  std::stable_partition(addresses.begin(), addresses.end(),
                        [&home](const std::string& address) { return address == home; });
  const absl::Duration end = clock_->Monotonic() + timeout_;
  absl::Status unreachable;
  for (const std::string& address : addresses) {
    absl::Status answer = AskOne(address, end, call);
    if (absl::IsUnavailable(answer) || absl::IsDeadlineExceeded(answer)) {
      unreachable =
          absl::UnavailableError(absl::StrCat("initiator ", address, ": ", answer.message()));
    } else if (!absl::IsNotFound(answer)) {
      RememberHome(batch, address);
      return answer;
    }
  }
  if (!unreachable.ok()) return unreachable;
  if (!addresses.empty()) return ledger::UnknownToAll(batch, addresses.size());
  return absl::UnavailableError(
      absl::StrCat("no initiator is known that could have batch ", batch));
}

// Initiators before this one may have taken all of the time. They are spared next time, and this
// one is asked then.
absl::Status RemoteBatchRecords::AskOne(
    const std::string& address, absl::Duration end,
    const std::function<absl::Status(Stub&, absl::Duration timeout)>& call) {
  const absl::StatusOr<std::shared_ptr<Initiator>> initiator = Find(address);
  if (!initiator.ok()) return absl::UnavailableError(initiator.status().message());
  const absl::Duration left = end - clock_->Monotonic();
  if (left <= absl::ZeroDuration()) return absl::UnavailableError("others let the call time out");
  MUSTER_RETURN_IF_ERROR((*initiator)->breaker.Admit());
  absl::Status answer = call(*(*initiator)->stub, left);
  (*initiator)->breaker.Note(answer);
  return answer;
}

void RemoteBatchRecords::ForgetOthers(const std::vector<std::string>& known) {
  base::MutexLock lock(&mu_);
  std::erase_if(found_, [&known](const auto& entry) {
    return std::find(known.begin(), known.end(), entry.first) == known.end();
  });
}

absl::StatusOr<std::shared_ptr<RemoteBatchRecords::Initiator>> RemoteBatchRecords::Find(
    const std::string& address) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<Initiator>& initiator = found_[address];
  if (initiator == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                            rpc::OpenChannel(address, channel_options_));
    initiator = std::make_shared<Initiator>(channel, clock_);
  }
  return initiator;
}

std::string RemoteBatchRecords::HomeOf(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto home = homes_.find(batch);
  return home == homes_.end() ? "" : home->second;
}

void RemoteBatchRecords::RememberHome(uint64_t batch, const std::string& address) {
  base::MutexLock lock(&mu_);
  if (homes_.size() >= kMaxHomes) homes_.clear();
  homes_[batch] = address;
}

}  // namespace muster::ledger::remote
