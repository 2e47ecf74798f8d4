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

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "muster/job/limits.h"

namespace muster::cli {

namespace {

void AddTimeout(CLI::App* command, ServerOptions* server) {
  args::AddFunction(
      command, "--timeout",
      [server](const std::string& text) {
        absl::Duration timeout;
        if (!absl::ParseDuration(text, &timeout) || timeout <= absl::ZeroDuration()) {
          args::Refuse("--timeout", absl::StrCat("'", text, "' is no time like 30s"));
        }
        server->timeout = timeout;
      },
      "How long a call to a server may take, such as 30s")
      .Envname("MUSTER_TIMEOUT");
}

args::Option AddServerOptions(CLI::App* command, ServerOptions* server) {
  const args::Option address = args::Add(
      command, "--server", &server->address,
      absl::StrCat("HOST:PORT of an initiator to work on; ", kServerVariable, " sets the default"));
  args::Add(command, "--tls-roots", &server->tls_roots,
            "PEM file: trusted roots of servers' certificates")
      .Envname("MUSTER_TLS_ROOTS");
  args::Add(command, "--tls-cert", &server->tls_certificate, "PEM file: this client's certificate")
      .Envname("MUSTER_TLS_CERT");
  args::Add(command, "--tls-key", &server->tls_key, "PEM file: the certificate's key")
      .Envname("MUSTER_TLS_KEY");
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
  if (server.tls_key.empty()) args::RefuseWithout("--tls-cert", "--tls-key");
  args::RefuseWithout("--tls-key", "--tls-cert");
}

}  // namespace

void AddDataDirOrServer(CLI::App* command, CommonOptions* options) {
  AddDataDir(command, options);
  const args::Option here = args::Find(command, "--data-dir");
  const args::Option there = AddServerOptions(command, &options->server);
  args::OnParsed(command, [command, options, here, there] {
    const bool is_here = args::IsOnCommandLine(*command, here);
    const bool is_there = args::IsOnCommandLine(*command, there);
    if (is_here && is_there) args::RefuseBoth("--server", "--data-dir");
    if (!is_here && !is_there) TakeDefaultServer(&options->server);
    RequireWholeIdentity(options->server);
  });
}

void AddOwnDataDir(CLI::App* command, CommonOptions* options) {
  AddDataDir(command, options);
  const args::Option here = args::Find(command, "--data-dir");
  args::OnParsed(command, [here] {
    ServerOptions server;
    TakeDefaultServer(&server);
    if (here.count() > 0 || !server.named()) return;
    args::Refuse(kServerVariable,
                 "this command reads the files of a data directory, not a server's: name it "
                 "with --data-dir DIR or MUSTER_DATA_DIR, on that server's host");
  });
}

void AddController(CLI::App* command, CommonOptions* options) {
  args::Add(command, "--controller", &options->server.controller,
            "HOST:PORT of the controller; without it, the initiator names one")
      .Envname("MUSTER_CONTROLLER");
}

void AddServer(CLI::App* command, CommonOptions* options) {
  const args::Option there = AddServerOptions(command, &options->server);
  args::OnParsed(command, [command, options, there] {
    if (!args::IsOnCommandLine(*command, there)) TakeDefaultServer(&options->server);
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
  args::AddFunction(
      command, "--sla",
      [sla](const std::string& text) {
        const absl::StatusOr<absl::Duration> parsed = base::ParseDuration(text);
        if (!parsed.ok() || *parsed < job::kMinSla || *parsed > job::kMaxSla) {
          args::Refuse("--sla", absl::StrCat("'", text, "' is no time like 5m"));
        }
        *sla = *parsed;
      },
      about);
}

void AddLabels(CLI::App* command, const char* about, item::Labels* labels) {
  args::AddFunction(
      command, "--label",
      [labels](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          const auto label = item::ParseLabel(text);
          if (label.ok()) (*labels)[label->first] = label->second;
        }
      },
      about)
      .TypeName("NAME=VALUE")
      .Check([](const std::string& text) {
        return std::string(item::ParseLabel(text).status().message());
      })
      .Repeatable();
}

args::Option AddRequestId(CLI::App* command, const char* about, std::string* id) {
  return args::Add(command, "--request-id", id, about)
      .Check([](const std::string& text) -> std::string {
        return text.empty() ? "an empty text names no submission" : "";
      });
}

void AddTraceparent(CLI::App* command, std::string* traceparent) {
  args::Add(command, "--traceparent", traceparent,
            "W3C trace that the batch belongs to; without it, TRACEPARENT of the "
            "environment, or a new one")
      .Check([](const std::string& text) -> std::string {
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
