// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/sas_time.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::queue_gateway::auth {
namespace {

std::string Read(absl::string_view text) {
  const std::optional<absl::Time> time = ParseSasTime(text);
  if (!time.has_value()) return "none";
  return absl::FormatTime("%Y-%m-%d %H:%M:%E*S", *time, absl::UTCTimeZone());
}

TEST(SasTimeTest, ReadsTheFormsThatClientsSend) {
  EXPECT_EQ(Read("2026-02-28"), "2026-02-28 00:00:00");
  EXPECT_EQ(Read("2026-02-28T13:30Z"), "2026-02-28 13:30:00");
  EXPECT_EQ(Read("2026-02-28T13:30:59Z"), "2026-02-28 13:30:59");
  EXPECT_EQ(Read("2026-02-28T13:30:59.5Z"), "2026-02-28 13:30:59.5");
  EXPECT_EQ(Read("2026-02-28T13:30:59.1234567Z"), "2026-02-28 13:30:59.1234567");
  EXPECT_EQ(Read("2026-02-28T13:30+02:00"), "2026-02-28 11:30:00");
  EXPECT_EQ(Read("2026-02-28T23:30:00-00:45"), "2026-03-01 00:15:00");
  EXPECT_EQ(Read("2024-02-29"), "2024-02-29 00:00:00");
  EXPECT_EQ(Read("9999-12-31T23:59:59Z"), "9999-12-31 23:59:59");
}

TEST(SasTimeTest, RefusesEverythingElse) {
  for (const char* const text : {"",
                                 "2026",
                                 "2026-2-28",
                                 "2026-02-30",
                                 "2026-13-01",
                                 "2026-00-01",
                                 "2026-02-28T",
                                 "2026-02-28Z",
                                 "2026-02-28T13Z",
                                 "2026-02-28T13:30",
                                 "2026-02-28T13:30:59",
                                 "2026-02-28T24:00Z",
                                 "2026-02-28T13:60Z",
                                 "2026-02-28T13:30:60Z",
                                 "2026-02-28 13:30Z",
                                 "2026-02-28t13:30Z",
                                 "2026-02-28T13:30z",
                                 "2026-02-28T13:30:59.Z",
                                 "2026-02-28T13:30:59.1234567890Z",
                                 "2026-02-28T13:30+2:00",
                                 "2026-02-28T13:30+15:00",
                                 "2026-02-28T13:30+02",
                                 " 2026-02-28",
                                 "2026-02-28 ",
                                 "+026-02-28",
                                 "infinite-future",
                                 "2026-02-28T13:30ZZ",
                                 "02/28/2026"}) {
    EXPECT_EQ(Read(text), "none") << text;
  }
}

}  // namespace
}  // namespace muster::queue_gateway::auth
