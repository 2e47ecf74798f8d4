// SPDX-License-Identifier: Apache-2.0

// CertificateWatch: warns of certificates that end while a service uses them, and shows metrics
// when they do. Peers refuse one that has ended, and gRPC tells neither side why.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/telemetry/registry.h"

namespace muster::rpc {

// A certificate ends soon when less than kMaxWarning, and less than this share of its life, is
// left: then whoever renews certificates has missed their time, which is a third of the life
// before.
inline constexpr double kWarningShare = 0.1;
inline constexpr absl::Duration kMaxWarning = absl::Hours(7 * 24);
// How often it looks: often enough for certificates that live for an hour.
inline constexpr absl::Duration kCertificateLook = absl::Minutes(1);

// Has a thread of its own, unless there is no file.
class CertificateWatch {
 public:
  // Who warns of a certificate that has ended already: whoever reads it for gRPC does (tls.h).
  enum class EndedAlready { kIsTold, kTell };

  // `files` hold a certificate in PEM form each; empty names are passed over. `metrics` may be
  // null. It and `clock` are not owned and outlive this.
  CertificateWatch(const std::vector<std::string>& files, telemetry::Registry* metrics,
                   base::Clock* clock, EndedAlready ended = EndedAlready::kIsTold);
  CertificateWatch(const CertificateWatch&) = delete;
  CertificateWatch& operator=(const CertificateWatch&) = delete;

 private:
  enum class Stage { kSound, kEndsSoon, kEnded };
  struct Seen {
    absl::Time end = absl::InfinitePast();  // tells a renewed certificate from the one before
    Stage stage = Stage::kSound;            // that was told
  };

  // A file that cannot be read is passed over: what was read before stays in use.
  void Look(const std::string& file, Seen* seen);

  base::Clock* const clock_;  // not owned
  const telemetry::Gauges<1> expiry_;
  const telemetry::Gauges<1> lifetime_;
  std::map<std::string, Seen> files_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace muster::rpc
