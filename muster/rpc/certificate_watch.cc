// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/certificate_watch.h"

#include <algorithm>
#include <stop_token>

#include "muster/base/log.h"
#include "muster/rpc/tls.h"
#include "muster/telemetry/catalogue.h"

namespace muster::rpc {

CertificateWatch::CertificateWatch(const std::vector<std::string>& files,
                                   telemetry::Registry* metrics, base::Clock* clock,
                                   EndedAlready ended)
    : clock_(clock),
      expiry_(metrics, telemetry::kCertificateExpiry),
      lifetime_(metrics, telemetry::kCertificateLifetime) {
  for (const std::string& file : files) {
    if (file.empty()) continue;
    const absl::StatusOr<Validity> now = ValidityOf(file);
    const bool is_told = ended == EndedAlready::kIsTold && now.ok() && now->end <= clock_->Now();
    files_[file] = is_told ? Seen{now->end, Stage::kEnded} : Seen{};
  }
  if (files_.empty()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    do {
      for (auto& [file, seen] : files_) Look(file, &seen);
    } while (base::SleepUnlessStopped(clock_, kCertificateLook, stop));
  });
}

void CertificateWatch::Look(const std::string& file, Seen* seen) {
  const absl::StatusOr<Validity> certificate = ValidityOf(file);
  if (!certificate.ok()) return;
  if (seen->end != certificate->end) *seen = {certificate->end, Stage::kSound};
  const absl::Duration left = certificate->end - clock_->Now();
  const absl::Duration life = certificate->end - certificate->begin;
  expiry_.With({file}).Set(absl::ToDoubleSeconds(certificate->end - absl::UnixEpoch()));
  lifetime_.With({file}).Set(absl::ToDoubleSeconds(life));
  const Stage stage = left <= absl::ZeroDuration()                         ? Stage::kEnded
                      : left < std::min(kMaxWarning, kWarningShare * life) ? Stage::kEndsSoon
                                                                           : Stage::kSound;
  if (stage <= seen->stage) return;
  seen->stage = stage;
  base::Log(base::kWarning,
            stage == Stage::kEnded ? "a certificate is not valid now"
                                   : "a certificate ends soon, and was not renewed",
            {{"certificate", file}, {"valid_until", absl::FormatTime(certificate->end)}});
}

}  // namespace muster::rpc
