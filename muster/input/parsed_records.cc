// SPDX-License-Identifier: Apache-2.0
#include "muster/input/parsed_records.h"

namespace muster::input {

void ParsedRecords::Reset(int width, size_t bytes) {
  columns = width;
  fields.clear();
  records.clear();
  rejected.clear();
  if (room_bytes < bytes) {
    room.reset(new char[bytes]);
    room_bytes = bytes;
  }
}

}  // namespace muster::input
