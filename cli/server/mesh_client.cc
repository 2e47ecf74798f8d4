// SPDX-License-Identifier: Apache-2.0
#include "cli/server/mesh_client.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/output/environment.h"
#include "cli/server/options.h"
#include "muster/base/status.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "muster/v1/mesh_service.grpc.pb.h"

namespace muster::cli {

namespace {

constexpr char kInitiator[] = "muster-initiator";
constexpr char kController[] = "muster-controller";

// What a wait may last longer than it was told to, for a last look at how things are.
constexpr absl::Duration kLastLook = absl::Milliseconds(500);

rpc::ChannelOptions ChannelOptionsFor(const ServerOptions& options) {
  rpc::ChannelOptions channel;
  if (options.tls_roots.empty() && options.tls_certificate.empty() && options.tls_key.empty()) {
    return channel;
  }
  channel.tls.emplace();
  channel.tls->roots = options.tls_roots;
  channel.tls->certificate = options.tls_certificate;
  channel.tls->key = options.tls_key;
  return channel;
}

// What to do about a connection that broke while TLS began, of which gRPC has no more words; null:
// it broke otherwise.
const char* TlsAdvice(absl::string_view why) {
  if (absl::StrContains(why, "Socket closed")) {
    return "it wants TLS (--tls-roots), or a client's certificate that it accepts (--tls-cert, "
           "--tls-key)";
  }
  if (absl::StrContains(why, "certificate verify failed")) {
    return "its certificate is not valid now, or --tls-roots does not name its authority";
  }
  // Of OpenSSL, about an answer to its greeting that is none of TLS.
  if (absl::StrContains(why, "wrong version number")) {
    return "the server there speaks plaintext: leave --tls-roots, --tls-cert and --tls-key out, or "
           "give it a certificate";
  }
  return nullptr;
}

// Why no connection to `peer` came to be, for people; nullopt: there was one. gRPC tells that by
// words alone: "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7700: …".
std::optional<std::string> WhyNotConnected(absl::string_view message, const Peer& peer) {
  if (!absl::StartsWith(message, "failed to connect to all addresses") &&
      !absl::StartsWith(message, "DNS resolution failed")) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> last = absl::StrSplit(message, "; last error: ");
  absl::string_view why = last.back();
  absl::ConsumePrefix(&why, "UNKNOWN: ");
  absl::ConsumePrefix(&why, "UNAVAILABLE: ");
  if (const char* const advice = TlsAdvice(why); advice != nullptr) {
    return absl::StrCat("cannot connect: ", why, "; ", advice);
  }
  return absl::StrCat("cannot connect: ", why, "; see whether ", peer.program,
                      peer.program == kInitiator ? ", or `muster up`," : "", " runs there");
}

}  // namespace

bool Serves(const v1::Instance& instance) {
  return !instance.leaving() && !instance.heartbeat().has_controller_standby() &&
         !instance.info().address().empty();
}

absl::Status Explain(const absl::Status& status, const Peer& peer) {
  if (absl::IsCancelled(status)) return Explain(absl::UnavailableError(status.message()), peer);
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    const std::optional<std::string> why = WhyNotConnected(status.message(), peer);
    return base::Annotate(why.has_value() ? absl::UnavailableError(*why) : status, peer.address);
  }
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(status);
  if (reason.has_value() && reason->reason == "NO_SUCH_JOB") {
    return WithListHint(status, "muster job list");
  }
  // gRPC has no words for a service that is not there.
  if (absl::IsUnimplemented(status) && status.message().empty()) {
    return absl::UnimplementedError(
        absl::StrCat(peer.address, " does not offer what a ", peer.program,
                     " does: it is another program, or another version"));
  }
  return status;
}

absl::StatusOr<std::unique_ptr<MeshClient>> MeshClient::Open(const ServerOptions& options) {
  std::unique_ptr<MeshClient> mesh(new MeshClient(options, ChannelOptionsFor(options)));
  MUSTER_ASSIGN_OR_RETURN(mesh->initiator_, mesh->Connect(options.address, kInitiator));
  return mesh;
}

absl::StatusOr<std::unique_ptr<MeshClient>> MeshClient::Open(const CommonOptions& options,
                                                             absl::string_view what) {
  MUSTER_RETURN_IF_ERROR(RequireServer(options, what));
  return Open(options.server);
}

absl::Duration MeshClient::Bounded(absl::Duration timeout) const {
  if (clock_ == nullptr) return timeout;
  return std::min(timeout, std::max(deadline_ - clock_->Monotonic(), kLastLook));
}

absl::StatusOr<Peer> MeshClient::Controller() const {
  if (!options_.controller.empty()) return Connect(options_.controller, kController);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::Instance> controllers,
                          Instances(v1::ROLE_CONTROLLER));
  for (const v1::Instance& instance : controllers) {
    if (Serves(instance)) return Connect(instance.info().address(), kController);
  }
  return absl::UnavailableError(absl::StrCat(
      initiator_.address, ": it has heard of no controller; --controller HOST:PORT names one"));
}

absl::StatusOr<std::vector<v1::Instance>> MeshClient::Instances(v1::Role role) const {
  MUSTER_ASSIGN_OR_RETURN(const v1::ListInstancesResponse response, ListInstances(role));
  return std::vector<v1::Instance>(response.instances().begin(), response.instances().end());
}

absl::StatusOr<v1::ListInstancesResponse> MeshClient::ListInstances(v1::Role role) const {
  v1::ListInstancesRequest request;
  request.set_role(role);
  request.set_with_load(true);
  return Call(&v1::MeshService::Stub::ListInstances, request);
}

absl::StatusOr<Peer> MeshClient::Connect(const std::string& address,
                                         const std::string& program) const {
  Peer peer{address, program, nullptr};
  MUSTER_ASSIGN_OR_RETURN(peer.channel, rpc::OpenChannel(address, channel_options_));
  return peer;
}

absl::StatusOr<v1::Job> MeshClient::Job(const std::string& name) const {
  v1::GetJobRequest request;
  request.set_name(name);
  MUSTER_ASSIGN_OR_RETURN(v1::GetJobResponse response,
                          Call(&v1::JobService::Stub::GetJob, request));
  return std::move(*response.mutable_job());
}

absl::StatusOr<std::vector<v1::Job>> MeshClient::Jobs() const {
  std::vector<v1::Job> jobs;
  const auto take = [&jobs](const v1::ListJobsResponse& page) {
    jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
  };
  MUSTER_RETURN_IF_ERROR(CallForPages(&v1::JobService::Stub::ListJobs, {}, take));
  return jobs;
}

HandlerInventory::HandlerInventory(absl::Span<const v1::Instance> instances) {
  for (const v1::Instance& instance : instances) {
    if (instance.leaving() || instance.info().role() != v1::ROLE_PROCESSOR) continue;
    for (const v1::HandlerVersion& handler : instance.info().handlers()) {
      versions_[handler.job()].insert(handler.version());
    }
  }
}

std::set<std::string> HandlerInventory::VersionsOf(const std::string& job) const {
  const auto found = versions_.find(job);
  return found == versions_.end() ? std::set<std::string>() : found->second;
}

}  // namespace muster::cli
