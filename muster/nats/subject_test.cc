#include "muster/nats/subject.h"

#include "gtest/gtest.h"

namespace muster::nats {
namespace {

TEST(SubjectTest, MakesATokenOfAnyText) {
  EXPECT_EQ(SubjectToken("processor-host_1-4f"), "processor-host_1-4f");
  EXPECT_EQ(SubjectToken(""), "=");
  EXPECT_EQ(SubjectToken("a.b *>"), "a=2Eb=20=2A=3E");
  EXPECT_EQ(SubjectToken("\xc3\xa4="), "=C3=A4=3D");
}

}  // namespace
}  // namespace muster::nats
