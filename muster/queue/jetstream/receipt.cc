#include "muster/queue/jetstream/receipt.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status_macros.h"

namespace muster::queue::jetstream {
namespace {

constexpr absl::string_view kPutPrefix = "put.";
// Enough to tell a receipt from other text; it is no secret.
constexpr size_t kSumBytes = 8;

std::string SumOf(const queue::QueueId& queue, absl::string_view content) {
  const uint64_t sum = base::Fingerprint(absl::StrCat(queue.ToString(), "\n", content)).low;
  return absl::StrCat(absl::Hex(sum, absl::kZeroPad16)).substr(0, kSumBytes);
}

queue::Receipt Seal(const queue::QueueId& queue, absl::string_view content) {
  return absl::WebSafeBase64Escape(absl::StrCat(SumOf(queue, content), content));
}

}  // namespace

absl::StatusOr<Delivery> ParseAckSubject(absl::string_view subject) {
  const std::vector<absl::string_view> tokens = absl::StrSplit(subject, '.');
  // 9 tokens; 11 or 12 with domain and account.
  const size_t first = tokens.size() == 9 ? 4 : 6;
  Delivery delivery;
  int64_t nanoseconds = 0;
  if (tokens.size() < 9 || tokens.size() == 10 || tokens[0] != "$JS" || tokens[1] != "ACK" ||
      !absl::SimpleAtoi(tokens[first], &delivery.deliveries) ||
      !absl::SimpleAtoi(tokens[first + 1], &delivery.sequence) ||
      !absl::SimpleAtoi(tokens[first + 3], &nanoseconds)) {
    return absl::InvalidArgumentError(absl::StrCat("'", subject, "' acknowledges no delivery"));
  }
  delivery.ack_subject = std::string(subject);
  delivery.stored = absl::FromUnixNanos(nanoseconds);
  return delivery;
}

queue::Receipt ReceiptOf(const queue::QueueId& queue, const Delivery& delivery) {
  return Seal(queue, delivery.ack_subject);
}

queue::Receipt ReceiptOfPut(const queue::QueueId& queue, uint64_t sequence) {
  return Seal(queue, absl::StrCat(kPutPrefix, sequence));
}

absl::StatusOr<ReadReceipt> ParseReceipt(const queue::QueueId& queue, absl::string_view receipt) {
  const absl::Status refused =
      absl::InvalidArgumentError(absl::StrCat("not a receipt of queue '", queue.ToString(), "'"));
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(receipt, &bytes) || bytes.size() <= kSumBytes) return refused;
  absl::string_view content = absl::string_view(bytes).substr(kSumBytes);
  if (SumOf(queue, content) != bytes.substr(0, kSumBytes)) return refused;
  ReadReceipt read;
  if (absl::ConsumePrefix(&content, kPutPrefix)) {
    read.of_put = true;
    if (!absl::SimpleAtoi(content, &read.delivery.sequence)) return refused;
    return read;
  }
  MUSTER_ASSIGN_OR_RETURN(read.delivery, ParseAckSubject(content));
  return read;
}

}  // namespace muster::queue::jetstream
