// SPDX-License-Identifier: Apache-2.0

// ItemWorker: what one worker does with one work item: decode → content → parse → handler → result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/handler/handler.h"
#include "muster/input/record_parser.h"
#include "muster/item/result_codec.h"
#include "muster/item/work_item_codec.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"
#include "services/processor/handler_runner.h"
#include "services/processor/revision_router.h"
#include "services/processor/work_spans.h"
#include "services/processor/worker_setup.h"

namespace muster::processor {

// One attempt at a message.
struct Attempt {
  int number = 1;
  bool last = false;
  bool suspect = false;  // the worker of the attempt before died with it
  std::stop_token stop_token;
  absl::Time put = absl::InfinitePast();  // when the message was put; else: not known
  const queue::QueueId* queue = nullptr;  // where it came from; null: it is not traced. Not owned.
};

// Not thread-safe: one per dequeue task. It is the listener's Subscriber.
class ItemWorker final : public listener::Subscriber {
 public:
  // `setup` is not owned.
  ItemWorker(const WorkerSetup* setup, std::unique_ptr<handler::Handler> handler)
      : setup_(setup),
        spans_(setup->spans, setup->clock),
        runner_(setup, std::move(handler)),
        router_(this, setup) {}

  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override;
  std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                           const queue::Cause& cause) override;

  // Works on one message. Answers a settlement for any content, also for a message that is no work
  // item.
  listener::Settlement Work(const queue::Message& message, const Attempt& attempt);

 private:
  // Settles the deliveries that do not fit, as far as that shows without work on them, so that they
  // cost no attempt, which an engine may have to store. Returns, for each, whether it did.
  std::vector<bool> LeaveMisfits(absl::Span<const listener::Delivery> deliveries,
                                 listener::DeliveryContext& context);
  // As Work, once the message is decoded.
  listener::Settlement WorkOnItem(const queue::Message& message, const Attempt& attempt,
                                  item::WorkItem* item);
  // The handler version that the result of a dead-lettered item names. If the batch is bound to no
  // version, workers with other versions may have tried the item, too.
  std::string VersionThatGivesUp(const item::BatchIdentity& identity);
  bool IsCancelled(uint64_t batch) const;
  bool IsSuspended(uint64_t batch) const;
  // Drops an item that does not fit if its batch is suspended, or else leaves it to others.
  listener::Settlement LeaveMisfit(const item::WorkItem& item, std::string why) const;
  // Puts the item back without counting the attempt; logs the first such item of each batch.
  listener::Settlement LeaveToOthers(const item::WorkItem& item, std::string wanted,
                                     std::string why) const;
  // Puts back an item that only newer processors can read.
  listener::Settlement LeaveToNewer(const queue::Message& message, const absl::Status& why) const;
  // Gives up an item that cannot be read, unless its batch is over: what has ended loses its blobs,
  // and a copy that comes later is of no use.
  listener::Settlement GiveUpUnlessOver(const queue::Message& message,
                                        const absl::Status& why) const;
  // Lets the content know which items come next.
  void ExpectContent(absl::Span<const listener::Delivery> deliveries) const;
  // Reads the item's slice, which travels by reference. nullopt: it is there.
  std::optional<listener::Settlement> ReadContent(const queue::Message& message,
                                                  item::WorkItem* item);
  // Has `worker`, which fits the item, work on it; stops when the batch is cancelled.
  listener::Settlement WorkUnlessCancelled(ItemWorker& worker, const item::WorkItem& item,
                                           Attempt attempt) const;
  listener::Settlement WorkOnFitting(const item::WorkItem& item, const Attempt& attempt);
  listener::Settlement WorkOn(const item::WorkItem& item, const Attempt& attempt);
  listener::Settlement RejectOversized(const item::WorkItem& item, const Attempt& attempt) const;
  listener::Settlement Aggregate(const item::WorkItem& item, const Attempt& attempt,
                                 item::ItemContribution contribution) const;
  // Parses into records_. DataLoss: the item does not fit its job or its own transaction count.
  absl::Status Parse(const item::WorkItem& item);

  const WorkerSetup* const setup_;  // not owned
  WorkSpans spans_;
  HandlerRunner runner_;
  RevisionRouter router_;
  // Cached for the latest batch, because items of one batch come in runs.
  std::vector<int> positions_;
  int header_fields_ = -1;
  std::optional<input::RecordParser> parser_;
  input::ParsedRecords records_;  // reused
  std::string slice_;             // space for the content of items; reused
  bool sees_misfits_ = false;     // some of the last deliveries did not fit
};

}  // namespace muster::processor
