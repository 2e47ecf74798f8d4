// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/certificate_watch.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/telemetry/registry.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/rpc/test_certificates.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::rpc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The certificates live for 100 days, from now on.
class CertificateWatchTest : public ::testing::Test {
 protected:
  static constexpr int kDay = 24 * 3600;

  CertificateWatchTest() {
    clock_.StepWallClock(absl::Now() - clock_.Now());
    authority_.Issue("server", "DNS:localhost", link_, 100 * kDay);
  }

  // The watch looks after this, and sleeps again.
  void Pass(absl::Duration time) {
    clock_.AwaitSleepers(1);
    clock_.StepWallClock(time);
    clock_.Advance(kCertificateLook);
    clock_.AwaitSleepers(1);
  }

  // A metric of the certificate.
  std::optional<double> Metric(const std::string& name) {
    return telemetry::Shown(registry_, absl::StrCat(name, "{certificate=\"", file_, "\"}"));
  }

  const os::TempDir folder_;
  const std::string link_ = folder_ / "server";
  const std::string file_ = FilesBehind(link_, "").certificate;
  TestAuthority authority_{"muster tests"};
  base::FakeClock clock_;
  telemetry::Registry registry_;
  base::LogCapture log_{base::kWarning};
};

// A certificate that ended while a service ran was told nowhere.
TEST_F(CertificateWatchTest, WarnsOnceBeforeTheEndAndOnceAtTheEnd) {
  const CertificateWatch watch({file_, ""}, &registry_, &clock_);
  Pass(absl::Hours(92 * 24));
  EXPECT_THAT(log_.lines(), IsEmpty());
  Pass(absl::Hours(24 + 1));
  const auto soon = AllOf(HasSubstr("a certificate ends soon"), HasSubstr(file_));
  EXPECT_THAT(log_.lines(), ElementsAre(soon));
  Pass(absl::Hours(24));
  EXPECT_THAT(log_.lines(), ElementsAre(soon));
  Pass(absl::Hours(10 * 24));
  const auto ended = AllOf(HasSubstr("a certificate is not valid now"), HasSubstr(file_));
  EXPECT_THAT(log_.lines(), ElementsAre(soon, ended));
  Pass(absl::Hours(24));
  EXPECT_THAT(log_.lines(), ElementsAre(soon, ended));
}

TEST_F(CertificateWatchTest, SaysNothingOfOneThatIsRenewed) {
  const CertificateWatch watch({file_}, &registry_, &clock_);
  Pass(absl::Hours(80 * 24));
  authority_.Issue("server", "DNS:localhost", link_, 180 * kDay);
  Pass(absl::Hours(80 * 24));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(CertificateWatchTest, LeavesOneThatHadEndedToWhoReadIt) {
  clock_.StepWallClock(absl::Hours(101 * 24));
  const CertificateWatch watch({file_}, &registry_, &clock_);
  Pass(absl::Hours(1));
  EXPECT_THAT(log_.lines(), IsEmpty());
  const CertificateWatch other({file_}, &registry_, &clock_, CertificateWatch::EndedAlready::kTell);
  clock_.AwaitSleepers(2);
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("a certificate is not valid now")));
}

TEST_F(CertificateWatchTest, ShowsWhenACertificateEndsAndWhenItsSuccessorDoes) {
  const CertificateWatch watch({file_}, &registry_, &clock_);
  clock_.AwaitSleepers(1);
  const double begun = absl::ToUnixSeconds(clock_.Now());
  EXPECT_NEAR(*Metric("muster_certificate_expiry_timestamp_seconds"), begun + 100.0 * kDay, 60);
  EXPECT_NEAR(*Metric("muster_certificate_lifetime_seconds"), 100.0 * kDay, 2 * 3600)
      << "it begins some time before it is issued";
  authority_.Issue("server", "DNS:localhost", link_, 180 * kDay);
  Pass(absl::ZeroDuration());
  EXPECT_NEAR(*Metric("muster_certificate_expiry_timestamp_seconds"), begun + 180.0 * kDay, 60);
}

}  // namespace
}  // namespace muster::rpc
