#include "muster/input/csv_fields.h"

#include <algorithm>

#include "muster/input/csv_record.h"

namespace muster::input {
namespace {

absl::string_view Unquote(absl::string_view quoted, char** room) {
  if (quoted.find('"') == absl::string_view::npos) return quoted;
  const absl::string_view plain(*room, UnescapeQuotes(quoted, *room));
  *room += plain.size();
  return plain;
}

}  // namespace

void SplitCsvFields(absl::string_view record, char delimiter, char** room,
                    std::vector<absl::string_view>* fields) {
  size_t at = 0;
  while (true) {
    size_t end;
    if (at < record.size() && record[at] == '"') {
      const size_t close = FindClosingQuote(record, at + 1);
      fields->push_back(Unquote(record.substr(at + 1, close - at - 1), room));
      end = close + 1;
    } else {
      end = std::min(record.find(delimiter, at), record.size());
      fields->push_back(record.substr(at, end - at));
    }
    if (end >= record.size()) return;
    at = end + 1;
  }
}

}  // namespace muster::input
