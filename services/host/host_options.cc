#include "services/host/host_options.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/names.h"
#include "muster/base/quantity.h"
#include "muster/item/queue_names.h"
#include "muster/os/durable_file.h"
#include "muster/rpc/address.h"

namespace muster::host {
namespace {

const CLI::Validator kAddress(
    [](std::string& text) -> std::string {
      return std::string(rpc::ParseAddress(text).status().message());
    },
    "HOST:PORT");

const CLI::Validator kAccountName(
    [](std::string& text) -> std::string {
      if (base::IsSafeName(text)) return "";
      return absl::StrCat("'", text, "' is not 3 to 63 of a-z, 0-9 and single dashes within");
    },
    "NAME");

bool IsInstanceChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

const CLI::Validator kInstanceName(
    [](std::string& text) -> std::string {
      if (!text.empty() && text.size() <= kMaxInstanceBytes &&
          std::all_of(text.begin(), text.end(), IsInstanceChar)) {
        return "";
      }
      return absl::StrCat("'", text, "' is not 1 to ", kMaxInstanceBytes,
                          " of letters, digits, '-' and '_'");
    },
    "NAME");

const std::map<std::string, queue::Survives>& Survivors() {
  static const auto* const names = new std::map<std::string, queue::Survives>{
      {"process", queue::Survives::kProcess}, {"power", queue::Survives::kPower}};
  return *names;
}

// CLI11 reads an enumeration as its number.
const CLI::Validator kSurvivor(
    [](std::string& text) -> std::string {
      const auto named = Survivors().find(text);
      if (named == Survivors().end())
        return absl::StrCat("'", text, "' is neither process nor power");
      text = absl::StrCat(static_cast<int>(named->second));
      return "";
    },
    "process|power");

// Adds an option that an environment variable sets, too.
template <typename T>
CLI::Option* Add(CLI::App* app, const std::string& name, T* value, const std::string& help) {
  return app->add_option(name, *value, help)->envname(EnvironmentName(name))->capture_default_str();
}

void AddServer(CLI::App* app, HostOptions* options) {
  Add(app, "--listen", &options->listen, "Where to listen; may be given more than once")
      ->delimiter(',')
      ->check(kAddress);
  Add(app, "--advertise", &options->advertise,
      "HOST:PORT for calls of others; without it, the first address of --listen")
      ->check(kAddress);
  CLI::Option* const certificate =
      Add(app, "--tls-cert", &options->tls.certificate, "This server's certificate (PEM)");
  CLI::Option* const key =
      Add(app, "--tls-key", &options->tls.key, "The certificate's private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  Add(app, "--tls-roots", &options->tls.roots, "Trusted roots of client certificates (PEM)")
      ->needs(certificate);
  Add(app, "--policy", &options->policy_file, "Who may call what (YAML)");
  app->add_flag("--allow-plaintext", options->allow_plaintext,
                "Listen, and call handlers, without TLS where others can reach it; anyone who can "
                "connect may call everything")
      ->envname(EnvironmentName("--allow-plaintext"));
  app->add_flag(
         "--allow-any-client", options->allow_any_client,
         "Listen with TLS where others can reach it without --tls-roots and --policy; anyone "
         "who can connect may call everything")
      ->envname(EnvironmentName("--allow-any-client"));
}

void AddNats(CLI::App* app, HostOptions* options) {
  nats::ConnectionOptions& connection = options->nats.connection;
  Add(app, "--nats", &options->nats_url, "The NATS server, or a cluster's with commas between");
  Add(app, "--nats-credentials", &connection.credentials_file,
      "Credentials file for the NATS server");
  Add(app, "--nats-ca", &connection.ca_file,
      "Trusted roots of the NATS server's certificate (PEM)");
  CLI::Option* const certificate =
      Add(app, "--nats-cert", &connection.certificate_file, "Shown to the NATS server (PEM)");
  CLI::Option* const key =
      Add(app, "--nats-key", &connection.key_file, "That certificate's private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  Add(app, "--bucket", &options->nats.bucket,
      "Bucket for records and blobs; keeps installations apart");
  Add(app, "--replicas", &options->nats.replicas, "Of all that is stored on the NATS server")
      ->check(CLI::Range(1, kMaxReplicas));
  AddDuration(app, "--lease", &options->nats.lease, kMinLease, kMaxLease,
              "How long a worker has a message before others get it");
  app->add_option("--ack-survives", options->nats.ack_survives,
                  "What the NATS server's acknowledgements survive")
      ->transform(kSurvivor)
      ->envname(EnvironmentName("--ack-survives"))
      ->type_name("")
      ->default_str("process");
}

}  // namespace

HostOptions::HostOptions(const RoleInfo& role)
    : listen({absl::StrCat("127.0.0.1:", role.port)}),
      account(item::kLocalAccount),
      instance(base::MakeInstanceId(role.name)) {}

StoreUrls HostOptions::stores() const {
  if (!is_embedded()) return {nats_url, nats_url, nats_url, nats_url};
  const backend::DataDirUrls urls(data_dir);
  return {urls.queue, urls.sync, urls.blobs, "local:"};
}

rpc::ServerOptions HostOptions::server() const {
  rpc::ServerOptions server;
  server.addresses = listen;
  if (!tls.certificate.empty()) server.tls = tls;
  server.allow_plaintext = allow_plaintext;
  server.allow_any_client = allow_any_client;
  server.policy_file = policy_file;
  return server;
}

rpc::ChannelOptions HostOptions::channel() const {
  rpc::ChannelOptions channel;
  if (!tls.certificate.empty()) channel.tls = tls;
  return channel;
}

// An address that cannot be read is refused when the server starts.
bool HostOptions::is_on_loopback() const {
  return std::all_of(listen.begin(), listen.end(), [](const std::string& text) {
    const absl::StatusOr<rpc::Address> address = rpc::ParseAddress(text);
    return address.ok() && address->IsLoopback();
  });
}

absl::Status HostOptions::CreateDataDir() const {
  const absl::Status created = os::CreateFolder(data_dir);
  if (created.ok()) return created;
  return absl::InvalidArgumentError(
      absl::StrCat("the data directory ", data_dir, ": ", created.message()));
}

std::vector<std::pair<std::string, std::string>> EnvironmentOf(const HostOptions& options) {
  std::vector<std::pair<std::string, std::string>> environment;
  const auto add = [&environment](absl::string_view option, const std::string& value) {
    if (!value.empty()) environment.emplace_back(EnvironmentName(option), value);
  };
  const backend::NatsOptions& nats = options.nats;
  add("--nats", options.nats_url);
  add("--nats-credentials", nats.connection.credentials_file);
  add("--nats-ca", nats.connection.ca_file);
  add("--nats-cert", nats.connection.certificate_file);
  add("--nats-key", nats.connection.key_file);
  add("--bucket", nats.bucket);
  add("--replicas", absl::StrCat(nats.replicas));
  add("--lease", base::DurationToString(nats.lease));
  for (const auto& [name, survives] : Survivors()) {
    if (survives == nats.ack_survives) add("--ack-survives", name);
  }
  add("--tls-cert", options.tls.certificate);
  add("--tls-key", options.tls.key);
  add("--tls-roots", options.tls.roots);
  add("--allow-plaintext", options.allow_plaintext ? "true" : "false");
  add("--allow-any-client", options.allow_any_client ? "true" : "false");
  add("--account", options.account);
  return environment;
}

std::string EnvironmentName(absl::string_view option) {
  return absl::StrCat("MUSTER_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(option.substr(2), {{"-", "_"}})));
}

void TakeRefusedVariables(CLI::App* app) {
  const auto is_unset = [](const CLI::Option* option) {
    return option->count() == 0 && !option->get_envname().empty();
  };
  for (CLI::Option* option : app->get_options(is_unset)) {
    const std::string& name = option->get_envname();
    const char* const text = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): alone
    if (text == nullptr || *text == '\0') continue;
    option->add_result(text);
    option->run_callback();
  }
}

CLI::Option* AddDuration(CLI::App* app, const std::string& name, absl::Duration* value,
                         absl::Duration low, absl::Duration high, const std::string& help) {
  const auto check = [low, high](const std::string& text) -> std::string {
    const absl::StatusOr<absl::Duration> duration = base::ParseDuration(text);
    if (!duration.ok()) return std::string(duration.status().message());
    if (*duration >= low && *duration <= high) return "";
    return absl::StrCat(text, " is not within ", base::DurationToString(low), " to ",
                        base::DurationToString(high));
  };
  const auto set = [value](const std::string& text) {
    *value = base::ParseDuration(text).value_or(*value);  // the text was checked before
  };
  return app->add_option_function<std::string>(name, set, help)
      ->check(check, "DURATION")
      ->envname(EnvironmentName(name))
      ->default_str(base::DurationToString(*value));
}

void AddHostOptions(CLI::App* app, HostOptions* options) {
  AddServer(app, options);
  AddNats(app, options);
  Add(app, "--data-dir", &options->data_dir, "Directory of this instance's own data");
  Add(app, "--account", &options->account, "Account that owns the queues")->check(kAccountName);
  Add(app, "--instance", &options->instance, "This instance's name, which no other has or had")
      ->check(kInstanceName);
  AddDuration(app, "--drain-grace", &options->drain_grace, absl::ZeroDuration(), kMaxDrainGrace,
              "How long running work may take after SIGTERM");
}

}  // namespace muster::host
