// MeshClient: connects commands to the services of a mesh.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <optional>
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
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch_service.pb.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

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

// Connect and Call are thread-safe, the others are not.
class MeshClient {
 public:
  // Connects with the first call. InvalidArgument: an address or a file of TLS is wrong.
  static absl::StatusOr<std::unique_ptr<MeshClient>> Open(const ServerOptions& options);

  // Serves batches, jobs and queues.
  const std::shared_ptr<grpc::Channel>& initiator() const { return initiator_.channel; }
  // The controller, which serves the report. Unavailable: the initiator knows of none.
  absl::StatusOr<Peer> Controller();
  // The live instances that the initiator knows, with their last heartbeats; of one role, or of
  // all.
  absl::StatusOr<std::vector<v1::Instance>> Instances(v1::Role role);
  // The same, and whether the initiator receives heartbeats at all.
  absl::StatusOr<v1::ListInstancesResponse> ListInstances(v1::Role role);
  // The peer at `address`, where `program` should run. Connects with the first call.
  // InvalidArgument: `address` is malformed.
  absl::StatusOr<Peer> Connect(const std::string& address, const std::string& program) const;

  const ServerOptions& options() const { return options_; }
  const rpc::ChannelOptions& channel_options() const { return channel_options_; }

  // How a call to the initiator ended, for people.
  absl::Status Explained(const absl::Status& status) const { return Explain(status, initiator_); }

  // One unary call to `peer`: Call(*stub, &Stub::Method, request, &response, peer). Its status is
  // for people (Explain).
  template <typename Stub, typename Method, typename Request, typename Response>
  absl::Status Call(Stub& stub, Method method, const Request& request, Response* response,
                    const Peer& peer) const {
    return Call(stub, method, request, response, peer, rpc::kDefaultCallTimeout);
  }
  // The same with a default `timeout` of its own, which holds unless the options set one.
  template <typename Stub, typename Method, typename Request, typename Response>
  absl::Status Call(Stub& stub, Method method, const Request& request, Response* response,
                    const Peer& peer, absl::Duration timeout) const {
    rpc::CallContext context(options_.timeout.value_or(timeout));
    return Explain(rpc::FromGrpc((stub.*method)(&context, request, response)), peer);
  }
  // To the initiator.
  template <typename Stub, typename Method, typename Request, typename Response>
  absl::Status Call(Stub& stub, Method method, const Request& request, Response* response) const {
    return Call(stub, method, request, response, initiator_);
  }

 private:
  MeshClient(ServerOptions options, rpc::ChannelOptions channel_options)
      : options_(std::move(options)), channel_options_(std::move(channel_options)) {}

  const ServerOptions options_;
  const rpc::ChannelOptions channel_options_;
  Peer initiator_;
};

// JobClient: the jobs that an initiator keeps.

// Statuses are the service's. Not thread-safe.
class JobClient {
 public:
  explicit JobClient(std::unique_ptr<MeshClient> mesh);

  // `expected_revision`: what the job must be at; empty: it must not be there.
  absl::StatusOr<v1::ApplyJobResponse> Apply(const std::string& definition,
                                             const std::optional<std::string>& expected_revision);
  absl::StatusOr<v1::Job> Get(const std::string& name);
  // In order of name.
  absl::StatusOr<std::vector<v1::Job>> List();
  absl::Status Delete(const std::string& name);
  absl::StatusOr<v1::CheckJobResponse> Check(const std::string& definition);

 private:
  using Stub = v1::JobService::Stub;

  std::unique_ptr<MeshClient> mesh_;
  std::unique_ptr<Stub> stub_;
};

// HandlerInventory: which versions of the handlers of jobs the processors of a mesh have.

// Thread-compatible.
class HandlerInventory {
 public:
  // Of `instances`, those count that are processors and do not leave.
  explicit HandlerInventory(absl::Span<const v1::Instance> instances);

  // Of the handler of `job`; empty: no processor has it.
  std::set<std::string> VersionsOf(const std::string& job) const;
  // Whether a processor has the handler version that the batch is bound to, or any version if it is
  // bound to none.
  bool Fit(const v1::BatchStatus& batch) const;

 private:
  std::map<std::string, std::set<std::string>> versions_;  // by job
};

// The handler that the batch needs: "version 2 of the handler of job shop".
std::string HandlerOf(const v1::BatchStatus& batch);

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
