// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/directory_id.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::initiator::submit {
namespace {

TEST(DirectoryIdTest, StaysWithItsDirectory) {
  const os::TempDir dir;
  const std::string id = OpenDirectoryId(dir.path()).value();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(OpenDirectoryId(dir.path()).value(), id);
  const os::TempDir other;
  EXPECT_NE(OpenDirectoryId(other.path()).value(), id);
  std::ofstream(dir / "initiator-id") << "nonsense\n";
  EXPECT_TRUE(absl::IsDataLoss(OpenDirectoryId(dir.path()).status()));
}

}  // namespace
}  // namespace muster::initiator::submit
