// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/service_properties.h"

#include "services/queue-gateway/operations/operations_fixture.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::HasSubstr;

constexpr char kPropertiesPath[] = "?restype=service&comp=properties";
constexpr char kPropertiesHead[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
constexpr char kOff[] = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
constexpr char kCors[] =
    "<Cors><CorsRule><AllowedOrigins>http://a,http://b</AllowedOrigins>"
    "<AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>"
    "<ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule>"
    "</Cors>";
constexpr char kLogging[] =
    "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>";

std::string Properties(absl::string_view content) {
  return absl::StrCat("<StorageServiceProperties>", content, "</StorageServiceProperties>");
}

class ServicePropertiesTest : public OperationsFixture {};

TEST_F(ServicePropertiesTest, AreOffUntilTheyAreSet) {
  EXPECT_EQ(
      Ask("GET", kPropertiesPath).body,
      absl::StrCat(kPropertiesHead,
                   Properties(absl::StrCat("<Logging><Version>1.0</Version><Delete>false</Delete>"
                                           "<Read>false</Read><Write>false</Write>",
                                           kOff,
                                           "</Logging><HourMetrics><Version>1.0</Version>"
                                           "<Enabled>false</Enabled>",
                                           kOff,
                                           "</HourMetrics><MinuteMetrics><Version>1.0</Version>"
                                           "<Enabled>false</Enabled>",
                                           kOff, "</MinuteMetrics><Cors/>"))));
}

TEST_F(ServicePropertiesTest, KeepWhatAChangeLeavesOut) {
  EXPECT_EQ(Status("PUT", kPropertiesPath, Properties(kCors)), "202");
  EXPECT_EQ(Status("PUT", kPropertiesPath, Properties(kLogging)), "202");
  const std::string body = Ask("GET", kPropertiesPath).body;
  EXPECT_THAT(body, HasSubstr(kCors));
  EXPECT_THAT(body, HasSubstr(kLogging));
  EXPECT_EQ(Status("PUT", kPropertiesPath, Properties("<Cors/>")), "202");
  EXPECT_THAT(Ask("GET", kPropertiesPath).body, HasSubstr("<Cors/>"));
}

// One that set CORS rules took the logging away that another had set in the same moment.
TEST_F(ServicePropertiesTest, KeepWhatAnotherClientHasSetMeanwhile) {
  RivalledStore rivalled(&records_, [this] {
    stores_.records = &records_;
    EXPECT_EQ(Status("PUT", kPropertiesPath, Properties(kLogging)), "202");
  });
  stores_.records = &rivalled;
  EXPECT_EQ(Status("PUT", kPropertiesPath, Properties(kCors)), "202");
  const std::string body = Ask("GET", kPropertiesPath).body;
  EXPECT_THAT(body, HasSubstr(kCors));
  EXPECT_THAT(body, HasSubstr(kLogging));
}

TEST_F(ServicePropertiesTest, CheckTheDigestOfTheirBody) {
  EXPECT_EQ(Status("PUT", kPropertiesPath, Properties(kCors),
                   {{"Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="}}),
            "400 Md5Mismatch");
}

TEST_F(ServicePropertiesTest, RefuseWhatIsNone) {
  std::string six;
  for (int i = 0; i < 6; ++i) {
    six +=
        "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
        "<MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule>";
  }
  for (const std::string& document :
       {std::string("<a/>"), std::string(""), Properties("<Other/>"), Properties("<Logging/>"),
        Properties(absl::StrCat("<Cors>", six, "</Cors>")),
        Properties("<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GIT"
                   "</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule></Cors>"),
        Properties("<HourMetrics><Version>1.0</Version><Enabled>true</Enabled></HourMetrics>")}) {
    EXPECT_EQ(Status("PUT", kPropertiesPath, document), "400 InvalidXmlDocument") << document;
  }
}

}  // namespace
}  // namespace muster::queue_gateway::operations
