// SPDX-License-Identifier: Apache-2.0
#include "muster/input/json_members.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/text.h"

namespace muster::input {
namespace {

// A column that lies deeper is not looked for.
constexpr int kMaxPathDepth = 8;

struct SeenMembers {
  int records = 0;
  std::set<std::string> names;
};

// Also those of objects within, as "address.city".
void AddNames(const nlohmann::json& object, const std::string& path, int depth,
              std::set<std::string>* names) {
  for (const auto& [name, value] : object.items()) {
    const std::string at = absl::StrCat(path, name);
    names->insert(at);
    if (value.is_object() && depth < kMaxPathDepth) {
      AddNames(value, absl::StrCat(at, "."), depth + 1, names);
    }
  }
}

SeenMembers MembersOf(absl::string_view text, bool is_all) {
  SeenMembers members;
  while (!text.empty() && members.records < kLookedAtRecords) {
    const size_t end = text.find('\n');
    // The last line may go on behind the text.
    if (end == absl::string_view::npos && !is_all) break;
    const absl::string_view line = WithoutLineEnd(text.substr(0, end));
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    const auto record = nlohmann::json::parse(line.begin(), line.end(), /*cb=*/nullptr,
                                              /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    ++members.records;
    AddNames(record, "", 0, &members.names);
  }
  return members;
}

}  // namespace

absl::Status CheckMembers(const InputFormat& format, absl::string_view text, bool is_all) {
  const SeenMembers there = MembersOf(text, is_all);
  if (there.records == 0) return absl::OkStatus();
  std::vector<std::string> free(there.names.begin(), there.names.end());
  for (const ColumnSource& column : format.columns) {
    const auto* const taken = std::get_if<std::string>(&column.source);
    if (taken != nullptr) free.erase(std::remove(free.begin(), free.end(), *taken), free.end());
  }
  for (const ColumnSource& column : format.columns) {
    const auto* const wanted = std::get_if<std::string>(&column.source);
    if (wanted == nullptr || column.optional || there.names.contains(*wanted)) continue;
    const std::string meant = base::DidYouMean(*wanted, free);
    if (meant.empty() && there.records < kLookedAtRecords) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "none of the first ", there.records, " records has the member ", base::Quoted(*wanted),
        " of column ", base::Quoted(column.name), meant, " (their members: ",
        base::ListNames(std::vector<std::string>(there.names.begin(), there.names.end())),
        "; a member that few records have is named in `input.optional`)"));
  }
  return absl::OkStatus();
}

}  // namespace muster::input
