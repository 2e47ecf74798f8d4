// SPDX-License-Identifier: Apache-2.0

// KeyGroupReader: cuts an input into slices that each hold records of one key, for jobs that keep
// an order for each key.
//
//   input      a1 b1 a2 c1 b2 a3 │ b3 a4 …        windows: runs of whole records
//   slices     a1 a2 a3, b1 b2, c1 │ b3, a4, …    a key's records keep their order
//
// The slices of a window hold all its bytes, one after the other: as if the input had been written
// in their order, which gives each slice an offset of its own. A window is a function of the bytes
// and the limits alone, as a slice is (slice_reader.h): grouping again from its start gives the
// same slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/input/byte_source.h"
#include "muster/input/format.h"
#include "muster/input/record_parser.h"
#include "muster/input/slice_reader.h"

namespace muster::input {

// The longer a window, the more records a slice has; the shorter, the less memory a reader takes:
// up to four times this.
inline constexpr size_t kKeyWindowBytes = size_t{32} << 20;

// The records of one key in one window, or a part of them where they are too many for one slice.
struct KeyedSlice {
  // The text of the key's column; nullopt: the record cannot be read, and is to be rejected.
  std::optional<absl::string_view> key;
  uint64_t offset = 0;  // in the input as if it had been written in the order of the slices
  uint64_t length = 0;  // bytes, line ends included
  size_t first = 0;     // of KeyedWindow::records
  uint32_t transactions = 0;
  bool oversized = false;  // as Slice has it
};

struct KeyedWindow {
  struct Record {
    size_t begin = 0;  // in `text`
    size_t end = 0;
    int64_t line = 0;  // the physical line at which it begins
  };

  SliceStart start;                  // where grouping again begins
  SliceStart next;                   // what follows the window
  absl::string_view text;            // of the window
  base::MultilineRecords multiline;  // of its records
  std::vector<Record> records;       // slice after slice
  std::vector<KeyedSlice> slices;

  // The bytes of a slice that is not oversized.
  std::string TextOf(const KeyedSlice& slice) const;
  std::vector<int64_t> LinesOf(const KeyedSlice& slice) const;
};

// A record that a key cannot be found in has no key; one whose quotes do not work out is a slice of
// its own, since beside other records it might seem to end elsewhere. Not thread-safe.
class KeyGroupReader {
 public:
  // `source` is not owned. `column`: the key's place in format.columns. `limits` are those of a
  // slice; `window_bytes`: of a window, unless a single record is longer.
  KeyGroupReader(const ByteSource* source, const InputFormat& format, const Header& header,
                 int column, SliceLimits limits, SliceStart start,
                 size_t window_bytes = kKeyWindowBytes);

  // The next window, or nullptr at the end; valid until the next call. Errors as SliceReader::Next.
  absl::StatusOr<const KeyedWindow*> Next();

 private:
  struct Draft;  // a slice that grows

  void Group(const Slice& slice);
  // The records of the window with the number of the draft that each belongs to, in order.
  void FindRecords(const Slice& slice);
  std::vector<Draft> DraftSlices();
  bool StandsAlone(const KeyedWindow::Record& record) const;

  const bool is_csv_;
  const SliceLimits limits_;
  const RecordParser keys_;
  SliceReader windows_;
  ParsedRecords parsed_;
  std::vector<KeyedWindow::Record> in_order_;             // of the window
  std::vector<std::optional<absl::string_view>> key_of_;  // each of in_order_
  std::vector<uint32_t> draft_of_;                        // likewise
  KeyedWindow window_;
};

}  // namespace muster::input
