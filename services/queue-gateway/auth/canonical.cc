// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/canonical.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "muster/base/text.h"

namespace muster::queue_gateway::auth {

namespace {

constexpr absl::string_view kSecondarySuffix = "-secondary";

std::string HeaderOrEmpty(const SignedRequest& request, absl::string_view name) {
  return request.Header(name).value_or("");
}

bool IsVersionBefore(const SignedRequest& request, absl::string_view version) {
  return HeaderOrEmpty(request, "x-ms-version") < version;
}

void AddForm(std::string form, std::vector<std::string>* forms) {
  if (std::find(forms->begin(), forms->end(), form) == forms->end()) {
    forms->push_back(std::move(form));
  }
}

// What may stand in the Date line of the signed text. The rule is an empty line if x-ms-date has
// the date, but most clients sign the Date header that they send.
std::vector<std::string> DateForms(const SignedRequest& request) {
  std::vector<std::string> forms = {HeaderOrEmpty(request, "date")};
  if (request.Header("x-ms-date").has_value()) AddForm("", &forms);
  return forms;
}

std::string ContentLengthForm(const SignedRequest& request) {
  std::string length = HeaderOrEmpty(request, "content-length");
  if (length == "0" && !IsVersionBefore(request, "2015-02-21")) return "";
  return length;
}

}  // namespace

std::vector<std::string> SignedLines(const SignedRequest& request) {
  const std::string language = HeaderOrEmpty(request, "content-language");
  const std::string encoding = HeaderOrEmpty(request, "content-encoding");
  std::vector<std::string> openings = {absl::StrCat(language, "\n", encoding)};
  AddForm(absl::StrCat(encoding, "\n", language), &openings);
  std::vector<std::string> forms;
  for (const std::string& opening : openings) {
    for (const std::string& date : DateForms(request)) {
      forms.push_back(absl::StrCat(
          absl::StrJoin(
              {opening, ContentLengthForm(request), HeaderOrEmpty(request, "content-md5"),
               HeaderOrEmpty(request, "content-type"), date,
               HeaderOrEmpty(request, "if-modified-since"), HeaderOrEmpty(request, "if-match"),
               HeaderOrEmpty(request, "if-none-match"),
               HeaderOrEmpty(request, "if-unmodified-since"), HeaderOrEmpty(request, "range")},
              "\n"),
          "\n"));
    }
  }
  return forms;
}

std::vector<std::string> LiteLines(const SignedRequest& request) {
  std::vector<std::string> forms;
  for (const std::string& date : DateForms(request)) {
    forms.push_back(absl::StrCat(HeaderOrEmpty(request, "content-md5"), "\n",
                                 HeaderOrEmpty(request, "content-type"), "\n", date, "\n"));
  }
  return forms;
}

namespace {

// A header that was folded over lines (RFC 9110 §5.5) reads as with one blank for each fold.
std::string Unfold(absl::string_view value) {
  if (value.find_first_of("\r\n") == absl::string_view::npos) {
    return std::string(absl::StripAsciiWhitespace(value));
  }
  std::string unfolded;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\r' && value[i] != '\n') {
      unfolded += value[i];
      continue;
    }
    while (!unfolded.empty() && absl::ascii_isblank(unfolded.back())) unfolded.pop_back();
    while (i + 1 < value.size() && absl::ascii_isspace(value[i + 1])) ++i;
    unfolded += ' ';
  }
  return std::string(absl::StripAsciiWhitespace(unfolded));
}

std::string WithSingleBlanks(absl::string_view value) {
  std::string single;
  for (const char c : value) {
    if (!absl::ascii_isblank(c)) {
      single += c;
    } else if (single.empty() || single.back() != ' ') {
      single += ' ';
    }
  }
  return single;
}

using Named = std::vector<std::pair<std::string, std::string>>;

// The x-ms-* headers, each once, by the bytes of their names.
Named CollectHeaders(const SignedRequest& request) {
  std::map<std::string, std::string> values;
  for (const auto& [name, text] : request.headers) {
    if (!absl::StartsWith(name, "x-ms-")) continue;
    const std::string value = Unfold(text);
    const auto [known, is_new] = values.emplace(name, value);
    if (!is_new) absl::StrAppend(&known->second, ",", value);
  }
  if (IsVersionBefore(request, "2016-05-31")) {
    std::erase_if(values, [](const auto& header) { return header.second.empty(); });
  }
  return {values.begin(), values.end()};
}

// Whether WithSingleBlanks changes a value.
bool HasBlanksToSpare(const Named& headers) {
  return std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return absl::StrContains(header.second, '\t') || absl::StrContains(header.second, "  ");
  });
}

std::string HeaderLines(const Named& headers, bool with_single_blanks) {
  std::string lines;
  for (const auto& [name, value] : headers) {
    absl::StrAppend(&lines, name, ":", with_single_blanks ? WithSingleBlanks(value) : value, "\n");
  }
  return lines;
}

}  // namespace

std::vector<std::string> CanonicalHeaders(const SignedRequest& request) {
  const auto collates_before = [](const auto& a, const auto& b) {
    return CollatesBefore(a.first, b.first);
  };
  std::vector<Named> orders = {CollectHeaders(request)};
  if (!std::is_sorted(orders[0].begin(), orders[0].end(), collates_before)) {
    Named collated = orders[0];
    std::stable_sort(collated.begin(), collated.end(), collates_before);
    orders.push_back(std::move(collated));
  }
  std::vector<std::string> forms;
  for (const bool with_single_blanks : {false, true}) {
    if (with_single_blanks && !HasBlanksToSpare(orders[0])) break;
    for (const Named& headers : orders) AddForm(HeaderLines(headers, with_single_blanks), &forms);
  }
  return forms;
}

namespace {

std::string ParameterLines(const SignedRequest& request) {
  std::map<std::string, std::vector<std::string>> parameters;
  for (const auto& [name, value] : request.query) {
    parameters[absl::AsciiStrToLower(name)].push_back(value);
  }
  std::string lines;
  for (auto& [name, values] : parameters) {
    std::sort(values.begin(), values.end());
    absl::StrAppend(&lines, "\n", name, ":", absl::StrJoin(values, ","));
  }
  return lines;
}

std::string CompOnly(const SignedRequest& request) {
  for (const auto& [name, value] : request.query) {
    if (absl::EqualsIgnoreCase(name, "comp")) return absl::StrCat("?comp=", value);
  }
  return "";
}

}  // namespace

std::vector<std::string> CanonicalResources(const SignedRequest& request,
                                            bool with_all_parameters) {
  const std::string parameters = with_all_parameters ? ParameterLines(request) : CompOnly(request);
  const std::string path = request.raw_path.empty() ? "/" : request.raw_path;
  std::vector<std::string> forms = {absl::StrCat("/", request.account, path, parameters)};
  const std::string named = absl::StrCat("/", request.account);
  absl::string_view rest = path;
  if (request.is_secondary && absl::ConsumePrefix(&rest, absl::StrCat(named, kSecondarySuffix))) {
    AddForm(absl::StrCat(named, named, rest, parameters), &forms);
  }
  return forms;
}

absl::Status CheckUnambiguous(const SignedRequest& request) {
  for (const auto& [name, value] : request.query) {
    const bool is_plain = std::none_of(name.begin(), name.end(), absl::ascii_iscntrl) &&
                          std::none_of(value.begin(), value.end(), absl::ascii_iscntrl);
    if (!is_plain || absl::StrContains(name, ':')) {
      return absl::UnauthenticatedError(
          absl::StrCat("the parameter ", base::Quoted(name),
                       " has a control character, or a colon in its name, which cannot be signed"));
    }
  }
  for (const absl::string_view once : {"content-length", "date", "x-ms-date", "x-ms-version"}) {
    const auto count = std::count_if(request.headers.begin(), request.headers.end(),
                                     [&](const auto& header) { return header.first == once; });
    if (count > 1) {
      return absl::UnauthenticatedError(absl::StrCat("the header ", once, " is there twice"));
    }
  }
  return absl::OkStatus();
}

namespace {

// What characters of a header's name (RFC 9110's tokens, in lower case) weigh; 0: they count last.
constexpr auto kCollationWeights = [] {
  constexpr absl::string_view kOrder = "!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";
  std::array<unsigned char, 256> weights = {};
  for (size_t i = 0; i < kOrder.size(); ++i) {
    weights[static_cast<unsigned char>(kOrder[i])] = static_cast<unsigned char>(i + 1);
  }
  return weights;
}();

int CollationWeight(char c) { return kCollationWeights[static_cast<unsigned char>(c)]; }

// Removes what counts last from the front of `name`, and returns the weight that is there then; 0:
// at the end.
int NextWeight(absl::string_view* name) {
  while (!name->empty() && CollationWeight(name->front()) == 0) name->remove_prefix(1);
  return name->empty() ? 0 : CollationWeight(name->front());
}

}  // namespace

// Called for each two of thousands of headers before the caller is known: without an allocation.
bool CollatesBefore(absl::string_view a, absl::string_view b) {
  for (absl::string_view rest_a = a, rest_b = b;;) {
    const int weight_a = NextWeight(&rest_a);
    const int weight_b = NextWeight(&rest_b);
    if (weight_a != weight_b) return weight_a < weight_b;
    if (weight_a == 0) break;
    rest_a.remove_prefix(1);
    rest_b.remove_prefix(1);
  }
  // Only dashes and apostrophes are left to differ: the name with the earlier one comes later.
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at_b == b.end()) return false;
  if (at_a == a.end()) return true;
  const bool counts_last_a = CollationWeight(*at_a) == 0;
  const bool counts_last_b = CollationWeight(*at_b) == 0;
  if (counts_last_a && counts_last_b) return *at_a < *at_b;
  return counts_last_b;
}

std::string FormatHttpDate(absl::Time time) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", time, absl::UTCTimeZone());
}

}  // namespace muster::queue_gateway::auth
