#include "muster/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(Utf8Test, AcceptsTheFirstAndLastCharacterOfEachLength) {
  for (const char* text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
                           "naïve café, 数, 🐕, and plain text around"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
  EXPECT_TRUE(IsValidUtf8(absl::string_view("\0", 1)));
}

TEST(Utf8Test, RefusesWhatNoEncoderWrites) {
  for (const char* text : {
           "\x80",              // continues nothing
           "\xc3",              // cut off
           "\xe2\x82",          //
           "\xc0\xaf",          // overlong
           "\xe0\x9f\xbf",      //
           "\xf0\x8f\xbf\xbf",  //
           "\xed\xa0\x80",      // surrogate
           "\xf4\x90\x80\x80",  // above U+10FFFF
           "\xff",              //
           "12345678\xc3"       // behind eight good bytes
       }) {
    EXPECT_FALSE(IsValidUtf8(text));
  }
}

TEST(Utf8Test, DoesNotCountControlCharactersAsPrintable) {
  EXPECT_EQ(PrintableUtf8Prefix("é"), 2u);
  EXPECT_EQ(PrintableUtf8Prefix(" "), 1u);
  for (const char* control : {"\n", "\x1b", "\x7f", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"}) {
    EXPECT_EQ(PrintableUtf8Prefix(control), 0u);
    EXPECT_GT(Utf8Prefix(control), 0u);
  }
}

}  // namespace
}  // namespace muster::base
