// SPDX-License-Identifier: Apache-2.0
#include "services/processor/processor_role.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/os/process_identity.h"
#include "muster/partition/member_metrics.h"
#include "muster/release/releases.h"
#include "muster/telemetry/catalogue.h"
#include "services/processor/processor.h"

namespace muster::processor {

namespace {

// A service takes jobs from others: it runs what its own people allow.
ServiceOptions Limited(ServiceOptions options, const host::HostOptions& host) {
  if (!options.handlers.programs.has_value()) {
    options.handlers.programs = UsualPrograms(host.is_on_loopback());
  }
  return options;
}

}  // namespace

ProcessorRole::ProcessorRole(const handler::HandlerRegistry* handlers,
                             const host::HostOptions& host, const ServiceOptions& options,
                             base::Clock* clock)
    : host_(host),
      content_from_initiator_(options.content_from_initiator),
      clock_(clock),
      service_(handlers, Limited(options, host), clock),
      workers_(&service_, clock),
      load_(&service_),
      standby_(options.standby.empty() ? nullptr
                                       : std::make_unique<Standby>(options.standby, clock)) {}

// The host calls this again after a transient error, so each part that is already open stays.
absl::Status ProcessorRole::Open(const host::Stores& stores, const host::Fail& fail) {
  if (membership_ == nullptr) {
    const auto complete = [this](absl::Duration window, v1::Heartbeat* heartbeat) {
      load_.AddTo(window, heartbeat);
      if (standby_ != nullptr) standby_->AddTo(heartbeat);
    };
    MUSTER_ASSIGN_OR_RETURN(membership_, host::Membership::Join(v1::ROLE_PROCESSOR, host_.instance,
                                                                stores, clock_, complete));
  }
  if (jobs_ == nullptr) {
    jobs_ = std::make_unique<job::JobRegistry>(stores.sync, clock_);
    cancelled_ = std::make_unique<item::CancelledBatches>(stores.sync);
    suspended_ = std::make_unique<item::SuspendedBatches>(stores.sync);
    ledgers_ = std::make_unique<ledger::remote::RemoteBatchRecords>(
        [this] { return membership_->AddressesOf(v1::ROLE_INITIATOR); }, host_.channel());
    content_ = std::make_unique<content::remote::RemoteContent>(
        ledgers_.get(), content_from_initiator_ ? "" : os::BootId());
  }
  partition::ShowMemberMetrics(stores.metrics);
  telemetry::FamilyOf(stores.metrics, telemetry::kParkedProcessors.entry());
  if (!works_) MUSTER_RETURN_IF_ERROR(StartService(stores));
  works_ = true;
  if (standby_ == nullptr) return absl::OkStatus();
  return standby_->Begin(stores.sync, stores.bus,
                         {.go = [this] { service_.Unpark(); },
                          .announce = [this] { membership_->Announce(); },
                          .fail = fail},
                         stores.metrics);
}

absl::Status ProcessorRole::StartService(const host::Stores& stores) {
  return service_.Start({.queues = stores.queues,
                         .bus = stores.bus,
                         .blobs = stores.blobs,
                         .clock = clock_,
                         .content = content_.get(),
                         .cancelled = cancelled_.get(),
                         .suspended = suspended_.get(),
                         .is_over = [this](uint64_t batch) { return IsOver(batch); },
                         .metrics = stores.metrics,
                         .spans = stores.spans,
                         .sync = stores.sync},
                        jobs_.get());
}

absl::StatusOr<bool> ProcessorRole::IsOver(uint64_t number) {
  return ledger::IsOver(*ledgers_, number);
}

std::vector<rpc::ServedService> ProcessorRole::services() {
  return {{v1::WorkerService::service_full_name(), &workers_},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

void ProcessorRole::Drain(absl::Duration grace) {
  if (membership_ != nullptr) membership_->Leave();
  if (standby_ != nullptr) standby_->Stop();
  service_.Stop(grace);
}

// The workers ask through ledgers_, and these through membership_.
void ProcessorRole::Close() {
  service_.Close();
  content_.reset();
  ledgers_.reset();
  membership_.reset();
  works_ = false;
  suspended_.reset();
  cancelled_.reset();
  jobs_.reset();
}

namespace {

constexpr char kJob[] = "--job";
constexpr char kPrograms[] = "--handler-programs";
constexpr char kPassed[] = "--handler-env";
// The largest number of processes that Linux can have.
constexpr int kMaxHandlerProcesses = 1 << 22;

[[noreturn]] void Refuse(const std::string& text, const std::string& why) {
  args::Refuse(kJob, absl::StrCat("'", text, "': ", why));
}

// Parses "NAME" or "NAME=THREADS".
JobPool ParsePool(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  JobPool pool{parts.first};
  if (pool.job.empty()) Refuse(text, "no job is named");
  const bool has_number = pool.job.size() < text.size();
  if (has_number && (!absl::SimpleAtoi(parts.second, &pool.threads) || pool.threads < 1 ||
                     pool.threads > kMaxThreads)) {
    Refuse(text, absl::StrCat("a job has 1 to ", kMaxThreads, " workers"));
  }
  return pool;
}

std::vector<JobPool> ParsePools(const std::vector<std::string>& texts) {
  std::vector<JobPool> pools;
  for (const std::string& text : texts) {
    JobPool pool = ParsePool(text);
    const bool is_there = std::any_of(pools.begin(), pools.end(),
                                      [&](const JobPool& other) { return other.job == pool.job; });
    if (is_there) Refuse(text, absl::StrCat("job ", pool.job, " is named twice"));
    pools.push_back(std::move(pool));
  }
  return pools;
}

// Adds an option such as `--handler-memory 2GiB`; "none" is 0.
void AddBytes(CLI::App* app, const std::string& name, const std::string& usual,
              const std::string& help, std::function<void(uint64_t)> set) {
  const auto check = [](const std::string& text) -> std::string {
    if (text == "none") return "";
    const absl::StatusOr<int64_t> bytes = base::ParseBytes(text);
    if (!bytes.ok()) return std::string(bytes.status().message());
    return *bytes > 0 ? "" : "0 bytes are too few; \"none\" is no limit";
  };
  const auto take = [set = std::move(set)](const std::string& text) {
    set(text == "none" ? 0 : static_cast<uint64_t>(base::ParseBytes(text).value_or(0)));
  };
  args::AddFunction(app, name, take, help)
      .Check(check, "BYTES")
      .Envname(host::EnvironmentName(name))
      .DefaultStr(usual);
}

// No such variable is there, and no program would get it. The text may hold a secret: it is not
// repeated.
std::string CheckVariable(const std::string& name) {
  if (!name.empty() && name.find_first_of("= \t") == std::string::npos) return "";
  return "takes the names of variables alone, such as DB_URL, without values and blanks";
}

void AddBounds(CLI::App* app, ProgramBounds* bounds) {
  const auto pass = [bounds](const std::vector<std::string>& names) {
    bounds->passed_variables = names;
  };
  args::AddFunction(app, kPassed, pass,
                    "A variable that handler programs get from here; may be given more than once")
      .Envname(host::EnvironmentName(kPassed))
      .Delimiter(',')
      .Check(CheckVariable)
      .TypeName("NAME");
  AddBytes(app, "--handler-memory", "half of the machine's",
           "What each process of a handler program may allocate; none: no limit",
           [bounds](uint64_t bytes) { bounds->memory_bytes = bytes; });
  AddBytes(app, "--handler-file-size",
           base::BytesToString(static_cast<int64_t>(bounds->file_bytes)),
           "How large a file of a handler program may grow; none: no limit",
           [bounds](uint64_t bytes) { bounds->file_bytes = bytes; });
  args::Add(app, "--handler-processes", &bounds->processes,
            "How many processes and threads may come on top of the machine's when a handler "
            "program starts; 0: no limit")
      .Envname(host::EnvironmentName("--handler-processes"))
      .Check(args::Range(0, kMaxHandlerProcesses))
      .CaptureDefaultStr();
}

}  // namespace

void AddHandlerOptions(CLI::App* app, HandlerAccess* access) {
  const auto take = [access](const std::vector<std::string>& texts) {
    access->programs = HandlerPrograms::Of(texts);
  };
  AddBounds(app, &access->bounds);
  args::AddFunction(
      app, kPrograms, take,
      "What a job's command may run: a folder, a program, a pattern, or 'any'; may be given "
      "more "
      "than once")
      .Envname(host::EnvironmentName(kPrograms))
      .Delimiter(',')
      .TypeName("PATH");
  const auto add = [app](const std::string& name, std::string* file, const std::string& help) {
    return args::Add(app, name, file, help).Envname(host::EnvironmentName(name));
  };
  add("--handler-tls-roots", &access->tls.roots,
      "Whose certificates handlers that are servers must show (PEM)");
  const args::Option certificate = add("--handler-tls-cert", &access->tls.certificate,
                                       "Shown to handlers that are servers (PEM)");
  const args::Option key =
      add("--handler-tls-key", &access->tls.key, "That certificate's private key (PEM)");
  certificate.Needs(key);
  key.Needs(certificate);
}

void AddProcessorOptions(CLI::App* app, ServiceOptions* options) {
  options->threads = static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(kMaxThreads)));
  const auto take = [options](const std::vector<std::string>& texts) {
    options->pools = ParsePools(texts);
  };
  args::AddFunction(app, kJob, take,
                    "Work for this job only, with workers of its own; may be given more than once")
      .Envname(host::EnvironmentName(kJob))
      .Delimiter(',')
      .TypeName("NAME[=THREADS]");
  args::Add(app, "--threads", &options->threads,
            "Workers of each job, at most, that has no number of its own")
      .Envname(host::EnvironmentName("--threads"))
      .Check(args::Range(1, kMaxThreads))
      .CaptureDefaultStr();
  args::Add(app, "--standby", &options->standby,
            "Warm up, then take no item before `muster release NAME`")
      .Envname(host::EnvironmentName("--standby"))
      .Check([](const std::string& name) {
        return std::string(release::ValidateName(name).message());
      })
      .TypeName("NAME");
  args::AddFlag(app, "--content-from-initiator", &options->content_from_initiator,
                "Have initiators send the content of items even where their files are on this host")
      .Envname(host::EnvironmentName("--content-from-initiator"));
  AddHandlerOptions(app, &options->handlers);
}

}  // namespace muster::processor
