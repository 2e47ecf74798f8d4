// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/grpc_log.h"

#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/os/process_limits.h"

namespace muster::rpc {
namespace {

// gRPC's last words, before it aborts, when a server that starts gets no thread for its calls.
constexpr absl::string_view kNoThread = "assertion failed: worker->created()";

// What gRPC 1.51 starts with its first channel or server, unheeding whether they run: two executors
// and a timer, and another timer while the first is busy.
constexpr int kGrpcThreads = 4;

// Never destroyed: threads of gRPC's may log while the process ends.
SaidLines* Said() {
  static auto* const said = new SaidLines;
  return said;
}

void Forward(gpr_log_func_args* args) {
  const bool is_detail = args->severity == GPR_LOG_SEVERITY_DEBUG ||
                         !Said()->IsNew(args->message, base::RealClock()->Monotonic());
  base::Log(is_detail ? base::kDebug : base::kWarning, "gRPC",
            {{"what", args->message}, {"at", absl::StrCat(args->file, ":", args->line)}});
  if (args->severity == GPR_LOG_SEVERITY_ERROR && args->message == kNoThread) {
    os::ExitForWantOfThreads();
  }
}

// Protobuf's complaints of messages that it cannot read: whoever sends these has an answer.
void ForwardProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                     const std::string& what) {
  const std::string at = absl::StrCat(file, ":", line);
  const bool is_new = Said()->IsNew(at, base::RealClock()->Monotonic());
  const bool is_detail = level == google::protobuf::LOGLEVEL_INFO || !is_new;
  base::Log(is_detail ? base::kDebug : base::kWarning, "protobuf", {{"what", what}, {"at", at}});
}

}  // namespace

bool SaidLines::IsNew(const std::string& line, absl::Duration now) {
  base::MutexLock lock(&mu_);
  const auto [said_at, is_first] = said_.FindOrAdd(line);
  if (!is_first && now - *said_at < kGrpcRepeats) return false;
  *said_at = now;
  return true;
}

void PrepareGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    os::ExitUnlessThreadsStart(kGrpcThreads);
    gpr_set_log_function(&Forward);
    google::protobuf::SetLogHandler(&ForwardProtobuf);
  });
}

}  // namespace muster::rpc
