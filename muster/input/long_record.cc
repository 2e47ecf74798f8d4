// SPDX-License-Identifier: Apache-2.0
#include "muster/input/long_record.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/base/status.h"
#include "muster/input/format.h"

namespace muster::input {
namespace {

// Small, so that of a source that grows not much more is asked for than there is.
constexpr size_t kPieceBytes = size_t{64} << 10;

// Walks a record byte by byte: its pieces do not hold whole fields.
class LongWalk {
 public:
  enum class End { kNone, kRecord, kFault };

  explicit LongWalk(char delimiter) : delimiter_(delimiter) {}

  // Behind kRecord and kFault, nothing may follow.
  End Take(char byte) {
    switch (place_) {
      case Place::kFieldBegins:
        if (byte == '"') return GoTo(Place::kQuoted);
        return TakePlain(byte);
      case Place::kPlain:
        return TakePlain(byte);
      case Place::kQuoted:
        if (byte == '"') return GoTo(Place::kQuote);
        if (byte == '\n') ++newlines_;
        return End::kNone;
      case Place::kQuote:
        if (byte == '"') return GoTo(Place::kQuoted);  // it was doubled
        if (byte == '\r') return GoTo(Place::kCr);
        return byte == delimiter_ || byte == '\n' ? EndField(byte) : End::kFault;
      case Place::kCr:
        return byte == '\n' ? EndField(byte) : End::kFault;
    }
    return End::kFault;
  }

  // At the end of the source.
  End Finish() const { return place_ == Place::kQuoted || has_both() ? End::kFault : End::kRecord; }

  int64_t lines() const { return newlines_ + 1; }

 private:
  enum class Place { kFieldBegins, kPlain, kQuoted, kQuote, kCr };  // kQuote: it closes, or is half

  // A record of several lines has no plain quotes.
  bool has_both() const { return plain_quotes_ && newlines_ > 0; }

  End GoTo(Place place) {
    place_ = place;
    return End::kNone;
  }

  End TakePlain(char byte) {
    if (byte == delimiter_ || byte == '\n') return EndField(byte);
    plain_quotes_ |= byte == '"';
    return GoTo(Place::kPlain);
  }

  End EndField(char byte) {
    if (has_both()) return End::kFault;
    return byte == '\n' ? End::kRecord : GoTo(Place::kFieldBegins);
  }

  const char delimiter_;
  Place place_ = Place::kFieldBegins;
  bool plain_quotes_ = false;
  int64_t newlines_ = 0;  // in quotes
};

}  // namespace

absl::StatusOr<std::optional<LongRecord>> FindLongRecord(const ByteSource& source, uint64_t offset,
                                                         char delimiter) {
  LongWalk walk(delimiter);
  std::string piece(kPieceBytes, '\0');
  for (uint64_t bytes = 0; bytes < kMaxLongRecordBytes;) {
    MUSTER_ASSIGN_OR_RETURN(const size_t read,
                            source.Read(offset + bytes, piece.data(), piece.size()));
    LongWalk::End end = LongWalk::End::kNone;
    size_t at = 0;
    while (at < read && end == LongWalk::End::kNone) end = walk.Take(piece[at++]);
    bytes += at;
    if (end == LongWalk::End::kNone && read < piece.size()) end = walk.Finish();
    if (end == LongWalk::End::kFault) return std::nullopt;
    if (end == LongWalk::End::kRecord) return LongRecord{bytes, walk.lines()};
  }
  return std::nullopt;
}

}  // namespace muster::input
