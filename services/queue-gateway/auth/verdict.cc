// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/verdict.h"

#include "absl/strings/str_replace.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/limits.h"

namespace muster::queue_gateway::auth {

Verdict Refuse(errors::ErrorCode code, absl::string_view detail) {
  Verdict verdict;
  verdict.code = code;
  verdict.http_status = errors::InfoOf(code).http_status;
  verdict.detail = base::Printable(absl::StrReplaceAll(detail, {{"\n", "\\n"}}), kMaxDetailBytes);
  return verdict;
}

}  // namespace muster::queue_gateway::auth
