// SPDX-License-Identifier: Apache-2.0
#include "muster/base/fingerprint.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::base {
namespace {

// Stored records carry these: the golden values must never change.
TEST(FingerprintTest, IsXxh3Forever) {
  EXPECT_EQ(Fingerprint("").ToHex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Fingerprint("muster").ToHex(), "90d256a5656efe7ed3172c6c7a83b39c");
}

TEST(FingerprintTest, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  for (size_t piece : {1u, 7u, 64u, 1023u}) {
    Fingerprinter pieces;
    Sha256 sha;
    for (size_t at = 0; at < text.size(); at += piece) {
      pieces.Update(absl::string_view(text).substr(at, piece));
      sha.Update(absl::string_view(text).substr(at, piece));
    }
    EXPECT_EQ(pieces.Digest(), Fingerprint(text)) << piece;
    EXPECT_EQ(sha.HexDigest(), Sha256Hex(text)) << piece;
  }
}

TEST(FingerprintTest, CanGoOnAfterADigest) {
  Fingerprinter fingerprinter;
  Sha256 sha;
  fingerprinter.Update("a");
  sha.Update("a");
  EXPECT_EQ(fingerprinter.Digest(), Fingerprint("a"));
  EXPECT_EQ(sha.HexDigest(), Sha256Hex("a"));
  fingerprinter.Update("b");
  sha.Update("b");
  EXPECT_EQ(fingerprinter.Digest(), Fingerprint("ab"));
  EXPECT_EQ(sha.HexDigest(), Sha256Hex("ab"));
}

TEST(FingerprintTest, ReadsItsHexBack) {
  const Fingerprint128 fingerprint = Fingerprint("x");
  EXPECT_EQ(Fingerprint128::FromHex(fingerprint.ToHex()), fingerprint);
}

TEST(FingerprintTest, ReadsItsBytesBack) {
  const Fingerprint128 fingerprint{0x0102030405060708, 0xf1f2f3f4f5f6f7f8};
  EXPECT_EQ(fingerprint.ToBytes(),
            "\x01\x02\x03\x04\x05\x06\x07\x08\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8");
  EXPECT_EQ(Fingerprint128::FromBytes(fingerprint.ToBytes()), fingerprint);
  EXPECT_FALSE(Fingerprint128::FromBytes(std::string(15, 'a')).has_value());
  EXPECT_FALSE(Fingerprint128::FromBytes(std::string(17, 'a')).has_value());
}

TEST(FingerprintTest, RefusesHexThatIsNone) {
  EXPECT_FALSE(Fingerprint128::FromHex("").has_value());
  EXPECT_FALSE(Fingerprint128::FromHex(std::string(31, 'a')).has_value());
  EXPECT_FALSE(Fingerprint128::FromHex(std::string(33, 'a')).has_value());
  EXPECT_FALSE(Fingerprint128::FromHex(std::string(31, 'a') + "g").has_value());
  EXPECT_FALSE(Fingerprint128::FromHex("0x" + std::string(30, 'a')).has_value());
  EXPECT_FALSE(Fingerprint128::FromHex(" -" + std::string(30, 'a')).has_value());
}

TEST(Sha256Test, GivesThePublishedValues) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace muster::base
