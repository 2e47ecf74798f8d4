// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/limits.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::queue {
namespace {

constexpr size_t kMaxNameBytes = 63;
constexpr size_t kMinQueueNameBytes = 3;
constexpr size_t kMinAccountBytes = 1;

bool IsNameCharacter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
}

absl::Status ValidateName(absl::string_view what, absl::string_view name, size_t min_bytes) {
  const auto error = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(what, " '", name, "' ", why));
  };
  if (name.size() < min_bytes || name.size() > kMaxNameBytes) {
    return error(absl::StrCat("must have ", min_bytes, " to ", kMaxNameBytes, " characters"));
  }
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return error("may only have the characters a-z, 0-9 and -");
  }
  if (name.front() == '-' || name.back() == '-' || absl::StrContains(name, "--")) {
    return error("must not begin or end with a dash, nor have two in a row");
  }
  return absl::OkStatus();
}

absl::Status OutOfRange(absl::string_view what, absl::Duration value, absl::Duration min,
                        absl::Duration max) {
  return absl::InvalidArgumentError(absl::StrCat(what, " ", absl::FormatDuration(value),
                                                 " is outside ", absl::FormatDuration(min), " to ",
                                                 absl::FormatDuration(max)));
}

absl::Status TooMany(absl::string_view what, size_t value, size_t max) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", value, ", but at most ", max, " are allowed"));
}

}  // namespace

absl::Status ValidateQueueId(const QueueId& queue) {
  MUSTER_RETURN_IF_ERROR(ValidateName("account", queue.account, kMinAccountBytes));
  return ValidateName("queue name", queue.name, kMinQueueNameBytes);
}

absl::Status ValidateMetadata(const Metadata& metadata) {
  size_t bytes = 0;
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return absl::InvalidArgumentError("a metadata name is empty");
    bytes += name.size() + value.size();
  }
  if (bytes > kMaxMetadataBytes) return TooMany("bytes of metadata", bytes, kMaxMetadataBytes);
  const auto named = [&metadata](absl::string_view name) {
    return std::find_if(metadata.begin(), metadata.end(), [name](const auto& pair) {
      return absl::EqualsIgnoreCase(pair.first, name);
    });
  };
  const auto visibility = named(kVisibilityName);
  if (visibility != metadata.end() && !VisibilityOf(metadata).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kVisibilityName, " '", visibility->second, "' is no duration from ",
        absl::FormatDuration(kMinReceiveVisibility), " to ", absl::FormatDuration(kMaxVisibility)));
  }
  const auto window = named(kDedupWindowName);
  if (window != metadata.end() && !DedupWindowOf(metadata).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(kDedupWindowName, " '", window->second,
                                                   "' is no number of seconds from 1 to ",
                                                   absl::ToInt64Seconds(kMaxDedupWindow)));
  }
  return absl::OkStatus();
}

absl::Status ValidateNewMessage(const NewMessage& message) {
  if (message.body.size() > kMaxBodyBytes) {
    return TooMany("bytes of a message body", message.body.size(), kMaxBodyBytes);
  }
  if (message.dedup_id.size() > kMaxDedupIdBytes) {
    return TooMany("bytes of a dedup id", message.dedup_id.size(), kMaxDedupIdBytes);
  }
  if (message.delay < absl::ZeroDuration() || message.delay > kMaxDelay) {
    return OutOfRange("delay", message.delay, absl::ZeroDuration(), kMaxDelay);
  }
  if (message.ttl < absl::Microseconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ttl ", absl::FormatDuration(message.ttl), " is not positive"));
  }
  if (message.delay >= message.ttl) {
    return absl::InvalidArgumentError(absl::StrCat("delay ", absl::FormatDuration(message.delay),
                                                   " is not below the ttl ",
                                                   absl::FormatDuration(message.ttl)));
  }
  return absl::OkStatus();
}

absl::Status ValidatePut(absl::Span<const NewMessage> messages) {
  if (messages.size() > static_cast<size_t>(kMaxPutMessages)) {
    return TooMany("messages in one put", messages.size(), kMaxPutMessages);
  }
  size_t bytes = 0;
  for (const NewMessage& message : messages) {
    MUSTER_RETURN_IF_ERROR(ValidateNewMessage(message));
    bytes += message.body.size();
  }
  if (bytes > kMaxPutBytes) return TooMany("bytes in one put", bytes, kMaxPutBytes);
  return absl::OkStatus();
}

absl::Status ValidateReceiveCount(int max_messages, const Traits& traits) {
  if (max_messages < 1 || max_messages > traits.max_receive) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_messages ", max_messages, " is outside 1 to ", traits.max_receive));
  }
  return absl::OkStatus();
}

absl::Status ValidateReceive(const ReceiveOptions& options, const Traits& traits) {
  MUSTER_RETURN_IF_ERROR(ValidateReceiveCount(options.max_messages, traits));
  if (options.visibility < kMinReceiveVisibility || options.visibility > kMaxVisibility) {
    return OutOfRange("visibility", options.visibility, kMinReceiveVisibility, kMaxVisibility);
  }
  if (options.holder.size() > kMaxHolderBytes) {
    return TooMany("bytes of a holder", options.holder.size(), kMaxHolderBytes);
  }
  return absl::OkStatus();
}

absl::Status ValidateWait(absl::Duration patience) {
  if (patience < kMinReceiveVisibility || patience > kMaxWait) {
    return OutOfRange("patience", patience, kMinReceiveVisibility, kMaxWait);
  }
  return absl::OkStatus();
}

absl::Status ValidateVisibilityUpdate(absl::Duration visibility) {
  if (visibility < absl::ZeroDuration() || visibility > kMaxVisibility) {
    return OutOfRange("visibility", visibility, absl::ZeroDuration(), kMaxVisibility);
  }
  return absl::OkStatus();
}

absl::Status ValidateUpdate(const UpdateRequest& request) {
  MUSTER_RETURN_IF_ERROR(ValidateVisibilityUpdate(request.visibility));
  if (request.refund_attempt && !request.attempt_ended) {
    return absl::InvalidArgumentError("refund_attempt needs attempt_ended");
  }
  if (request.body.has_value() && request.body->size() > kMaxBodyBytes) {
    return TooMany("bytes of a message body", request.body->size(), kMaxBodyBytes);
  }
  return absl::OkStatus();
}

absl::Status ValidateSettle(size_t count) {
  if (count > static_cast<size_t>(kMaxSettle)) {
    return TooMany("messages in one call", count, kMaxSettle);
  }
  return absl::OkStatus();
}

absl::Status ValidateListPoison(int max_messages) {
  if (max_messages < 1 || max_messages > kMaxListPoison) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_messages ", max_messages, " is outside 1 to ", kMaxListPoison));
  }
  return absl::OkStatus();
}

absl::Status ValidateFindPoison(size_t count) {
  if (count > static_cast<size_t>(kMaxFindPoison)) {
    return TooMany("messages to look up", count, kMaxFindPoison);
  }
  return absl::OkStatus();
}

absl::Status ValidateScan(int max) {
  if (max < 1 || max > kMaxScan) {
    return absl::InvalidArgumentError(absl::StrCat("max ", max, " is outside 1 to ", kMaxScan));
  }
  return absl::OkStatus();
}

absl::Status ValidateMove(absl::Span<const MoveRequest> requests) {
  MUSTER_RETURN_IF_ERROR(ValidateSettle(requests.size()));
  for (const MoveRequest& request : requests) {
    if (request.receipt.empty() == request.message_id.empty()) {
      return absl::InvalidArgumentError("a move needs either a receipt or a message id");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateListQueues(const ListQueuesRequest& request) {
  if (request.max_results < 1 || request.max_results > kMaxListQueues) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_results ", request.max_results, " is outside 1 to ", kMaxListQueues));
  }
  return absl::OkStatus();
}

std::string CutReason(absl::string_view reason) {
  if (reason.size() <= kMaxReasonBytes) return std::string(reason);
  size_t end = kMaxReasonBytes;
  // Never cut inside a UTF-8 character: its continuation bytes are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  return std::string(reason.substr(0, end));
}

}  // namespace muster::queue
