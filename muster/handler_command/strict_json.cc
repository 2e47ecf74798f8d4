#include "muster/handler_command/strict_json.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/handler/printable.h"

namespace muster::handler_command {
namespace {

using nlohmann::json;

constexpr size_t kShownNameBytes = 64;

// Looks at brackets only, before the parser does: it keeps a pointer for each that is open.
bool NestsDeeperThan(int max_depth, absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > max_depth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// Finds what the parser lets pass: it keeps the last of two members of the same name.
class DuplicateFinder {
 public:
  explicit DuplicateFinder(int max_depth) : names_(static_cast<size_t>(max_depth) + 1) {}

  void See(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) {
      names_[static_cast<size_t>(depth) + 1].clear();
    } else if (event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names_[static_cast<size_t>(depth)].insert(name).second) duplicate_ = name;
    }
  }

  const std::optional<std::string>& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> names_;  // of the object that is open at each depth
  std::optional<std::string> duplicate_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text, int max_depth) {
  if (NestsDeeperThan(max_depth, text)) {
    return absl::InvalidArgumentError("brackets nest too deeply");
  }
  DuplicateFinder finder(max_depth);
  const auto see = [&finder](int depth, json::parse_event_t event, json& parsed) {
    finder.See(depth, event, parsed);
    return true;
  };
  json value = json::parse(text.begin(), text.end(), see, /*allow_exceptions=*/false);
  if (value.is_discarded()) return absl::InvalidArgumentError("not JSON in UTF-8");
  if (finder.duplicate()) {
    return absl::InvalidArgumentError(
        absl::StrCat("member \"", handler::Printable(*finder.duplicate(), kShownNameBytes),
                     "\" is there twice"));
  }
  return value;
}

}  // namespace muster::handler_command
