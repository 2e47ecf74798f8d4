// ReadHeader: what an input says of itself before its first record.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/input/byte_source.h"
#include "muster/input/format.h"
#include "muster/input/slice_reader.h"

namespace muster::input {

struct Header {
  // csv: where each of InputFormat::columns stands in a record, from 0. Empty for other formats.
  std::vector<int> positions;
  // csv with a header: its names, in order; every record must have as many fields.
  std::vector<std::string> fields;
  // Behind byte order mark and header: where the first slice may begin.
  SliceStart data;
};

// InvalidArgument, in words for the person who gave the input: it is not UTF-8 (a UTF-16 byte order
// mark, say), has no header where one is due, lacks a column, or names a wanted column twice. An
// input with a header and no records is fine, and so is an empty one that needs no header.
absl::StatusOr<Header> ReadHeader(const ByteSource& source, const InputFormat& format);

}  // namespace muster::input
