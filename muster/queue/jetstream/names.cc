#include "muster/queue/jetstream/names.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "muster/base/fingerprint.h"

namespace muster::queue::jetstream {
namespace {

constexpr absl::string_view kStreamPrefix = "MUSTER_";

// Attempts are noted in so many slots of each queue, by sequence. More messages than that are never
// in flight (settings.h), so that a slot is rarely wanted by two.
constexpr uint64_t kAttemptSlots = 1 << 16;
constexpr uint64_t kAttemptPages = kAttemptSlots / kPageMessages;

std::string Dotted(absl::string_view what, const queue::QueueId& queue) {
  return absl::StrCat("muster.", what, ".", queue.account, ".", queue.name);
}

// The part of an id that names the queue, as a GUID of version 8 begins.
std::string IdHead(const queue::QueueId& queue) {
  const uint64_t sum = base::Fingerprint(queue.ToString()).high;
  return absl::StrFormat("%08x-%04x-8%03x", sum >> 32, sum >> 16 & 0xffff, sum & 0xfff);
}

}  // namespace

std::string StreamOf(const queue::QueueId& queue) {
  return absl::StrCat(kStreamPrefix, queue.account, "_", queue.name);
}

std::string SubjectOf(const queue::QueueId& queue) { return Dotted("queue", queue); }

std::string AsideStreamOf(const queue::QueueId& queue) {
  return absl::StrCat("MUSTER-ASIDE_", queue.account, "_", queue.name);
}

std::string MetadataSubjectOf(const queue::QueueId& queue) { return Dotted("metadata", queue); }

std::string PoisonSubjectOf(const queue::QueueId& queue, absl::string_view sequence) {
  return absl::StrCat(Dotted("poison", queue), ".", sequence);
}

std::string AttemptSubjectOf(const queue::QueueId& queue, uint64_t sequence) {
  return absl::StrCat(Dotted("attempts", queue), ".", sequence % kAttemptSlots);
}

std::string AttemptPageSubjectOf(const queue::QueueId& queue, uint64_t sequence) {
  return absl::StrCat(Dotted("attempts", queue), ".p", PageOf(sequence) % kAttemptPages);
}

std::string AttemptSubjectsOf(const queue::QueueId& queue) {
  return absl::StrCat(Dotted("attempts", queue), ".*");
}

std::optional<queue::QueueId> QueueOfStream(absl::string_view stream) {
  if (!absl::ConsumePrefix(&stream, kStreamPrefix)) return std::nullopt;
  const size_t cut = stream.find('_');
  if (cut == absl::string_view::npos) return std::nullopt;
  return queue::QueueId{std::string(stream.substr(0, cut)), std::string(stream.substr(cut + 1))};
}

std::string MessageIdOf(const queue::QueueId& queue, uint64_t sequence) {
  return absl::StrFormat("%s-8%03x-%012x", IdHead(queue), sequence >> 48,
                         sequence & ((uint64_t{1} << 48) - 1));
}

std::optional<uint64_t> SequenceOf(const queue::QueueId& queue, absl::string_view message_id) {
  const std::string head = absl::StrCat(IdHead(queue), "-8");
  uint64_t high = 0, low = 0;
  absl::string_view rest = message_id;
  if (!absl::ConsumePrefix(&rest, head) || rest.size() != 16 || rest[3] != '-' ||
      !absl::SimpleHexAtoi(rest.substr(0, 3), &high) ||
      !absl::SimpleHexAtoi(rest.substr(4), &low)) {
    return std::nullopt;
  }
  const uint64_t sequence = high << 48 | low;
  return MessageIdOf(queue, sequence) == message_id ? std::optional<uint64_t>(sequence)
                                                    : std::nullopt;
}

}  // namespace muster::queue::jetstream
