// MeshClient: the services that commands work on when they are told of a server.
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

// Somebody who serves.
struct Peer {
  std::string address;
  std::string program;  // that should be there: "muster-initiator"
  std::shared_ptr<grpc::Channel> channel;
};

// How a call to `peer` ended, for people: whoever did not answer, or is another program, is named.
// Nobody here cancels calls, so that one which was is the server's doing, and worth another try
// (Unavailable).
absl::Status Explain(const absl::Status& status, const Peer& peer);

// Connect and Call are thread-safe, the others are not.
class MeshClient {
 public:
  // Connects with the first call. InvalidArgument: an address or a file of TLS is wrong.
  static absl::StatusOr<std::unique_ptr<MeshClient>> Open(const ServerOptions& options);

  // Serves batches, jobs and queues.
  const std::shared_ptr<grpc::Channel>& initiator() const { return initiator_.channel; }
  // Serves the report. Unavailable: the initiator has heard of none.
  absl::StatusOr<Peer> Controller();
  // Those that the initiator has heard lately, with their last heartbeats; of all roles, or of one.
  absl::StatusOr<std::vector<v1::Instance>> Instances(v1::Role role);
  // The same, and whether the initiator hears anybody at all.
  absl::StatusOr<v1::ListInstancesResponse> ListInstances(v1::Role role);
  // Where `program` should be. Connects with the first call. InvalidArgument: that is no address.
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
  // One that takes longer than others do, if nobody has said how long calls may take.
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
  // Some processor has the handler that the batch is bound to, or any where it is bound to none.
  bool Fit(const v1::BatchStatus& batch) const;

 private:
  std::map<std::string, std::set<std::string>> versions_;  // by job
};

// What must be there for the batch: "version 2 of the handler of job shop".
std::string HandlerOf(const v1::BatchStatus& batch);

// ParallelMap: asks many at a time, so that one who is slow holds up nobody else.

// What `ask` answers of each of `whom`, in their order. It runs on a thread for each of them: a
// mesh has hundreds of instances at the most (mesh/limits.h).
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
