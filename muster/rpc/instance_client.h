// SPDX-License-Identifier: Apache-2.0

// InstanceClient: finds the instances of one role, keeps a stub of each, and asks them.
//
//   known addresses ──► ask one ──► its answer decides ──► the result
//                        ▲    ├──► another one may know more: ask on, perhaps where it points
//                        └────┴──► it is silent: ask on
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/circuit_breaker.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/status.h"

namespace muster::rpc {

// HOST:PORT of every instance of a role that is known now, the best one first.
using InstanceAddresses = std::function<absl::StatusOr<std::vector<std::string>>()>;

// Whether an answer is the result of the call.
struct Verdict {
  bool ask_on = false;
  // Asked next, if it was not asked before, whether it is known or not; empty: the next known one.
  std::string next = {};  // HOST:PORT
};

struct AskOptions {
  std::string first = {};  // HOST:PORT; asked first if it is known
  size_t most = 16;        // instances; a mesh has few of a role that is asked so
  // Of the call, however many it asks. A silent instance takes at most half of what is left, so
  // that time remains to ask another one.
  absl::Duration timeout = kDefaultCallTimeout;
};

// How a call ended.
struct Asked {
  std::optional<absl::Status> answer;  // nullopt: no answer decided
  std::string address;                 // of the instance that gave it
  size_t instances = 0;                // that were asked
  absl::Status silence;  // of the first that was silent, named; OK: each one gave an answer
};

// What InstanceClient is without the type of its stubs. Thread-safe.
class InstanceSet {
 public:
  using MakeStub = std::function<std::shared_ptr<void>(const std::shared_ptr<grpc::Channel>&)>;
  using Call = absl::FunctionRef<absl::Status(void* stub, absl::Duration timeout)>;
  using Judge = absl::FunctionRef<Verdict(const absl::Status& answer)>;

  InstanceSet(std::string role, InstanceAddresses addresses, ChannelOptions channel_options,
              MakeStub make_stub, base::Clock* clock);

  absl::StatusOr<Asked> Ask(const AskOptions& options, Call call, Judge judge)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Instance;

  // The known addresses; forgets the instances at others.
  absl::StatusOr<std::vector<std::string>> Known() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AskOne(const std::string& address, absl::Duration timeout, Call call)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<Instance>> Find(const std::string& address)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::string role_;
  const InstanceAddresses addresses_;
  const ChannelOptions channel_options_;
  const MakeStub make_stub_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  // By address. Shared with the calls under way.
  std::map<std::string, std::shared_ptr<Instance>> found_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe. Holds a connection to each instance that it has asked and that is still known. An
// instance that hangs costs its callers one timeout, and then nothing for a while (CircuitBreaker).
template <typename Service>
class InstanceClient {
 public:
  using Stub = typename Service::Stub;
  using Call = absl::FunctionRef<absl::Status(Stub& stub, absl::Duration timeout)>;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // `role` names an instance in errors: "controller". `clock` is not owned. The channel decides
  // whether a call that is Unavailable is tried again at the same instance.
  InstanceClient(std::string role, InstanceAddresses addresses, ChannelOptions channel_options,
                 base::Clock* clock = base::RealClock())
      : set_(
            std::move(role), std::move(addresses), std::move(channel_options),
            [](const std::shared_ptr<grpc::Channel>& channel) -> std::shared_ptr<void> {
              return std::make_shared<Stub>(channel);
            },
            clock) {}

  // Makes the call to one instance after the other until an answer decides. One that is
  // Unavailable, DeadlineExceeded or Cancelled (this client cancels no call) counts as silent, and
  // the next one is asked. Errors are those of the addresses.
  absl::StatusOr<Asked> Ask(const AskOptions& options, Call call, InstanceSet::Judge judge) {
    return set_.Ask(
        options,
        [call](void* stub, absl::Duration timeout) {
          return call(*static_cast<Stub*>(stub), timeout);
        },
        judge);
  }
  // The same for a unary call, whose answer is in `response` if it is OK.
  template <typename Request, typename Response>
  absl::StatusOr<Asked> Ask(const AskOptions& options, Method<Request, Response> method,
                            const Request& request, Response* response, InstanceSet::Judge judge) {
    return Ask(
        options,
        [&](Stub& stub, absl::Duration timeout) {
          CallContext context(timeout);
          Response answer;
          const absl::Status status = FromGrpc((stub.*method)(&context, request, &answer));
          if (status.ok()) *response = std::move(answer);
          return status;
        },
        judge);
  }

 private:
  InstanceSet set_;
};

}  // namespace muster::rpc
