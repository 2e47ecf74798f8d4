// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/grpc/grpc_handler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/channel.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/handler/grpc/caller.h"
#include "muster/rpc/address.h"
#include "muster/rpc/channel.h"

namespace muster::handler::grpc {
namespace {

class GrpcHandler final : public handler::Handler {
 public:
  explicit GrpcHandler(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    return caller_->Process(item, results);
  }

 private:
  const std::shared_ptr<Caller> caller_;  // with all other workers
};

// Items are a customer's data: what others on the way could read must be asked for.
absl::Status CheckPlaintext(const GrpcOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::Address address, rpc::ParseAddress(options.address));
  if (options.tls.has_value() || options.allow_plaintext || address.IsLoopback()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the handler at ", address.ToString(), " may be on another host, so calling it needs TLS ",
      "(--handler-tls-roots) or --allow-plaintext"));
}

// Makes the caller with the first handler. Thread-safe.
class CallerMaker {
 public:
  explicit CallerMaker(GrpcOptions options) : options_(std::move(options)) {}

  absl::StatusOr<std::shared_ptr<Caller>> Get(const handler::JobSchema& schema)
      ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    if (caller_ == nullptr) {
      MUSTER_RETURN_IF_ERROR(CheckPlaintext(options_));
      rpc::ChannelOptions channel_options;
      channel_options.tls = options_.tls;
      channel_options.retry_unavailable = false;
      MUSTER_ASSIGN_OR_RETURN(auto channel, rpc::OpenChannel(options_.address, channel_options));
      Watch(channel);
      caller_ = std::make_shared<Caller>(schema, options_, std::move(channel));
    }
    return caller_;
  }

 private:
  // Shows a server that is missing before the first item, and one that is back before the next
  // item: the probe keeps the connection up, without making a call.
  void Watch(const std::shared_ptr<::grpc::Channel>& channel) const {
    if (options_.health == nullptr) return;
    options_.health->SetProbe([channel, address = options_.address] {
      const bool fails =
          channel->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_TRANSIENT_FAILURE;
      return fails ? absl::StrCat("the handler at ", address, " cannot be connected to") : "";
    });
  }

  const GrpcOptions options_;
  base::Mutex mu_;
  std::shared_ptr<Caller> caller_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

handler::HandlerFactory GrpcHandlerFactory(GrpcOptions options) {
  auto maker = std::make_shared<CallerMaker>(std::move(options));
  return
      [maker](
          const handler::JobSchema& schema) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
        MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Caller> caller, maker->Get(schema));
        return std::make_unique<GrpcHandler>(std::move(caller));
      };
}

}  // namespace muster::handler::grpc
