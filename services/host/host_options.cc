// SPDX-License-Identifier: Apache-2.0
#include "services/host/host_options.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "muster/args/option.h"
#include "muster/base/names.h"
#include "muster/base/quantity.h"
#include "muster/item/queue_names.h"
#include "muster/os/durable_file.h"
#include "muster/rpc/address.h"

namespace muster::host {
namespace {

const args::Validator kAddress{[](std::string& text) -> std::string {
                                 return std::string(rpc::ParseAddress(text).status().message());
                               },
                               "HOST:PORT"};

const args::Validator kAddressOrNone{
    [](std::string& text) -> std::string { return text.empty() ? "" : kAddress.look(text); },
    "HOST:PORT"};

// The message leaves the value out, which may hold a password.
const args::Validator kNatsUrl{
    [](std::string& text) -> std::string {
      const bool fits = text.empty() || backend::IsNatsUrl(text);
      return fits ? "" : "a NATS server is named as nats://HOST:PORT, or tls://HOST:PORT";
    },
    "nats://HOST:PORT"};

const args::Validator kAccountName{
    [](std::string& text) -> std::string {
      if (base::IsSafeName(text)) return "";
      return absl::StrCat("'", text, "' is not 3 to 63 of a-z, 0-9 and single dashes within");
    },
    "NAME"};

bool IsInstanceChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

const args::Validator kInstanceName{[](std::string& text) -> std::string {
                                      if (!text.empty() && text.size() <= kMaxInstanceBytes &&
                                          std::all_of(text.begin(), text.end(), IsInstanceChar)) {
                                        return "";
                                      }
                                      return absl::StrCat("'", text, "' is not 1 to ",
                                                          kMaxInstanceBytes,
                                                          " of letters, digits, '-' and '_'");
                                    },
                                    "NAME"};

// The names of an enumeration's values, on the command line; CLI11 would read numbers.
template <typename Enum>
using Names = std::vector<std::pair<std::string, Enum>>;

const Names<queue::Survives>& SurvivesNames() {
  static const auto* const names = new Names<queue::Survives>{
      {"process", queue::Survives::kProcess}, {"power", queue::Survives::kPower}};
  return *names;
}

const Names<base::LogLevel>& LogLevelNames() {
  static const auto* const names = new Names<base::LogLevel>{{"debug", base::kDebug},
                                                             {"info", base::kInfo},
                                                             {"warning", base::kWarning},
                                                             {"error", base::kError}};
  return *names;
}

const Names<base::LogFormat>& LogFormatNames() {
  static const auto* const names = new Names<base::LogFormat>{{"text", base::LogFormat::kText},
                                                              {"json", base::LogFormat::kJson}};
  return *names;
}

template <typename Enum>
std::string NameOf(const Names<Enum>& names, Enum value) {
  const auto named = std::find_if(names.begin(), names.end(),
                                  [value](const auto& entry) { return entry.second == value; });
  return named->first;
}

// Adds an option that an environment variable sets, too.
template <typename T>
args::Option Add(CLI::App* app, const std::string& name, T* value, const std::string& help) {
  return args::Add(app, name, value, help).Envname(EnvironmentName(name)).CaptureDefaultStr();
}

// The same, for an option that takes one of `names`.
template <typename Enum>
void AddChoice(CLI::App* app, const std::string& name, const Names<Enum>& names, Enum* value,
               const std::string& help) {
  std::vector<std::string> texts;
  for (const auto& [text, named] : names) texts.push_back(text);
  const auto check = [texts](const std::string& text) -> std::string {
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) return "";
    return absl::StrCat("'", text, "' is none of ", absl::StrJoin(texts, ", "));
  };
  const auto set = [&names, value](const std::string& text) {
    for (const auto& [named, choice] : names) {
      if (named == text) *value = choice;
    }
  };
  args::AddFunction(app, name, set, help)
      .Check(check, absl::StrJoin(texts, "|"))
      .Envname(EnvironmentName(name))
      .TypeName("")
      .DefaultStr(NameOf(names, *value));
}

void AddServer(CLI::App* app, HostOptions* options) {
  Add(app, "--listen", &options->listen, "Where to listen; may be given more than once")
      .Delimiter(',')
      .Check(kAddress);
  Add(app, "--advertise", &options->advertise,
      "HOST:PORT for calls of others; without it, the first address of --listen")
      .Check(kAddress);
}

void AddHealth(CLI::App* app, HostOptions* options) {
  Add(app, "--health", &options->health,
      "HOST:PORT of one more listener, which only answers gRPC health checks, without TLS: for "
      "probes that have no certificate; without it, there is none")
      .Check(kAddress);
}

}  // namespace

void AddServerSecurity(CLI::App* app, HostOptions* options) {
  const args::Option certificate =
      Add(app, "--tls-cert", &options->tls.certificate, "This server's certificate (PEM)");
  const args::Option key =
      Add(app, "--tls-key", &options->tls.key, "The certificate's private key (PEM)");
  certificate.Needs(key);
  key.Needs(certificate);
  Add(app, "--tls-roots", &options->tls.roots, "Trusted roots of client certificates (PEM)")
      .Needs(certificate);
  Add(app, "--policy", &options->policy_file, "Who may call what (YAML)");
  args::AddFlag(app, "--allow-plaintext", &options->allow_plaintext,
                "Listen, and call handlers, without TLS where others can reach it; anyone who can "
                "connect may call everything")
      .Envname(EnvironmentName("--allow-plaintext"));
  args::AddFlag(
      app, "--allow-any-client", &options->allow_any_client,
      "Listen with TLS where others can reach it without --tls-roots and --policy; anyone "
      "who can connect may call everything")
      .Envname(EnvironmentName("--allow-any-client"));
}

void AddNatsSecrets(CLI::App* app, nats::ConnectionOptions* connection) {
  Add(app, "--nats-credentials", &connection->credentials_file,
      "Credentials file for the NATS server");
  Add(app, "--nats-ca", &connection->ca_file,
      "Trusted roots of the NATS server's certificate (PEM)");
  const args::Option certificate =
      Add(app, "--nats-cert", &connection->certificate_file, "Shown to the NATS server (PEM)");
  const args::Option key =
      Add(app, "--nats-key", &connection->key_file, "That certificate's private key (PEM)");
  certificate.Needs(key);
  key.Needs(certificate);
}

void AddMetricsOptions(CLI::App* app, HostOptions* options) {
  Add(app, "--metrics", &options->metrics,
      "HOST:PORT of a listener for Prometheus, at /metrics; empty: there is none")
      .Check(kAddressOrNone)
      .DefaultStr(absl::StrCat("127.0.0.1 and the port of --listen + ", kMetricsPortOffset));
  args::AddFlag(
      app, "--allow-plaintext-metrics", &options->allow_plaintext_metrics,
      "Serve metrics where others can reach them, without TLS; anyone who can connect may "
      "read them")
      .Envname(EnvironmentName("--allow-plaintext-metrics"));
}

void AddNatsOptions(CLI::App* app, HostOptions* options) {
  Add(app, "--nats", &options->nats_url, "The NATS server, or a cluster's with commas between")
      .Check(kNatsUrl);
  AddNatsSecrets(app, &options->nats.connection);
  Add(app, "--bucket", &options->nats.bucket,
      "Bucket for records and blobs; keeps installations apart");
  Add(app, "--replicas", &options->nats.replicas, "Of all that is stored on the NATS server")
      .Check(args::Range(1, kMaxReplicas));
  AddChoice(app, "--ack-survives", SurvivesNames(), &options->nats.ack_survives,
            "What the NATS server's acknowledgements survive");
}

HostOptions::HostOptions(const RoleInfo& role)
    : service(absl::StrCat("muster-", role.name)),
      listen({absl::StrCat("127.0.0.1:", role.port)}),
      account(item::kLocalAccount),
      instance(base::MakeInstanceId(role.name)) {}

StoreUrls HostOptions::stores() const {
  if (!is_embedded()) return {nats_url, nats_url, nats_url, nats_url, nats_url};
  const backend::DataDirUrls urls(data_dir);
  return {urls.queue, urls.sync, urls.blobs, "local:", urls.stream};
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
  add("--ack-survives", NameOf(SurvivesNames(), nats.ack_survives));
  add("--tls-cert", options.tls.certificate);
  add("--tls-key", options.tls.key);
  add("--tls-roots", options.tls.roots);
  add("--allow-plaintext", options.allow_plaintext ? "true" : "false");
  add("--allow-any-client", options.allow_any_client ? "true" : "false");
  add("--account", options.account);
  add("--log-level", NameOf(LogLevelNames(), options.log_level));
  add("--log-format", NameOf(LogFormatNames(), options.log_format));
  // Not those of this instance, whose environment the role may have, too.
  environment.emplace_back(EnvironmentName("--health"), "");
  environment.emplace_back(EnvironmentName("--metrics"), "");
  return environment;
}

std::string EnvironmentName(absl::string_view option) {
  return absl::StrCat("MUSTER_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(option.substr(2), {{"-", "_"}})));
}

void TakeDefaultMetrics(CLI::App* app, const std::string& listen, HostOptions* options) {
  // CLI11 takes no notice of an empty variable.
  const char* const variable =
      std::getenv(EnvironmentName("--metrics").c_str());  // NOLINT(concurrency-mt-unsafe): alone
  if (args::Find(app, "--metrics").count() > 0 || variable != nullptr) return;
  const absl::StatusOr<rpc::Address> own = rpc::ParseAddress(listen);
  if (!own.ok() || own->port == 0 || own->port + kMetricsPortOffset > rpc::kMaxPort) return;
  const std::string host = own->host == "::1" ? "::1" : "127.0.0.1";
  options->metrics = rpc::Address{host, own->port + kMetricsPortOffset}.ToString();
  options->metrics_are_default = true;
}

args::Option AddDuration(CLI::App* app, const std::string& name, absl::Duration* value,
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
  return args::AddFunction(app, name, set, help)
      .Check(check, "DURATION")
      .Envname(EnvironmentName(name))
      .DefaultStr(base::DurationToString(*value));
}

void AddHostOptions(CLI::App* app, HostOptions* options) {
  AddServer(app, options);
  AddServerSecurity(app, options);
  AddHealth(app, options);
  AddMetricsOptions(app, options);
  AddNatsOptions(app, options);
  AddDuration(app, "--lease", &options->nats.lease, kMinLease, kMaxLease,
              "How long a worker has a message before others get it");
  Add(app, "--data-dir", &options->data_dir, "Directory of this instance's own data");
  Add(app, "--account", &options->account, "Account that owns the queues").Check(kAccountName);
  Add(app, "--instance", &options->instance, "This instance's name, which no other has or had")
      .Check(kInstanceName);
  AddDuration(app, "--drain-grace", &options->drain_grace, absl::ZeroDuration(), kMaxDrainGrace,
              "How long running work may take after SIGTERM");
  AddLogOptions(app, &options->log_level, &options->log_format);
}

void AddLogOptions(CLI::App* app, base::LogLevel* level, base::LogFormat* format) {
  AddChoice(app, "--log-level", LogLevelNames(), level,
            "The lowest level that is logged; SIGUSR1 switches to debug, and back");
  AddChoice(app, "--log-format", LogFormatNames(), format,
            "Lines of key=value pairs, or of JSON objects");
}

}  // namespace muster::host
