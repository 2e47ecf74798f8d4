// SPDX-License-Identifier: Apache-2.0
#include "cli/server/options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/quantity.h"
#include "muster/job/limits.h"

namespace muster::cli {

namespace {

bool IsOnCommandLine(const CLI::App& command, const CLI::Option* option) {
  const auto& order = command.parse_order();
  return std::find(order.begin(), order.end(), option) != order.end();
}

void AddTimeout(CLI::App* command, ServerOptions* server) {
  command
      ->add_option_function<std::string>(
          "--timeout",
          [server](const std::string& text) {
            absl::Duration timeout;
            if (!absl::ParseDuration(text, &timeout) || timeout <= absl::ZeroDuration()) {
              throw CLI::ValidationError("--timeout",
                                         absl::StrCat("'", text, "' is no time like 30s"));
            }
            server->timeout = timeout;
          },
          "How long a call to a server may take, such as 30s")
      ->envname("MUSTER_TIMEOUT");
}

CLI::Option* AddServerOptions(CLI::App* command, ServerOptions* server) {
  CLI::Option* const address = command->add_option(
      "--server", server->address,
      absl::StrCat("HOST:PORT of an initiator to work on; ", kServerVariable, " sets the default"));
  command
      ->add_option("--tls-roots", server->tls_roots,
                   "PEM file: trusted roots of servers' certificates")
      ->envname("MUSTER_TLS_ROOTS");
  command->add_option("--tls-cert", server->tls_certificate, "PEM file: this client's certificate")
      ->envname("MUSTER_TLS_CERT");
  command->add_option("--tls-key", server->tls_key, "PEM file: the certificate's key")
      ->envname("MUSTER_TLS_KEY");
  AddTimeout(command, server);
  return address;
}

void TakeDefaultServer(ServerOptions* server) {
  const char* const address = std::getenv(kServerVariable);  // NOLINT(concurrency-mt-unsafe): alone
  if (address != nullptr) server->address = address;
}

// Of files that no server is called with, it does not matter.
void RequireWholeIdentity(const ServerOptions& server) {
  if (!server.named() || server.tls_certificate.empty() == server.tls_key.empty()) return;
  if (server.tls_key.empty()) throw CLI::RequiresError("--tls-cert", "--tls-key");
  throw CLI::RequiresError("--tls-key", "--tls-cert");
}

}  // namespace

void AddDataDirOrServer(CLI::App* command, CommonOptions* options) {
  AddDataDir(command, options);
  const CLI::Option* const here = command->get_option("--data-dir");
  const CLI::Option* const there = AddServerOptions(command, &options->server);
  command->parse_complete_callback([command, options, here, there] {
    const bool is_here = IsOnCommandLine(*command, here);
    const bool is_there = IsOnCommandLine(*command, there);
    if (is_here && is_there) throw CLI::ExcludesError("--server", "--data-dir");
    if (!is_here && !is_there) TakeDefaultServer(&options->server);
    RequireWholeIdentity(options->server);
  });
}

void AddOwnDataDir(CLI::App* command, CommonOptions* options) {
  AddDataDir(command, options);
  const CLI::Option* const here = command->get_option("--data-dir");
  command->parse_complete_callback([here] {
    ServerOptions server;
    TakeDefaultServer(&server);
    if (!here->empty() || !server.named()) return;
    throw CLI::ValidationError(
        kServerVariable,
        "this command reads the files of a data directory, not a server's: name it "
        "with --data-dir DIR or MUSTER_DATA_DIR, on that server's host");
  });
}

void AddController(CLI::App* command, CommonOptions* options) {
  command
      ->add_option("--controller", options->server.controller,
                   "HOST:PORT of the controller; without it, the initiator names one")
      ->envname("MUSTER_CONTROLLER");
}

void AddServer(CLI::App* command, CommonOptions* options) {
  const CLI::Option* const there = AddServerOptions(command, &options->server);
  command->parse_complete_callback([command, options, there] {
    if (!IsOnCommandLine(*command, there)) TakeDefaultServer(&options->server);
    RequireWholeIdentity(options->server);
  });
}

absl::Status RequireFolder(const std::string& data_dir) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(data_dir, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--data-dir ", data_dir, " is a file; it must be a folder"));
}

absl::Status RequireDataDir(const std::string& data_dir) {
  std::error_code error;
  if (std::filesystem::exists(data_dir, error) || error) return RequireFolder(data_dir);
  return absl::NotFoundError(absl::StrCat("no data in directory ", data_dir,
                                          "; name the one to look at with --data-dir DIR or ",
                                          "MUSTER_DATA_DIR"));
}

absl::Status RequireServer(const CommonOptions& options, absl::string_view what) {
  if (options.server.named()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": name one with --server HOST:PORT or ", kServerVariable,
      "; `muster up --data-dir DIR` is one, also of what `muster run` has left in DIR"));
}

namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): alone
  return value == nullptr ? "" : value;
}

// With the state that goes with it, where that can be passed on.
absl::StatusOr<base::TraceContext> FromEnvironment(const std::string& traceparent) {
  auto trace = base::TraceContext::FromTraceparent(traceparent);
  if (!trace.ok()) return trace;
  std::string state = Variable("TRACESTATE");
  if (base::CheckTraceState(state).ok()) trace->state = std::move(state);
  return trace;
}

}  // namespace

void AddSla(CLI::App* command, const char* about, std::optional<absl::Duration>* sla) {
  command->add_option_function<std::string>(
      "--sla",
      [sla](const std::string& text) {
        const absl::StatusOr<absl::Duration> parsed = base::ParseDuration(text);
        if (!parsed.ok() || *parsed < job::kMinSla || *parsed > job::kMaxSla) {
          throw CLI::ValidationError("--sla", absl::StrCat("'", text, "' is no time like 5m"));
        }
        *sla = *parsed;
      },
      about);
}

void AddLabels(CLI::App* command, const char* about, item::Labels* labels) {
  command
      ->add_option_function<std::vector<std::string>>(
          "--label",
          [labels](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const auto label = item::ParseLabel(text);
              if (label.ok()) (*labels)[label->first] = label->second;
            }
          },
          about)
      ->type_name("NAME=VALUE")
      ->check([](const std::string& text) {
        return std::string(item::ParseLabel(text).status().message());
      })
      ->expected(1)
      ->take_all();
}

void AddTraceparent(CLI::App* command, std::string* traceparent) {
  command
      ->add_option("--traceparent", *traceparent,
                   "W3C trace that the batch belongs to; without it, TRACEPARENT of the "
                   "environment, or a new one")
      ->check([](const std::string& text) -> std::string {
        const auto trace = base::TraceContext::FromTraceparent(text);
        return trace.ok() ? "" : absl::StrCat("'", text, "' ", trace.status().message());
      });
}

std::optional<base::TraceContext> TraceOfCaller(const std::string& traceparent,
                                                const Environment& environment) {
  if (!traceparent.empty()) return base::TraceContext::FromTraceparent(traceparent).value();
  const std::string inherited = Variable("TRACEPARENT");
  if (inherited.empty()) return std::nullopt;
  auto trace = FromEnvironment(inherited);
  if (trace.ok()) return *std::move(trace);
  *environment.err << "muster: TRACEPARENT is ignored: it " << trace.status().message() << "\n";
  return std::nullopt;
}

}  // namespace muster::cli
