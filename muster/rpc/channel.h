// SPDX-License-Identifier: Apache-2.0

// The client's side: channels that are set up as muster's servers expect it, and calls that end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/tls.h"

namespace muster::rpc {

struct ChannelOptions {
  std::optional<TlsFiles> tls;  // nullopt: plaintext
  // The name that the server's certificate must have; empty: the address's host.
  std::string server_name;
  // Tries a call again, up to kMaxCallAttempts times in some seconds and within its deadline, when
  // it is answered Unavailable, and on no other status. Every RPC of muster can be repeated. The
  // one that sends a stream, BatchService.Submit, is tried again by its callers alone.
  bool retry_unavailable = true;
};

// A channel to HOST:PORT. It connects with its first call, and again whenever it must: a server
// that is not there is the call's Unavailable, not an error here. InvalidArgument: the address or
// a file of `options.tls` is wrong.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(absl::string_view address,
                                                           const ChannelOptions& options = {});

// The context of one unary call, which ends after `timeout` at the latest: a call without a
// deadline waits for ever when its server hangs. Streams choose their own.
class CallContext final : public grpc::ClientContext {
 public:
  explicit CallContext(absl::Duration timeout = kDefaultCallTimeout);
};

}  // namespace muster::rpc
