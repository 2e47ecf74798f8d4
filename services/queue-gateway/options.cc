// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/args/option.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/rpc/address.h"
#include "services/host/host_options.h"
#include "services/host/numbers.h"
#include "services/host/unknown_variables.h"

namespace muster::queue_gateway {
namespace {

absl::StatusOr<bool> IsOnLoopback(const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::Address address, rpc::ParseAddress(options.listen));
  return address.IsLoopback();
}

absl::StatusOr<auth::Accounts> NamedAccounts(const Options& options) {
  auth::Accounts all;
  for (const std::string& text : options.accounts) {
    MUSTER_ASSIGN_OR_RETURN(const auth::Accounts some, auth::ParseAccountList(text));
    for (const auto& [name, account] : some) {
      if (!all.emplace(name, account).second) {
        return absl::InvalidArgumentError(absl::StrCat("account '", name, "' is named twice"));
      }
    }
  }
  return all;
}

args::Option Add(CLI::App* app, const std::string& name, std::string* value,
                 const std::string& help) {
  return args::Add(app, name, value, help).Envname(host::EnvironmentName(name));
}

void AddTarget(CLI::App* app, const std::string& name, double* target, const std::string& help) {
  args::Add(app, name, target, help)
      .Envname(host::EnvironmentName(name))
      .Check(args::Range(0.0, throttle::kMaxTarget))
      .CaptureDefaultStr();
}

}  // namespace

void AddOptions(CLI::App* app, Options* options) {
  Add(app, "--listen", &options->listen, "HOST:PORT to listen on; port 0: one that is free")
      .CaptureDefaultStr();
  Add(app, "--data-dir", &options->data_dir,
      "Where queues and their messages are kept, unless --nats names a server")
      .CaptureDefaultStr();
  host::AddNatsOptions(app, &options->host);
  const args::Option certificate =
      Add(app, "--cert", &options->certificate, "Serve HTTPS with this certificate (PEM)");
  const args::Option key =
      Add(app, "--key", &options->key, "The private key of the certificate (PEM)");
  certificate.Needs(key);
  key.Needs(certificate);
  // The environment's list is separated by semicolons, which ParseAccountList knows.
  args::Add(app, "--account", &options->accounts,
            "NAME:KEY or NAME:KEY:KEY2, with keys in base64; may be given more than once. "
            "Without any, on loopback: devstoreaccount1 with its published key")
      .Envname("MUSTER_ACCOUNTS");
  Add(app, "--account-file", &options->account_file,
      "A file with one account in each line, read again when it changes");
  Add(app, "--oauth", &options->oauth, "Accept bearer tokens over HTTPS: basic")
      .Check(args::IsMember({"basic"}))
      .Needs(certificate);
  Add(app, "--oauth-jwks", &options->jwks_file,
      "The key set (JWKS) that signs tokens; without it, signatures are not checked");
  args::Add(app, "--oauth-issuer", &options->issuers,
            "Who may issue tokens (iss); what ends in / stands for all that begin with it. "
            "May be given more than once; without it, every tenant of Microsoft's")
      .Envname(host::EnvironmentName("--oauth-issuer"))
      .Delimiter(',');
  AddTarget(app, "--queue-requests", &options->targets.per_queue,
            "Requests a second to one queue; what is beyond gets 503 ServerBusy. 0: no target");
  AddTarget(app, "--account-requests", &options->targets.per_account,
            "The same for all requests of an account");
  host::AddDuration(app, "--drain-grace", &options->drain_grace, absl::ZeroDuration(),
                    host::kMaxDrainGrace, "How long running requests may take after SIGTERM");
  Add(app, "--health", &options->health,
      "HOST:PORT of a listener for probes, at /healthz and /readyz; without it, there is none");
  Add(app, "--admin", &options->admin,
      "HOST:PORT of a gRPC listener for `muster queue --server`; without it, there is none. The "
      "options --tls-… to --allow-any-client are about it alone");
  host::AddServerSecurity(app, &options->host);
  host::AddMetricsOptions(app, &options->host);
  host::AddLogOptions(app, &options->log_level, &options->log_format);
  host::CheckNumbers(app);
  host::CheckVariablesAreKnown(*app);
}

namespace {

// Whoever names that account on purpose, in a container perhaps, may have it.
absl::Status WarnOfPublishedKey(const Options& options, const auth::Accounts& accounts) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_on_loopback, IsOnLoopback(options));
  if (is_on_loopback) return absl::OkStatus();
  const std::string published = auth::DevelopmentAccount().keys.front();
  for (const auto& [name, account] : accounts) {
    if (std::count(account.keys.begin(), account.keys.end(), published) == 0) continue;
    base::Log(base::kWarning,
              "everybody knows the key of an account, and other machines can use it",
              {{"account", name}, {"listen", options.listen}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<auth::AccountSource>> OpenAccounts(const Options& options,
                                                                  const base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(auth::Accounts named, NamedAccounts(options));
  if (!options.account_file.empty()) {
    MUSTER_RETURN_IF_ERROR(WarnOfPublishedKey(options, named));
    return auth::AccountFile::Open(options.account_file, named, clock);
  }
  if (named.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_on_loopback, IsOnLoopback(options));
    if (!is_on_loopback) {
      return absl::InvalidArgumentError(
          absl::StrCat("other machines can reach ", options.listen,
                       ", and everybody knows the key of the development account: name an account "
                       "with --account, MUSTER_ACCOUNTS or --account-file"));
    }
    named.emplace(auth::DevelopmentAccount().name, auth::DevelopmentAccount());
  }
  MUSTER_RETURN_IF_ERROR(WarnOfPublishedKey(options, named));
  return std::make_unique<auth::FixedAccounts>(named);
}

absl::StatusOr<std::unique_ptr<auth::BearerVerifier>> OpenBearer(const Options& options,
                                                                 const base::Clock* clock) {
  if (options.oauth.empty()) return nullptr;
  if (options.certificate.empty()) {
    return absl::InvalidArgumentError("--oauth needs HTTPS: --cert and --key");
  }
  MUSTER_ASSIGN_OR_RETURN(const bool is_on_loopback, IsOnLoopback(options));
  if (!is_on_loopback && options.jwks_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("other machines can reach ", options.listen,
                     ", and without --oauth-jwks anyone can make a token"));
  }
  // One set of keys signs the tokens of all tenants, and anyone may have a tenant.
  if (!is_on_loopback && options.issuers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("other machines can reach ", options.listen,
                     ", and anyone gets a token of a tenant of their own: name yours with "
                     "--oauth-issuer"));
  }
  auth::BearerOptions bearer;
  bearer.jwks_file = options.jwks_file;
  if (!options.issuers.empty()) bearer.issuers = options.issuers;
  return auth::BearerVerifier::Open(std::move(bearer), clock);
}

}  // namespace muster::queue_gateway
