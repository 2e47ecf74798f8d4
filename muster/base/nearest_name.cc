#include "muster/base/nearest_name.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/utf8.h"

namespace muster::base {
namespace {

// Letters to insert, drop, change or (neighbours) swap to make `b` of `a`.
size_t Slips(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(absl::string_view name, absl::Span<const std::string> names) {
  const std::string wanted = absl::AsciiStrToLower(name.substr(0, kMaxQuotedBytes));
  size_t least = std::max<size_t>(1, wanted.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : names) {
    const absl::string_view start = absl::string_view(candidate).substr(0, kMaxQuotedBytes);
    const size_t slips = Slips(wanted, absl::AsciiStrToLower(start));
    if (slips >= least || slips >= candidate.size()) continue;
    least = slips;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, absl::Span<const std::string> names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", Quoted(nearest), "?");
}

std::string ListNames(absl::Span<const std::string> names) {
  const absl::Span<const std::string> shown = names.subspan(0, kMaxListedNames);
  std::string list = absl::StrJoin(
      shown, ", ", [](std::string* out, const std::string& name) { out->append(Quoted(name)); });
  if (shown.size() < names.size()) {
    absl::StrAppend(&list, " and ", names.size() - shown.size(), " more");
  }
  return list;
}

std::string Quoted(absl::string_view text) {
  std::string shown;
  size_t at = 0;
  while (at < text.size()) {
    const size_t printable = PrintableUtf8Prefix(text.substr(at));
    const absl::string_view character = text.substr(at, std::max<size_t>(printable, 1));
    if (at + character.size() > kMaxQuotedBytes) break;
    absl::StrAppend(&shown, printable > 1 ? character : absl::CHexEscape(character));
    at += character.size();
  }
  return absl::StrCat("'", shown, at < text.size() ? "…'" : "'");
}

}  // namespace muster::base
