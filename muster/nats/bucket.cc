#include "muster/nats/bucket.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster::nats {
namespace {

constexpr size_t kMaxBucketBytes = 128;

bool IsBucketChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

}  // namespace

absl::Status ValidateBucket(absl::string_view bucket) {
  if (!bucket.empty() && bucket.size() <= kMaxBucketBytes &&
      std::all_of(bucket.begin(), bucket.end(), IsBucketChar)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("bucket '", absl::CHexEscape(bucket),
                                                 "' is not 1 to ", kMaxBucketBytes,
                                                 " letters, digits, _ and -"));
}

}  // namespace muster::nats
