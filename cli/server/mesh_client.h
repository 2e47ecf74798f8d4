// SPDX-License-Identifier: Apache-2.0

// MeshClient: connects commands to the services of a mesh.
#pragma once

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cli/output/environment.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch_service.pb.h"
#include "muster/v1/job_service.pb.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

// Whether to call the instance: not if it leaves, is standby or has no address.
bool Serves(const v1::Instance& instance);

// An instance that serves calls.
struct Peer {
  std::string address;
  std::string program;  // the program expected there: "muster-initiator"
  std::shared_ptr<grpc::Channel> channel;
};

// Rewrites the status of a call to `peer` for people: names the peer if it did not answer or is
// another program. Commands do not cancel calls themselves, so Cancelled is the server's doing and
// becomes Unavailable: try again.
absl::Status Explain(const absl::Status& status, const Peer& peer);

// Thread-safe.
class MeshClient {
 public:
  template <typename Stub, typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // Connects with the first call. InvalidArgument: an address or a file of TLS is wrong.
  static absl::StatusOr<std::unique_ptr<MeshClient>> Open(const ServerOptions& options);
  // The same for a command that needs a server. InvalidArgument, too, if none is named; `what` says
  // what the server is for: "jobs are kept by a server".
  static absl::StatusOr<std::unique_ptr<MeshClient>> Open(const CommonOptions& options,
                                                          absl::string_view what);

  // Serves batches, jobs and queues.
  const std::shared_ptr<grpc::Channel>& initiator() const { return initiator_.channel; }
  // The controller, which serves the report. Unavailable: the initiator knows of none.
  absl::StatusOr<Peer> Controller() const;
  // The live instances that the initiator knows, with their last heartbeats; of one role, or of
  // all.
  absl::StatusOr<std::vector<v1::Instance>> Instances(v1::Role role) const;
  // The same, and whether the initiator receives heartbeats at all.
  absl::StatusOr<v1::ListInstancesResponse> ListInstances(v1::Role role) const;
  // The jobs that the initiator keeps; all in order of name.
  absl::StatusOr<v1::Job> Job(const std::string& name) const;
  absl::StatusOr<std::vector<v1::Job>> Jobs() const;
  // The peer at `address`, where `program` should run. Connects with the first call.
  // InvalidArgument: `address` is malformed.
  absl::StatusOr<Peer> Connect(const std::string& address, const std::string& program) const;

  const ServerOptions& options() const { return options_; }
  const rpc::ChannelOptions& channel_options() const { return channel_options_; }

  // From now on no call lasts beyond `deadline`, a monotonic time of `clock`, but for half a second
  // in which a call that begins late may still tell how things are. Call it before others use the
  // client. `clock` is not owned.
  void EndCallsBy(absl::Duration deadline, const base::Clock* clock) {
    deadline_ = deadline;
    clock_ = clock;
  }

  // How a call to the initiator ended, for people.
  absl::Status Explained(const absl::Status& status) const { return Explain(status, initiator_); }

  // One unary call to `peer`: Call(&Stub::Method, request, peer). Its status is for people
  // (Explain). `timeout` holds unless the options set one.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Stub, Request, Response> method,
                                const std::type_identity_t<Request>& request, const Peer& peer,
                                absl::Duration timeout = rpc::kDefaultCallTimeout) const {
    Stub stub(peer.channel);
    rpc::CallContext context(Bounded(options_.timeout.value_or(timeout)));
    Response response;
    MUSTER_RETURN_IF_ERROR(
        Explain(rpc::FromGrpc((stub.*method)(&context, request, &response)), peer));
    return response;
  }
  // To the initiator.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Stub, Request, Response> method,
                                const std::type_identity_t<Request>& request) const {
    return Call(method, request, initiator_);
  }
  // The same, within `timeout` unless the options set one.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> CallFor(Method<Stub, Request, Response> method,
                                   const std::type_identity_t<Request>& request,
                                   absl::Duration timeout) const {
    return Call(method, request, initiator_, timeout);
  }
  // The same, but `limit` bounds the call even where the options allow more: a caller whose own
  // time is up has no more to give.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> CallAtMost(Method<Stub, Request, Response> method,
                                      const std::type_identity_t<Request>& request,
                                      absl::Duration limit) const {
    Stub stub(initiator_.channel);
    rpc::CallContext context(Bounded(std::min(options_.timeout.value_or(limit), limit)));
    Response response;
    MUSTER_RETURN_IF_ERROR(Explained(rpc::FromGrpc((stub.*method)(&context, request, &response))));
    return response;
  }
  // Calls a List method of the initiator page by page, and hands each page to `take`.
  template <typename Stub, typename Request, typename Response, typename Take>
  absl::Status CallForPages(Method<Stub, Request, Response> method,
                            std::type_identity_t<Request> request, const Take& take) const {
    request.set_page_size(kPageSize);
    do {
      MUSTER_ASSIGN_OR_RETURN(const Response response, Call(method, request));
      take(response);
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return absl::OkStatus();
  }

 private:
  static constexpr int kPageSize = 1000;  // the most that a service answers

  MeshClient(ServerOptions options, rpc::ChannelOptions channel_options)
      : options_(std::move(options)), channel_options_(std::move(channel_options)) {}

  // What EndCallsBy leaves of a call's `timeout`.
  absl::Duration Bounded(absl::Duration timeout) const;

  const ServerOptions options_;
  const rpc::ChannelOptions channel_options_;
  Peer initiator_;
  absl::Duration deadline_ = absl::InfiniteDuration();  // monotonic
  const base::Clock* clock_ = nullptr;                  // not owned; set with a deadline
};

// HandlerInventory: which versions of the handlers of jobs the processors of a mesh have.

// Thread-compatible.
class HandlerInventory {
 public:
  // Of `instances`, those count that are processors and do not leave.
  explicit HandlerInventory(absl::Span<const v1::Instance> instances);

  // Of the handler of `job`; empty: no processor has it.
  std::set<std::string> VersionsOf(const std::string& job) const;

 private:
  std::map<std::string, std::set<std::string>> versions_;  // by job
};

// ParallelMap: asks many peers at the same time, so that a slow one does not delay the others.

// The answers of `ask` for each element of `whom`, in the same order. Runs one thread for each
// element: a mesh has at most hundreds of instances (bus::kMaxInstances).
template <typename Whom, typename Ask>
auto ParallelMap(const std::vector<Whom>& whom, const Ask& ask) {
  using Answer = std::invoke_result_t<Ask, const Whom&>;
  std::vector<std::future<Answer>> asked;
  asked.reserve(whom.size());
  for (const Whom& one : whom) {
    asked.push_back(std::async(std::launch::async, [&ask, &one] { return ask(one); }));
  }
  std::vector<Answer> answers;
  answers.reserve(whom.size());
  for (std::future<Answer>& answer : asked) answers.push_back(answer.get());
  return answers;
}

}  // namespace muster::cli
