// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/channel.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "muster/base/status.h"
#include "muster/rpc/address.h"
#include "muster/rpc/grpc_log.h"

namespace muster::rpc {
namespace {

// For all methods of all services but two. gRPC spreads the waits at random.
//
// The record of a Call that is tried again may be counted twice.
//
// Submit sends several messages. When a server refuses it while the client sends them, gRPC 1.51
// sometimes sends only the first one again, and the call hangs until the server ends it.
std::string RetryConfig() {
  return absl::StrCat(R"({"methodConfig": [
      {"name": [{"service": "muster.v1.BatchService", "method": "Submit"},
                {"service": "muster.v1.CallService", "method": "Call"}]},
      {"name": [{}], "retryPolicy": {"maxAttempts": )",
                      kMaxCallAttempts,
                      R"(, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
                           "retryableStatusCodes": ["UNAVAILABLE"]}}]})");
}

grpc::ChannelArguments ArgumentsFor(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTime)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout)));
  // gRPC's own waits grow to two minutes, in which a server that is back is not noticed.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kMaxReconnectWait)));
  if (options.retry_unavailable) {
    arguments.SetServiceConfigJSON(RetryConfig());
  } else {
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  }
  if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
  return arguments;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(absl::string_view address,
                                                           const ChannelOptions& options) {
  PrepareGrpc();
  MUSTER_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(credentials, ChannelCredentials(*options.tls));
  }
  return grpc::CreateCustomChannel(parsed.ToString(), credentials, ArgumentsFor(options));
}

CallContext::CallContext(absl::Duration timeout) {
  set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

}  // namespace muster::rpc
