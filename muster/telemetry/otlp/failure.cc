// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace muster::telemetry {
namespace {

// What the status says, without the names of the library's classes.
absl::string_view CauseIn(absl::string_view logged) {
  for (const absl::string_view mark : {"error_message: \"", "failed: "}) {
    const size_t found = logged.find(mark);
    if (found != logged.npos) {
      return absl::StripSuffix(logged.substr(found + mark.size()), "\"");
    }
  }
  return logged;
}

// Of gRPC, about a server of HTTP/1, and about one of HTTP/2 that answers no gRPC.
bool IsOfHttpServer(absl::string_view cause) {
  return absl::StrContains(cause, "http1.x server") ||
         absl::StrContains(cause, "Received http2 header with status");
}

// Of OpenSSL, about an answer to its greeting that is none of TLS.
bool IsOfPlaintext(absl::string_view cause) {
  return absl::StrContains(cause, "wrong version number");
}

}  // namespace

std::string DescribeFailure(absl::string_view logged) {
  const absl::string_view cause = CauseIn(logged);
  if (IsOfPlaintext(cause)) {
    return absl::StrCat(
        "at the endpoint is no TLS, which https:// asks for: write http:// in "
        "OTEL_EXPORTER_OTLP_ENDPOINT (",
        cause, ")");
  }
  if (!IsOfHttpServer(cause)) return std::string(cause);
  return absl::StrCat(
      "at the endpoint is HTTP and no gRPC, which muster sends by: name the collector's port for "
      "gRPC (mostly 4317; 4318 is for HTTP) in OTEL_EXPORTER_OTLP_ENDPOINT (",
      cause, ")");
}

}  // namespace muster::telemetry
