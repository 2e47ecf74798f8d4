// SPDX-License-Identifier: Apache-2.0

// muster queue list | stats | peek | poison | redrive | purge | held | release, and
// check (check_command.cc)
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/queue/commands.h"
#include "cli/queue/queue_admin.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/item/held_key_admin.h"
#include "muster/item/queue_names.h"
#include "muster/item/redrive.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/limits.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxRedriveRate = 1'000'000;  // as of the service

struct QueueOptions {
  CommonOptions common;
  std::string queue;
  int max = 10;
  std::string after;  // a message id, or empty: from the oldest
  int64_t redrive_max = INT64_MAX;
  int64_t redrive_rate = 0;  // messages a second; 0: as fast as the store can
  std::vector<std::string> messages;
  std::vector<std::string> keys;  // as HeldKeys prints them
  bool all_keys = false;
  std::string account = item::kLocalAccount;
  bool poison = false;
};

// "account/name", or the name alone for the account of a local data directory.
queue::QueueId ParseQueue(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  if (parts.second.empty()) return {item::kLocalAccount, text};
  return {parts.first, parts.second};
}

// Describes a message in words: a work item by its batch and index, any other body by its length.
std::string Describe(const std::string& body) {
  const absl::StatusOr<item::WorkItem> item = item::DecodeWorkItemHeader(body);
  if (!item.ok()) return absl::StrCat(body.size(), " bytes");
  return absl::StrCat("item ", item->identity.batch, "/", item->index, ", ", item->transactions,
                      " transactions from line ", item->first_line);
}

void PrintCounts(const std::vector<QueueCounts>& queues, const QueueOptions& options,
                 const Environment& environment) {
  Table table;
  table.AddColumn("queue");
  table.AddColumns({"ready", "in flight", "delayed", "poison", "in", "out", "expired",
                    "stale receipts", "oldest"},
                   Align::kRight);
  ordered_json json = ordered_json::array();
  for (const auto& [id, stats] : queues) {
    table.AddRow({id.ToString(), absl::StrCat(stats.ready), absl::StrCat(stats.in_flight),
                  absl::StrCat(stats.delayed), absl::StrCat(stats.poison),
                  absl::StrCat(stats.total_in), absl::StrCat(stats.total_out),
                  absl::StrCat(stats.total_expired), absl::StrCat(stats.stale_receipts),
                  absl::FormatDuration(absl::Trunc(stats.oldest_age, absl::Milliseconds(1)))});
    json.push_back({{"queue", id.ToString()},
                    {"ready", stats.ready},
                    {"in_flight", stats.in_flight},
                    {"delayed", stats.delayed},
                    {"poison", stats.poison},
                    {"total_in", stats.total_in},
                    {"total_out", stats.total_out},
                    {"total_expired", stats.total_expired},
                    {"stale_receipts", stats.stale_receipts},
                    {"oldest_age_seconds", absl::ToDoubleSeconds(stats.oldest_age)}});
  }
  PrintRows(table, json, options.common, environment);
}

absl::Status List(const QueueOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<QueueCounts> queues, admin->List(options.account));
  PrintCounts(queues, options, environment);
  return absl::OkStatus();
}

absl::Status Stats(const QueueOptions& options, const Environment& environment) {
  const queue::QueueId id = ParseQueue(options.queue);
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, admin->Stats(id));
  PrintCounts({{id, stats}}, options, environment);
  return absl::OkStatus();
}

absl::Status Peek(const QueueOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::Message> messages,
                          admin->Peek(ParseQueue(options.queue), options.max));
  Table table;
  table.AddColumns({"message", "put", "received", "attempts", "content"});
  ordered_json json = ordered_json::array();
  for (const queue::Message& message : messages) {
    const std::string content = Describe(message.body);
    table.AddRow({message.message_id, Rfc3339(message.insertion_time),
                  absl::StrCat(message.dequeue_count), absl::StrCat(message.attempts), content});
    json.push_back({{"message", message.message_id},
                    {"put", Rfc3339(message.insertion_time)},
                    {"dequeue_count", message.dequeue_count},
                    {"attempts", message.attempts},
                    {"body_bytes", message.body.size()},
                    {"content", content}});
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status Poison(const QueueOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  // One more says whether there are more.
  MUSTER_ASSIGN_OR_RETURN(std::vector<queue::PoisonMessage> messages,
                          admin->Poison(ParseQueue(options.queue), options.after, options.max + 1));
  const bool more = messages.size() > static_cast<size_t>(options.max);
  if (more) messages.pop_back();
  Table table;
  table.AddColumns({"message", "given up", "attempts", "by", "content", "cause"});
  ordered_json json = ordered_json::array();
  for (const queue::PoisonMessage& message : messages) {
    const std::string content = Describe(message.body);
    table.AddRow({message.message_id, Rfc3339(message.cause.time),
                  absl::StrCat(message.cause.attempts), message.cause.holder, content,
                  message.cause.reason});
    json.push_back({{"message", message.message_id},
                    {"given_up", Rfc3339(message.cause.time)},
                    {"attempts", message.cause.attempts},
                    {"holder", message.cause.holder},
                    {"content", content},
                    {"cause", message.cause.reason}});
  }
  PrintRows(table, json, options.common, environment);
  if (more) {
    *environment.err << "muster: there are more: the same command with --after "
                     << messages.back().message_id << "\n";
  }
  return absl::OkStatus();
}

// A key on a terminal and on a command line: it may hold any bytes.
std::string Shown(const std::string& key) {
  return base::IsValidUtf8(key) ? absl::Utf8SafeCHexEscape(key) : absl::CHexEscape(key);
}

absl::StatusOr<item::HeldKeyRequest> ParseKeys(const QueueOptions& options) {
  item::HeldKeyRequest request;
  request.queue = ParseQueue(options.queue);
  for (const std::string& shown : options.keys) {
    std::string why;
    if (!absl::CUnescape(shown, &request.keys.emplace_back(), &why)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--key ", shown, ": ", why, "; name it as `muster queue held ",
                       options.queue, "` does, where a backslash is two"));
    }
  }
  return request;
}

ordered_json JsonOf(const item::HeldKeyView& view) {
  ordered_json json = {{"key", Shown(view.held.key)},
                       {"batch", view.held.batch},
                       {"item", view.held.item},
                       {"since", Rfc3339(view.held.since)},
                       {"message", view.message_id}};
  json["cause"] = view.cause.reason;
  return json;
}

absl::Status Held(const QueueOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<item::HeldKeyView> views,
                          admin->Held(ParseQueue(options.queue)));
  Table table;
  table.AddColumns({"key", "item", "since", "message", "cause"});
  ordered_json json = ordered_json::array();
  for (const item::HeldKeyView& view : views) {
    const bool is_redriven = view.message_id.empty();
    table.AddRow({Shown(view.held.key), absl::StrCat(view.held.batch, "/", view.held.item),
                  Rfc3339(view.held.since), OrDash(view.message_id),
                  is_redriven ? "redriven: it waits or is at work" : view.cause.reason});
    json.push_back(JsonOf(view));
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

absl::Status Release(const QueueOptions& options, const Environment& environment) {
  if (options.keys.empty() && !options.all_keys) {
    return absl::InvalidArgumentError("which keys? --key names them, --all takes all");
  }
  MUSTER_ASSIGN_OR_RETURN(const item::HeldKeyRequest request, ParseKeys(options));
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<item::HeldKeyView> released, admin->Release(request));
  ordered_json json = ordered_json::array();
  for (const item::HeldKeyView& view : released) json.push_back(JsonOf(view));
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "released: " << Counted(released.size(), "key") << " of "
                   << request.queue.ToString() << "\n";
  return absl::OkStatus();
}

void PrintRedriven(const item::RedriveSummary& summary, const QueueOptions& options,
                   const Environment& environment) {
  *environment.out << "redriven: " << Counted(static_cast<uint64_t>(summary.messages), "message");
  for (const uint64_t batch : summary.batches) {
    *environment.out << "\nbatch " << batch << " is open again";
    if (!options.common.server.named()) {
      *environment.out << ": run its job again to work on what was given up";
    }
  }
  for (const auto& [batch, why] : summary.kept) {
    *environment.out << "\n" << why << ": its messages stay poison";
  }
  *environment.out << "\n";
}

ordered_json JsonOf(const item::RedriveSummary& summary) {
  ordered_json json = {{"messages", summary.messages}, {"batches", summary.batches}};
  if (summary.kept_messages > 0) json["kept"] = summary.kept_messages;
  return json;
}

// The dead letters of held keys.
absl::Status RedriveKeys(const QueueOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const item::HeldKeyRequest request, ParseKeys(options));
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const item::HeldKeyRedrive redrive, admin->RedriveHeld(request));
  ordered_json json = JsonOf(redrive.summary);
  std::vector<std::string> without;
  for (const std::string& key : redrive.without_dead_letter) without.push_back(Shown(key));
  if (!without.empty()) json["without_dead_letter"] = without;
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  PrintRedriven(redrive.summary, options, environment);
  if (without.empty()) return absl::OkStatus();
  *environment.out << "without a dead letter, and still held: " << absl::StrJoin(without, ", ")
                   << "\n";
  return absl::OkStatus();
}

absl::Status Redrive(const QueueOptions& options, const Environment& environment) {
  if (!options.keys.empty() || options.all_keys) return RedriveKeys(options, environment);
  item::RedriveRequest request;
  request.queue = ParseQueue(options.queue);
  request.messages = options.messages;
  request.max = options.redrive_max;
  request.missing = item::Missing::kRefused;
  request.per_second = options.redrive_rate;
  request.clock = environment.clock;
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const item::RedriveSummary summary, admin->Redrive(request));
  if (!PrintIfStructured(JsonOf(summary), options.common, environment)) {
    PrintRedriven(summary, options, environment);
  }
  return absl::OkStatus();
}

absl::Status Purge(const QueueOptions& options, const Environment& environment) {
  const queue::QueueId id = ParseQueue(options.queue);
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenQueueAdmin(options.common, environment));
  // Messages that are no poison come and go meanwhile, so the store does not count how many it
  // deleted.
  ordered_json json = {{"queue", id.ToString()}, {"purged", options.poison ? "poison" : "queue"}};
  if (options.poison) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t purged, admin->PurgePoison(id));
    json["messages"] = purged;
  } else {
    MUSTER_RETURN_IF_ERROR(admin->Purge(id));
  }
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  if (options.poison) {
    *environment.out << "purged: " << Counted(json["messages"].get<uint64_t>(), "poison message")
                     << " of " << id.ToString() << "\n";
  } else {
    *environment.out << "purged: all messages of " << id.ToString()
                     << " but poison; an open batch puts its items again\n";
  }
  return absl::OkStatus();
}

// Which held keys; `all` is the flag for all of them.
std::pair<args::Option, args::Option> AddKeyOptions(CLI::App* command, const char* all,
                                                    QueueOptions* options) {
  const args::Option keys = args::Add(command, "--key", &options->keys,
                                      "Only these held keys, as `muster queue held` shows them");
  const args::Option all_keys =
      args::AddFlag(command, all, &options->all_keys, "All keys that are held").Excludes(keys);
  return {keys, all_keys};
}

void AddRedriveOptions(CLI::App* redrive, QueueOptions* options) {
  const args::Option messages =
      args::Add(redrive, "--message", &options->messages, "Only these messages");
  const args::Option most =
      args::Add(redrive, "--max", &options->redrive_max, "At most so many, oldest first")
          .Check(args::PositiveNumber())
          .Excludes(messages);
  const args::Option rate =
      args::Add(redrive, "--rate", &options->redrive_rate,
                "At most so many messages in each second; a stop of the command ends it, and the "
                "same command goes on")
          .Check(args::Range(1, kMaxRedriveRate))
          .Excludes(messages);
  const auto [keys, held] = AddKeyOptions(redrive, "--held", options);
  for (const args::Option one : {keys, held}) {
    one.Excludes(messages).Excludes(most).Excludes(rate);
  }
}

}  // namespace

void AddQueue(CLI::App* app, const Environment& environment) {
  CLI::App* const parent = args::AddSubcommand(app, "queue", "Look into queues");
  args::RequireSubcommand(parent);
  const auto options = std::make_shared<QueueOptions>();
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    CLI::App* const command =
        AddCommand(parent, name, about, environment, [options, verb, &environment] {
          const absl::Status status = verb(*options, environment);
          // Messages and keys that are not there are not in that list.
          return options->messages.empty() && options->keys.empty()
                     ? WithListHint(status, "muster queue list", options->common)
                     : status;
        });
    AddDataDirOrServer(command, &options->common);
    AddOutput(command, &options->common);
    return command;
  };
  args::Add(add_verb("list", "All queues with their counts", List), "--account", &options->account,
            "Whose queues")
      .CaptureDefaultStr();
  const auto add_for_one = [&](const char* name, const char* about, auto verb) {
    CLI::App* const command = add_verb(name, about, verb);
    args::Add(command, "QUEUE", &options->queue, "A queue as `muster queue list` names it")
        .Required();
    return command;
  };
  add_for_one("stats", "The counts of one queue", Stats);
  args::Add(add_for_one("peek", "What is ready, without taking it", Peek), "--max", &options->max,
            "Messages to show")
      .CaptureDefaultStr()
      .Check(args::Range(1, queue::kMaxReceive));
  CLI::App* const poison =
      add_for_one("poison", "What was given up, and why; the oldest first", Poison);
  args::Add(poison, "--max", &options->max, "Messages to show")
      .CaptureDefaultStr()
      .Check(args::Range(1, queue::kMaxListPoison));
  args::Add(poison, "--after", &options->after, "Go on there, as the list before said at its end")
      .TypeName("MESSAGE");
  AddRedriveOptions(add_for_one("redrive", "Give poison messages another chance", Redrive),
                    options.get());
  add_for_one("held", "Keys that are held behind a dead letter, the longest held first", Held);
  AddKeyOptions(add_for_one("release", "Let held keys go on behind their dead letters", Release),
                "--all", options.get());
  args::AddFlag(
      add_for_one(
          "purge",
          "Delete all messages of a queue, leased ones too, but not its poison; open batches "
          "put their items again",
          Purge),
      "--poison", &options->poison, "Only its poison, for good: those items stay dead-lettered");
  AddCheck(parent, environment);
}

}  // namespace muster::cli
