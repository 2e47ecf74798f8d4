// SPDX-License-Identifier: Apache-2.0
#include "services/host/unknown_variables.h"

#include <unistd.h>

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/text.h"

namespace muster::host {
namespace {

constexpr absl::string_view kPrefix = "MUSTER_";

// The names below lack kPrefix.

// Of the programs' options, to which CheckVariablesAreKnown holds them, and of the command alone.
constexpr absl::string_view kOfPrograms =
    "ACCOUNT ACCOUNTS ACCOUNT_FILE ACCOUNT_REQUESTS ACK_SURVIVES ACTUATOR ADMIN ADVERTISE "
    "ALLOW_ANY_CLIENT ALLOW_PLAINTEXT ALLOW_PLAINTEXT_METRICS BUCKET CERT COLD_START "
    "CONTENT_FROM_INITIATOR CONTROLLER DATA_DIR DRAIN_GRACE GATEWAYS HANDLER_ENV "
    "HANDLER_FILE_SIZE HANDLER_MEMORY HANDLER_PATIENCE HANDLER_PROCESSES HANDLER_PROGRAMS "
    "HANDLER_TLS_CERT HANDLER_TLS_KEY HANDLER_TLS_ROOTS HEALTH INITIATOR INSTANCE JOB KEY "
    "KUBECONFIG KUBERNETES_NAMESPACE LEASE LISTEN LOG_FORMAT LOG_LEVEL MAX_QUEUE_BYTES "
    "MAX_QUEUE_ITEMS MAX_STOPPED_UPLOADS MAX_STOPPED_UPLOAD_BYTES MAX_TASKS METRICS NATS "
    "NATS_CA NATS_CERT NATS_CREDENTIALS NATS_KEY OAUTH OAUTH_ISSUER OAUTH_JWKS OUTPUT "
    "OWNERSHIP_LEASE POLICY PROCESSOR_ARGS PROCESSOR_PROGRAM QUEUE_REQUESTS RECORD "
    "RECORD_SIZE REPLACE_REPORT REPLICAS REPLICA_CORES REPLICA_KEEPER REPLICA_METRICS REPORT "
    "RULES SERVER STANDBY THREADS TIMEOUT TLS_CERT TLS_KEY TLS_ROOTS TRACE_SAMPLE "
    "UNKNOWN_BATCH_GRACE";

// Of what runs beside them: the compose file, Grafana, the configuration of the NATS server, a
// program's child, and the tests.
constexpr absl::string_view kOfOthers =
    "CONTROLLER_PROGRAM DASHBOARDS FAILPOINT IMAGE INITIATOR_PROGRAM NATS_PASSWORD "
    "NATS_SERVERS PROMETHEUS_URL QUEUE_GATEWAY_PROGRAM SCALING_AGENT_PROGRAM SERVED_JOB "
    "UNIQUE_IDS";
constexpr absl::string_view kTests = "TEST_";

using Names = std::vector<std::string>;

const Names& OfPrograms() {
  static const auto* const names = new Names(absl::StrSplit(kOfPrograms, ' '));
  return *names;
}

const Names& OfOthers() {
  static const auto* const names = new Names(absl::StrSplit(kOfOthers, ' '));
  return *names;
}

bool IsOneOf(const Names& names, absl::string_view rest) {
  return std::find(names.begin(), names.end(), rest) != names.end();
}

bool IsKnown(absl::string_view rest) {
  return absl::StartsWith(rest, kTests) || IsOneOf(OfPrograms(), rest) || IsOneOf(OfOthers(), rest);
}

// Names of Services as Kubernetes writes them into variables.
std::vector<std::string> ServiceNames(absl::Span<const absl::string_view> environment) {
  std::vector<std::string> names;
  for (const absl::string_view variable : environment) {
    absl::string_view name = variable.substr(0, variable.find('='));
    if (absl::ConsumeSuffix(&name, "_SERVICE_HOST")) names.emplace_back(name);
  }
  return names;
}

bool IsOfService(absl::string_view name, absl::string_view service) {
  return absl::ConsumePrefix(&name, service) &&
         (absl::StartsWith(name, "_SERVICE_") || name == "_PORT" ||
          absl::StartsWith(name, "_PORT_"));
}

// Compares what follows the prefix, which would make all names alike.
std::string Meant(absl::string_view rest) {
  const std::string meant = base::NearestName(rest, OfPrograms());
  return meant.empty() ? "" : absl::StrCat(kPrefix, meant);
}

}  // namespace

std::vector<UnknownVariable> UnknownVariables(absl::Span<const absl::string_view> environment) {
  const std::vector<std::string> services = ServiceNames(environment);
  std::vector<UnknownVariable> unknown;
  for (const absl::string_view variable : environment) {
    const absl::string_view name = variable.substr(0, variable.find('='));
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kPrefix) || IsKnown(rest)) continue;
    const bool is_of_service =
        std::any_of(services.begin(), services.end(),
                    [&](const std::string& service) { return IsOfService(name, service); });
    if (!is_of_service) unknown.push_back({std::string(name), Meant(rest)});
  }
  return unknown;
}

std::vector<UnknownVariable> UnknownVariables() {
  std::vector<absl::string_view> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return UnknownVariables(environment);
}

void WarnOfUnknownVariables() {
  for (const UnknownVariable& unknown : UnknownVariables()) {
    const bool is_misspelt = !unknown.meant.empty();
    base::Log(is_misspelt ? base::kWarning : base::kDebug,
              "an environment variable is ignored: nothing of muster reads it",
              {{"variable", unknown.name},
               {"meant", is_misspelt ? unknown.meant : "none that is known"}});
  }
}

void CheckVariablesAreKnown(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    const std::string name = option->get_envname();
    absl::string_view rest = name;
    MUSTER_DCHECK(!absl::ConsumePrefix(&rest, kPrefix) || IsKnown(rest), name,
                  " is no known variable");
  }
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CheckVariablesAreKnown(*command);
  }
}

}  // namespace muster::host
