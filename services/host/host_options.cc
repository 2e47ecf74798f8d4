// SPDX-License-Identifier: Apache-2.0
#include "services/host/host_options.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

const CLI::Validator kAddressOrNone(
    [](std::string& text) -> std::string { return text.empty() ? "" : kAddress(text); },
    "HOST:PORT");

// The message leaves the value out, which may hold a password.
const CLI::Validator kNatsUrl(
    [](std::string& text) -> std::string {
      const bool fits = text.empty() || backend::IsNatsUrl(text);
      return fits ? "" : "a NATS server is named as nats://HOST:PORT, or tls://HOST:PORT";
    },
    "nats://HOST:PORT");

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
CLI::Option* Add(CLI::App* app, const std::string& name, T* value, const std::string& help) {
  return app->add_option(name, *value, help)->envname(EnvironmentName(name))->capture_default_str();
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
  app->add_option_function<std::string>(name, set, help)
      ->check(check, absl::StrJoin(texts, "|"))
      ->envname(EnvironmentName(name))
      ->type_name("")
      ->default_str(NameOf(names, *value));
}

void AddServer(CLI::App* app, HostOptions* options) {
  Add(app, "--listen", &options->listen, "Where to listen; may be given more than once")
      ->delimiter(',')
      ->check(kAddress);
  Add(app, "--advertise", &options->advertise,
      "HOST:PORT for calls of others; without it, the first address of --listen")
      ->check(kAddress);
}

void AddHealth(CLI::App* app, HostOptions* options) {
  Add(app, "--health", &options->health,
      "HOST:PORT of one more listener, which only answers gRPC health checks, without TLS: for "
      "probes that have no certificate; without it, there is none")
      ->check(kAddress);
}

}  // namespace

void AddServerSecurity(CLI::App* app, HostOptions* options) {
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

void AddNatsSecrets(CLI::App* app, nats::ConnectionOptions* connection) {
  Add(app, "--nats-credentials", &connection->credentials_file,
      "Credentials file for the NATS server");
  Add(app, "--nats-ca", &connection->ca_file,
      "Trusted roots of the NATS server's certificate (PEM)");
  CLI::Option* const certificate =
      Add(app, "--nats-cert", &connection->certificate_file, "Shown to the NATS server (PEM)");
  CLI::Option* const key =
      Add(app, "--nats-key", &connection->key_file, "That certificate's private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
}

void AddMetricsOptions(CLI::App* app, HostOptions* options) {
  Add(app, "--metrics", &options->metrics,
      "HOST:PORT of a listener for Prometheus, at /metrics; empty: there is none")
      ->check(kAddressOrNone)
      ->default_str(absl::StrCat("127.0.0.1 and the port of --listen + ", kMetricsPortOffset));
  app->add_flag(
         "--allow-plaintext-metrics", options->allow_plaintext_metrics,
         "Serve metrics where others can reach them, without TLS; anyone who can connect may "
         "read them")
      ->envname(EnvironmentName("--allow-plaintext-metrics"));
}

void AddNatsOptions(CLI::App* app, HostOptions* options) {
  Add(app, "--nats", &options->nats_url, "The NATS server, or a cluster's with commas between")
      ->check(kNatsUrl);
  AddNatsSecrets(app, &options->nats.connection);
  Add(app, "--bucket", &options->nats.bucket,
      "Bucket for records and blobs; keeps installations apart");
  Add(app, "--replicas", &options->nats.replicas, "Of all that is stored on the NATS server")
      ->check(CLI::Range(1, kMaxReplicas));
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

namespace {

// npos: `text` has no such word. --tls is none of --tls-key.
size_t PlaceOfWord(absl::string_view text, absl::string_view word) {
  size_t place = text.find(word);
  const auto goes_on = [&](size_t end) {
    return end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '-');
  };
  while (place != absl::string_view::npos && goes_on(place + word.size())) {
    place = text.find(word, place + 1);
  }
  return place;
}

bool IsSetByVariable(const CLI::Option& option, absl::Span<const char* const> words) {
  const std::string& variable = option.get_envname();
  if (variable.empty() || option.get_lnames().empty()) return false;
  const char* const text = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): alone
  if (text == nullptr || *text == '\0') return false;
  return std::none_of(words.begin(), words.end(), [&](absl::string_view word) {
    const std::string name = absl::StrCat("--", option.get_lnames().front());
    return word == name || absl::StartsWith(word, name + "=");
  });
}

}  // namespace

std::string WithVariable(const CLI::App& command, const CLI::ParseError& mistake,
                         absl::Span<const char* const> words) {
  std::string text = mistake.what();
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    const size_t place = PlaceOfWord(text, name);
    if (place == std::string::npos || !IsSetByVariable(*option, words)) continue;
    return text.replace(place, name.size(), option->get_envname());
  }
  return text;
}

int AnswerParseError(const CLI::App& app, const CLI::ParseError& error,
                     absl::Span<const char* const> words) {
  if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
  const CLI::ParseError mistake(WithVariable(app, error, words), error.get_exit_code());
  return app.exit(mistake, std::cout, std::cerr);
}

void TakeDefaultMetrics(const CLI::App& app, const std::string& listen, HostOptions* options) {
  const CLI::Option* const option = app.get_option("--metrics");
  // CLI11 takes no notice of an empty variable.
  const char* const variable =
      std::getenv(option->get_envname().c_str());  // NOLINT(concurrency-mt-unsafe): alone
  if (option->count() > 0 || variable != nullptr) return;
  const absl::StatusOr<rpc::Address> own = rpc::ParseAddress(listen);
  if (!own.ok() || own->port == 0 || own->port + kMetricsPortOffset > rpc::kMaxPort) return;
  const std::string host = own->host == "::1" ? "::1" : "127.0.0.1";
  options->metrics = rpc::Address{host, own->port + kMetricsPortOffset}.ToString();
  options->metrics_are_default = true;
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
  AddServerSecurity(app, options);
  AddHealth(app, options);
  AddMetricsOptions(app, options);
  AddNatsOptions(app, options);
  AddDuration(app, "--lease", &options->nats.lease, kMinLease, kMaxLease,
              "How long a worker has a message before others get it");
  Add(app, "--data-dir", &options->data_dir, "Directory of this instance's own data");
  Add(app, "--account", &options->account, "Account that owns the queues")->check(kAccountName);
  Add(app, "--instance", &options->instance, "This instance's name, which no other has or had")
      ->check(kInstanceName);
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
