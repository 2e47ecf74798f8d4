// SPDX-License-Identifier: Apache-2.0
#include "cli/server/mesh_client.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Instance Processor(const std::string& version, v1::Role role = v1::ROLE_PROCESSOR) {
  v1::Instance instance;
  instance.mutable_info()->set_role(role);
  v1::HandlerVersion& handler = *instance.mutable_info()->add_handlers();
  handler.set_job("shop");
  handler.set_version(version);
  return instance;
}

TEST(HandlerInventoryTest, AreThoseOfProcessorsThatStay) {
  std::vector<v1::Instance> instances = {Processor("2"), Processor("1"), Processor("2"),
                                         Processor("3"), Processor("4", v1::ROLE_CONTROLLER)};
  instances[3].set_leaving(true);
  const HandlerInventory there(instances);
  EXPECT_THAT(there.VersionsOf("shop"), ElementsAre("1", "2"));
  EXPECT_THAT(there.VersionsOf("bakery"), IsEmpty());
}

}  // namespace
}  // namespace muster::cli
