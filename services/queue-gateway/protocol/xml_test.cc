// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::protocol {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

std::string Problem(absl::string_view document) {
  const absl::StatusOr<XmlElement> parsed = ParseXml(document);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << document;
  return std::string(parsed.status().message());
}

TEST(XmlReaderTest, ReadsElementsAndTheirText) {
  const auto root = ParseXml("\xEF\xBB\xBF<a><b>x &amp; y</b><c/><b>second</b></a>");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->name, "a");
  EXPECT_EQ(root->children.size(), 3u);
  EXPECT_EQ(root->TextOf("b"), "x & y");
  EXPECT_EQ(root->TextOf("c"), "");
  EXPECT_EQ(root->TextOf("d"), std::nullopt);
}

TEST(XmlReaderTest, KeepsSpaceAndCharactersBeyondTheFirstPlane) {
  const auto root = ParseXml("<a>  \xF0\x9F\x98\x80&#x1F600;&#13;<![CDATA[<b>]]> </a>");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->text, "  \xF0\x9F\x98\x80\xF0\x9F\x98\x80\r<b> ");
}

TEST(XmlReaderTest, ReadsUtf16) {
  std::string document = "\xFF\xFE";
  for (const char c : std::string("<a>x</a>")) document += std::string{c, '\0'};
  const auto root = ParseXml(document);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->text, "x");
}

TEST(XmlReaderTest, RefusesWhatIsNotWellFormed) {
  for (const char* document :
       {"", " ", "text", "<a>", "<a></b>", "<a/><b/>", "<a>&nbsp;</a>", "<a>&#0;</a>",
        "<a>&#1;</a>", "<a>\x01</a>", "<a>\xFF</a>", "<a>\xED\xA0\x80</a>", "<a b=c/>"}) {
    EXPECT_THAT(Problem(document), HasSubstr("line")) << document;
  }
  EXPECT_THAT(Problem(absl::string_view("<a>\0</a>", 8)), HasSubstr("line"));
}

// A few lines of entities stand for gigabytes.
TEST(XmlReaderTest, RefusesDocumentTypesAndTheirEntities) {
  EXPECT_THAT(Problem("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"), HasSubstr("document type"));
  EXPECT_THAT(Problem("<!DOCTYPE a [<!ENTITY l \"lol\"><!ENTITY m \"&l;&l;&l;\">]><a>&m;</a>"),
              HasSubstr("document type"));
  EXPECT_THAT(Problem("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"),
              HasSubstr("document type"));
}

TEST(XmlReaderTest, BoundsTheDepthAndTheElements) {
  std::string deep, wide;
  for (int i = 0; i <= kMaxXmlDepth; ++i) deep = absl::StrCat("<a>", deep, "</a>");
  for (int i = 0; i < kMaxXmlElements; ++i) absl::StrAppend(&wide, "<b/>");
  EXPECT_THAT(Problem(deep), HasSubstr("deeply"));
  EXPECT_THAT(Problem(absl::StrCat("<a>", wide, "</a>")), HasSubstr("too many"));
}

TEST(XmlWriterTest, WritesElementsAndEscapesTheirText) {
  XmlWriter xml;
  xml.Open("a", {{"at", "\"<&\""}}).Leaf("b", "x < y & z > \"w\"\r\n\t").Leaf("c", "");
  xml.Open("d").Close().Close();
  EXPECT_EQ(std::move(xml).Finish(),
            absl::StrCat(kHead,
                         "<a at=\"&quot;&lt;&amp;&quot;\"><b>x &lt; y &amp; z &gt; "
                         "\"w\"&#xD;\n\t</b><c/><d/></a>"));
}

TEST(XmlWriterTest, ReplacesWhatXmlCannotCarry) {
  EXPECT_EQ(XmlEscape(absl::string_view("a\0b\x1F\xFF\xEF\xBF\xBF", 8)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_TRUE(FitsXml("\xF0\x9F\x98\x80 \r\n\t"));
  EXPECT_FALSE(FitsXml("\x1F"));
  EXPECT_FALSE(FitsXml("\xC0\x80"));
  EXPECT_FALSE(FitsXml("\xEF\xBF\xBE"));
}

TEST(XmlWriterTest, WritesWhatTheReaderReadsBack) {
  const std::string text = "\r\n \t<&>\"' \xC3\xA9 \xE2\x80\xA8 \xF0\x9F\x98\x80 ]]> ";
  XmlWriter xml;
  xml.Open("a").Leaf("b", text).Close();
  const auto root = ParseXml(std::move(xml).Finish());
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->TextOf("b"), text);
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
