// SPDX-License-Identifier: Apache-2.0
#include "muster/item/held_key_admin.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/limits.h"

namespace muster::item {
namespace {

// Poison messages read at a time: the store reads whole bodies.
constexpr int kPage = 32;

// The views that wait for their dead letters, by batch and item.
using Places = std::map<std::pair<uint64_t, uint64_t>, HeldKeyView*>;

// Fills in the view that waits for this dead letter, if there is one.
void Show(const queue::PoisonMessage& message, Places* places) {
  const absl::StatusOr<WorkItem> item = DecodeWorkItemHeader(message.body);
  if (!item.ok()) return;
  const auto found = places->find({item->identity.batch, item->index});
  if (found == places->end()) return;
  found->second->message_id = message.message_id;
  found->second->cause = message.cause;
  places->erase(found);
}

absl::Status ShowNamed(const queue::QueueId& queue, absl::Span<const queue::PoisonName> names,
                       queue::QueueStore& queues, Places* places) {
  for (size_t from = 0; from < names.size(); from += queue::kMaxFindPoison) {
    MUSTER_ASSIGN_OR_RETURN(const auto found,
                            queues.FindPoison(queue, names.subspan(from, queue::kMaxFindPoison)));
    for (const auto& message : found) {
      if (message.has_value()) Show(*message, places);
    }
  }
  return absl::OkStatus();
}

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
  for (const HeldKey& one : held) views.push_back({one, "", {}});
  std::vector<queue::PoisonName> names;
  Places named, others;
  for (HeldKeyView& view : views) {
    const bool has_name = view.held.message.has_value();
    if (has_name) names.push_back(*view.held.message);
    (has_name ? named : others)[{view.held.batch, view.held.item}] = &view;
  }
  MUSTER_RETURN_IF_ERROR(ShowNamed(queue, names, queues, &named));
  std::string after;
  while (!others.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const auto page, queues.ListPoison(queue, after, kPage));
    if (page.empty()) break;
    for (const queue::PoisonMessage& message : page) Show(message, &others);
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
