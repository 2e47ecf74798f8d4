// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/completing_store.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/fingerprint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::queue_gateway::operations {
namespace {

using queue::QueueId;
using queue::Receipt;

// The API counts in seconds: a lease that differs by less is as long as asked.
constexpr absl::Duration kSameLease = absl::Seconds(1);

// A receipt of this store: |receipt of the engine|.|mark of the text: 16 hexadecimal digits|

std::string MarkOf(absl::string_view text) { return base::Fingerprint(text).ToHex().substr(0, 16); }

Receipt Marked(const Receipt& receipt, absl::string_view mark) {
  return receipt.empty() ? receipt : absl::StrCat(receipt, ".", mark);
}

// The mark of a receipt without one is empty, and that of no text.
std::pair<Receipt, absl::string_view> Unmarked(absl::string_view receipt) {
  const size_t dot = receipt.rfind('.');
  if (dot == absl::string_view::npos) return {Receipt(receipt), ""};
  return {Receipt(receipt.substr(0, dot)), receipt.substr(dot + 1)};
}

std::vector<Receipt> AllUnmarked(absl::Span<const Receipt> receipts) {
  std::vector<Receipt> unmarked;
  unmarked.reserve(receipts.size());
  for (const Receipt& receipt : receipts) unmarked.push_back(Unmarked(receipt).first);
  return unmarked;
}

absl::Status NoOtherText(const QueueId& queue) {
  return absl::UnimplementedError(
      absl::StrCat("queue '", queue.ToString(), "': its engine cannot replace a text"));
}

// As the engine understands it: to be invisible for some time is to be given back with a delay.
queue::UpdateRequest ForEngine(const queue::UpdateRequest& request) {
  queue::UpdateRequest changed = request;
  changed.receipt = Unmarked(request.receipt).first;
  changed.body.reset();
  changed.attempt_ended = request.attempt_ended || request.visibility > absl::ZeroDuration();
  return changed;
}

}  // namespace

CompletingStore::CompletingStore(queue::QueueStore* behind, const base::Clock* clock)
    : InterceptedStore(behind), clock_(clock), traits_(behind->traits()) {
  traits_.per_receive_visibility = true;
  traits_.joins_queues = false;  // each queue's receipts are completed
}

absl::StatusOr<std::vector<queue::PutResult>> CompletingStore::Put(
    const QueueId& queue, absl::Span<const queue::NewMessage> messages) {
  auto results = InterceptedStore::Put(queue, messages);
  if (!results.ok()) return results;
  for (size_t i = 0; i < results->size(); ++i) {
    queue::PutResult& result = (*results)[i];
    result.receipt = Marked(result.receipt, MarkOf(messages[i].body));
  }
  return results;
}

absl::StatusOr<std::vector<queue::Message>> CompletingStore::Receive(
    const QueueId& queue, const queue::ReceiveOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<queue::Message> messages,
                          InterceptedStore::Receive(queue, options));
  for (queue::Message& message : messages) {
    message.receipt = Marked(message.receipt, MarkOf(message.body));
  }
  if (messages.empty()) return messages;
  const absl::Duration by_queue = messages.front().next_visible_time - clock_->Now();
  if (absl::AbsDuration(by_queue - options.visibility) < kSameLease) return messages;

  std::vector<queue::UpdateRequest> asked;
  for (const queue::Message& message : messages) {
    queue::UpdateRequest& request = asked.emplace_back();
    request.receipt = message.receipt;
    request.visibility = options.visibility;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto leased, Update(queue, asked));
  std::vector<queue::Message> held;
  for (size_t i = 0; i < messages.size(); ++i) {
    base::LogUnlessOk(base::kWarning, "a message comes again: its lease could not be set",
                      leased[i].status(), {{"queue", queue.ToString()}});
    if (!leased[i].ok()) continue;
    messages[i].receipt = leased[i]->receipt;
    messages[i].next_visible_time = leased[i]->next_visible_time;
    held.push_back(std::move(messages[i]));
  }
  return held;
}

absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> CompletingStore::AwaitMessage(
    const QueueId& queue, absl::Duration patience, TakeMessage take) {
  return InterceptedStore::AwaitMessage(
      queue, patience, [take = std::move(take)](absl::StatusOr<queue::Message> message) {
        if (message.ok()) message->receipt = Marked(message->receipt, MarkOf(message->body));
        return take(std::move(message));
      });
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> CompletingStore::BeginAttempt(
    const QueueId& queue, absl::Span<const Receipt> receipts) {
  return InterceptedStore::BeginAttempt(queue, AllUnmarked(receipts));
}

absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> CompletingStore::Update(
    const QueueId& queue, absl::Span<const queue::UpdateRequest> requests) {
  std::vector<absl::StatusOr<queue::UpdateResult>> results(requests.size(), NoOtherText(queue));
  std::vector<queue::UpdateRequest> passed;
  std::vector<size_t> places;  // of each of `passed` in `results`
  for (size_t i = 0; i < requests.size(); ++i) {
    const queue::UpdateRequest& request = requests[i];
    if (request.body.has_value() && MarkOf(*request.body) != Unmarked(request.receipt).second) {
      continue;
    }
    passed.push_back(ForEngine(request));
    places.push_back(i);
  }
  if (passed.empty()) return results;
  MUSTER_ASSIGN_OR_RETURN(auto updated, InterceptedStore::Update(queue, passed));
  for (size_t i = 0; i < updated.size(); ++i) {
    const absl::string_view mark = Unmarked(requests[places[i]].receipt).second;
    if (updated[i].ok()) updated[i]->receipt = Marked(updated[i]->receipt, mark);
    results[places[i]] = std::move(updated[i]);
  }
  return results;
}

absl::StatusOr<std::vector<absl::Status>> CompletingStore::Delete(
    const QueueId& queue, absl::Span<const Receipt> receipts) {
  return InterceptedStore::Delete(queue, AllUnmarked(receipts));
}

absl::StatusOr<std::vector<absl::Status>> CompletingStore::DeadLetter(
    const QueueId& queue, absl::Span<const queue::DeadLetterRequest> requests) {
  std::vector<queue::DeadLetterRequest> unmarked(requests.begin(), requests.end());
  for (queue::DeadLetterRequest& request : unmarked) {
    request.receipt = Unmarked(request.receipt).first;
  }
  return InterceptedStore::DeadLetter(queue, unmarked);
}

}  // namespace muster::queue_gateway::operations
