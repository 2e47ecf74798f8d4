// SPDX-License-Identifier: Apache-2.0

// A request, in fields that end at the byte 1: the method, the path, then headers (lower-case
// names, from the first letter on) and parameters ("?name=value").
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "services/queue-gateway/auth/canonical.h"
#include "services/queue-gateway/auth/shared_key.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue_gateway::auth;  // what is under test

using Field = std::pair<std::string, std::string>;

SignedRequest RequestOf(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\1');
  SignedRequest request;
  request.account = "sally";
  request.method = parts[0];
  request.raw_path = parts.size() > 1 ? parts[1] : "";
  request.is_secondary = absl::StartsWith(request.raw_path, "/sally-secondary");
  for (size_t i = 2; i < parts.size(); ++i) {
    absl::string_view part = parts[i];
    const bool is_parameter = absl::ConsumePrefix(&part, "?");
    Field field = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (is_parameter) {
      request.query.push_back(std::move(field));
    } else {
      absl::AsciiStrToLower(&field.first);
      request.headers.push_back(std::move(field));
    }
  }
  return request;
}

void CheckForms(const SignedRequest& request, Scheme scheme) {
  const std::vector<std::string> texts = StringsToSign(request, scheme);
  Must(!texts.empty() && texts.size() <= kMaxStringsToSign, "there are a few forms");
}

// Each parameter takes one line, so that none can look like two.
void CheckParameters(const SignedRequest& request) {
  if (!CheckUnambiguous(request).ok()) return;
  std::set<std::string> names;
  for (const auto& [name, value] : request.query) names.insert(absl::AsciiStrToLower(name));
  const auto path_lines = std::count(request.raw_path.begin(), request.raw_path.end(), '\n');
  for (const std::string& form : CanonicalResources(request, true)) {
    const auto lines = std::count(form.begin(), form.end(), '\n') - path_lines;
    Must(lines == static_cast<std::ptrdiff_t>(names.size()), "a parameter is one line");
  }
}

void CheckHeaders(const SignedRequest& request) {
  std::set<std::string> names;
  for (const auto& [name, value] : request.headers) {
    if (absl::StartsWith(name, "x-ms-")) names.insert(name);
  }
  const bool is_plain = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find('\n') == std::string::npos;
  });
  for (const std::string& form : CanonicalHeaders(request)) {
    const auto lines = std::count(form.begin(), form.end(), '\n');
    Must(!is_plain || lines <= static_cast<std::ptrdiff_t>(names.size()), "a header is one line");
  }
  for (const std::string& a : names) {
    Must(!CollatesBefore(a, a), "no name comes before itself");
    for (const std::string& b : names) {
      Must(a == b || CollatesBefore(a, b) != CollatesBefore(b, a), "two names have one order");
    }
  }
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const SignedRequest request = RequestOf(Text(data, size));
  CheckForms(request, Scheme::kSharedKey);
  CheckForms(request, Scheme::kSharedKeyLite);
  CheckParameters(request);
  CheckHeaders(request);
  return 0;
}
