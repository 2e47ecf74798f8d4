// SPDX-License-Identifier: Apache-2.0
#include "muster/item/held_key_admin.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"

namespace muster::item {
namespace {

// Poison messages read at a time: the store reads whole bodies.
constexpr int kPage = 32;

// Those that the request names.
absl::StatusOr<std::vector<HeldKeyView>> Select(const HeldKeyRequest& request,
                                                queue::QueueStore& queues, HeldKeyStore& keys) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<HeldKeyView> all, ListHeldKeys(request.queue, queues, keys));
  if (request.keys.empty()) return all;
  std::map<std::string, HeldKeyView> by_key;
  for (HeldKeyView& view : all) by_key.emplace(view.held.key, view);
  std::vector<HeldKeyView> selected;
  for (const std::string& key : std::set<std::string>(request.keys.begin(), request.keys.end())) {
    const auto found = by_key.find(key);
    if (found == by_key.end()) {
      return absl::NotFoundError(absl::StrCat(request.queue.ToString(), " does not hold the key '",
                                              absl::CHexEscape(key), "'"));
    }
    selected.push_back(std::move(found->second));
  }
  return selected;
}

}  // namespace

absl::StatusOr<HeldSummary> CountHeldKeys(absl::Span<const queue::QueueId> partitions,
                                          HeldKeyStore& keys) {
  HeldSummary summary;
  for (const queue::QueueId& partition : partitions) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<HeldKey> held, keys.Read(partition));
    summary.keys += held.size();
    if (!held.empty()) summary.partitions.push_back(partition);
  }
  return summary;
}

std::string InWords(const HeldSummary& held, absl::string_view options) {
  if (held.keys == 0) return "";
  const size_t others = held.partitions.size() - 1;
  const auto command = [options](absl::string_view verb) {
    return absl::StrCat("`muster queue ", verb, " QUEUE", options, "`");
  };
  return absl::StrCat(held.keys, held.keys == 1 ? " key is" : " keys are",
                      " held behind dead letters in ", held.partitions.front().ToString(),
                      others == 0   ? ""
                      : others == 1 ? " and 1 more queue"
                                    : absl::StrCat(" and ", others, " more queues"),
                      ": ", command("held"), " shows them, ", command("release --all"),
                      " lets them go on, ", command("redrive --held"),
                      " tries the dead letters again");
}

absl::StatusOr<std::vector<HeldKeyView>> FindDeadLetters(const queue::QueueId& queue,
                                                         absl::Span<const HeldKey> held,
                                                         queue::QueueStore& queues) {
  std::vector<HeldKeyView> views;
  std::map<std::pair<uint64_t, uint64_t>, size_t> places;
  for (const HeldKey& one : held) {
    places[{one.batch, one.item}] = views.size();
    views.push_back({one, "", {}});
  }
  std::string after;
  while (!places.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const auto page, queues.ListPoison(queue, after, kPage));
    if (page.empty()) break;
    for (const queue::PoisonMessage& message : page) {
      const absl::StatusOr<WorkItem> item = DecodeWorkItemHeader(message.body);
      if (!item.ok()) continue;
      const auto found = places.find({item->identity.batch, item->index});
      if (found == places.end()) continue;
      views[found->second].message_id = message.message_id;
      views[found->second].cause = message.cause;
      places.erase(found);
    }
    after = page.back().message_id;
  }
  return views;
}

absl::StatusOr<std::vector<HeldKeyView>> ListHeldKeys(const queue::QueueId& queue,
                                                      queue::QueueStore& queues,
                                                      HeldKeyStore& keys) {
  MUSTER_RETURN_IF_ERROR(queues.GetMetadata(queue).status());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HeldKey> held, keys.Read(queue));
  return FindDeadLetters(queue, held, queues);
}

absl::StatusOr<std::vector<HeldKeyView>> ReleaseHeldKeys(const HeldKeyRequest& request,
                                                         queue::QueueStore& queues,
                                                         HeldKeyStore& keys) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<HeldKeyView> selected, Select(request, queues, keys));
  std::vector<HeldKey> held;
  for (const HeldKeyView& view : selected) held.push_back(view.held);
  // One that went on by itself meanwhile is as good as released.
  MUSTER_RETURN_IF_ERROR(keys.Release(request.queue, held).status());
  return selected;
}

absl::StatusOr<HeldKeyRedrive> RedriveHeldKeys(const HeldKeyRequest& request,
                                               queue::QueueStore& queues, HeldKeyStore& keys,
                                               BatchReopener& reopener) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HeldKeyView> selected, Select(request, queues, keys));
  HeldKeyRedrive redrive;
  RedriveRequest redriven;
  redriven.queue = request.queue;
  for (const HeldKeyView& view : selected) {
    if (view.message_id.empty()) {
      redrive.without_dead_letter.push_back(view.held.key);
    } else {
      redriven.messages.push_back(view.message_id);
    }
  }
  if (redriven.messages.empty()) {
    if (selected.empty()) return redrive;
    return absl::FailedPreconditionError(absl::StrCat(
        "none of the ", selected.size(), " held keys of ", request.queue.ToString(),
        " has a dead letter: it was redriven before and waits or is at work, or it was purged; "
        "to go on without it, release the key"));
  }
  MUSTER_ASSIGN_OR_RETURN(redrive.summary, RedriveItems(redriven, queues, reopener));
  return redrive;
}

absl::StatusOr<int64_t> PurgePoison(const queue::QueueId& queue, queue::QueueStore& queues,
                                    HeldKeyStore& keys) {
  // Before the purge: a key that is held meanwhile keeps its place, and is listed without a dead
  // letter.
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HeldKeyView> views, ListHeldKeys(queue, queues, keys));
  MUSTER_ASSIGN_OR_RETURN(const int64_t purged, queues.PurgePoison(queue));
  std::vector<HeldKey> dead;
  for (const HeldKeyView& view : views) {
    if (!view.message_id.empty()) dead.push_back(view.held);
  }
  if (!dead.empty()) MUSTER_RETURN_IF_ERROR(keys.Release(queue, dead).status());
  return purged;
}

}  // namespace muster::item
