// SPDX-License-Identifier: Apache-2.0

// What the queue gateway stores as documents: the ACL of a queue and the properties of an account.
// A caller sends them in the same form.
#include <string>

#include "services/queue-gateway/operations/acl.h"
#include "services/queue-gateway/operations/service_properties.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue_gateway::operations;  // what is under test

// What is stored is read again, and written as it was.
void CheckAcl(absl::string_view document) {
  const auto policies = ParseAcl(document);
  if (!policies.ok()) return;
  Must(policies->size() <= kMaxPolicies, "there are few policies");
  const std::string written = WriteAcl(*policies);
  const auto again = ParseAcl(written);
  Must(again.ok(), "an ACL that was accepted can be read again");
  Must(WriteAcl(*again) == written, "an ACL comes back as it was set");
}

void CheckProperties(absl::string_view document) {
  const auto properties = ParseProperties(document, ServiceProperties());
  if (!properties.ok()) return;
  Must(properties->cors.size() <= kMaxCorsRules, "there are few CORS rules");
  const std::string written = WriteProperties(*properties);
  const auto again = ParseProperties(written, ServiceProperties());
  Must(again.ok(), "properties that were accepted can be read again");
  Must(WriteProperties(*again) == written, "properties come back as they were set");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::fuzz::CheckAcl(muster::fuzz::Text(data, size));
  muster::fuzz::CheckProperties(muster::fuzz::Text(data, size));
  return 0;
}
