// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/service_properties.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"
#include "services/queue-gateway/operations/record.h"
#include "services/queue-gateway/protocol/xml_reader.h"
#include "services/queue-gateway/protocol/xml_writer.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::XmlElement;
using protocol::XmlWriter;

constexpr char kRoot[] = "StorageServiceProperties";
constexpr std::array<absl::string_view, 8> kCorsMethods = {"DELETE", "GET",     "HEAD", "MERGE",
                                                           "POST",   "OPTIONS", "PUT",  "PATCH"};

std::string KeyOf(const std::string& account) {
  return absl::StrCat("queue-gateway/properties/", account);
}

absl::Status Wrong(const XmlElement& parent, absl::string_view child) {
  return absl::InvalidArgumentError(
      absl::StrCat("<", child, "> of <", parent.name, "> is missing or has a wrong value"));
}

absl::StatusOr<bool> BoolOf(const XmlElement& parent, absl::string_view child) {
  const std::string text =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(parent.TextOf(child).value_or("")));
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return Wrong(parent, child);
}

absl::StatusOr<int64_t> NumberOf(const XmlElement& parent, absl::string_view child, int64_t min,
                                 int64_t max) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(parent.TextOf(child).value_or(""), &value) || value < min || value > max) {
    return Wrong(parent, child);
  }
  return value;
}

absl::StatusOr<std::string> VersionOf(const XmlElement& parent) {
  std::string version(absl::StripAsciiWhitespace(parent.TextOf("Version").value_or("")));
  if (version != "1.0" && version != "2.0") return Wrong(parent, "Version");
  return version;
}

absl::StatusOr<Retention> RetentionOf(const XmlElement& parent) {
  const XmlElement* const element = parent.Child("RetentionPolicy");
  if (element == nullptr) return Wrong(parent, "RetentionPolicy");
  Retention retention;
  MUSTER_ASSIGN_OR_RETURN(retention.enabled, BoolOf(*element, "Enabled"));
  if (retention.enabled) {
    MUSTER_ASSIGN_OR_RETURN(retention.days, NumberOf(*element, "Days", 1, kMaxRetentionDays));
  }
  return retention;
}

absl::StatusOr<Logging> LoggingOf(const XmlElement& element) {
  Logging logging;
  MUSTER_ASSIGN_OR_RETURN(logging.version, VersionOf(element));
  MUSTER_ASSIGN_OR_RETURN(logging.deletes, BoolOf(element, "Delete"));
  MUSTER_ASSIGN_OR_RETURN(logging.reads, BoolOf(element, "Read"));
  MUSTER_ASSIGN_OR_RETURN(logging.writes, BoolOf(element, "Write"));
  MUSTER_ASSIGN_OR_RETURN(logging.retention, RetentionOf(element));
  return logging;
}

absl::StatusOr<Metrics> MetricsOf(const XmlElement& element) {
  Metrics metrics;
  MUSTER_ASSIGN_OR_RETURN(metrics.version, VersionOf(element));
  MUSTER_ASSIGN_OR_RETURN(metrics.enabled, BoolOf(element, "Enabled"));
  if (metrics.enabled) {
    MUSTER_ASSIGN_OR_RETURN(metrics.include_apis, BoolOf(element, "IncludeAPIs"));
  }
  MUSTER_ASSIGN_OR_RETURN(metrics.retention, RetentionOf(element));
  return metrics;
}

// Values separated by commas; none of them is empty.
std::vector<std::string> ListOf(const XmlElement& parent, absl::string_view child) {
  std::vector<std::string> values;
  for (const absl::string_view value :
       absl::StrSplit(parent.TextOf(child).value_or(""), ',', absl::SkipWhitespace())) {
    values.emplace_back(absl::StripAsciiWhitespace(value));
  }
  return values;
}

absl::StatusOr<CorsRule> RuleOf(const XmlElement& element) {
  CorsRule rule;
  rule.origins = ListOf(element, "AllowedOrigins");
  rule.methods = ListOf(element, "AllowedMethods");
  rule.exposed_headers = ListOf(element, "ExposedHeaders");
  rule.allowed_headers = ListOf(element, "AllowedHeaders");
  MUSTER_ASSIGN_OR_RETURN(rule.max_age_seconds, NumberOf(element, "MaxAgeInSeconds", 0, INT32_MAX));
  if (rule.origins.empty() || rule.origins.size() > kMaxCorsValues) {
    return Wrong(element, "AllowedOrigins");
  }
  if (rule.methods.empty()) return Wrong(element, "AllowedMethods");
  for (const std::string& method : rule.methods) {
    if (std::find(kCorsMethods.begin(), kCorsMethods.end(), method) == kCorsMethods.end()) {
      return Wrong(element, "AllowedMethods");
    }
  }
  if (rule.exposed_headers.size() > kMaxCorsValues) return Wrong(element, "ExposedHeaders");
  if (rule.allowed_headers.size() > kMaxCorsValues) return Wrong(element, "AllowedHeaders");
  return rule;
}

absl::StatusOr<std::vector<CorsRule>> CorsOf(const XmlElement& element) {
  if (element.children.size() > kMaxCorsRules) {
    return absl::InvalidArgumentError("there are more than five CORS rules");
  }
  std::vector<CorsRule> rules;
  size_t bytes = 0;
  for (const XmlElement& child : element.children) {
    if (child.name != "CorsRule") return Wrong(element, "CorsRule");
    for (const XmlElement& value : child.children) bytes += value.text.size();
    MUSTER_ASSIGN_OR_RETURN(CorsRule rule, RuleOf(child));
    rules.push_back(std::move(rule));
  }
  if (bytes > kMaxCorsBytes) return absl::InvalidArgumentError("the CORS rules are over 2 KiB");
  return rules;
}

absl::string_view BoolText(bool value) { return value ? "true" : "false"; }

void Write(const Retention& retention, XmlWriter* xml) {
  xml->Open("RetentionPolicy").Leaf("Enabled", BoolText(retention.enabled));
  if (retention.days.has_value()) xml->Leaf("Days", absl::StrCat(*retention.days));
  xml->Close();
}

void Write(absl::string_view name, const Metrics& metrics, XmlWriter* xml) {
  xml->Open(name).Leaf("Version", metrics.version).Leaf("Enabled", BoolText(metrics.enabled));
  if (metrics.include_apis.has_value()) xml->Leaf("IncludeAPIs", BoolText(*metrics.include_apis));
  Write(metrics.retention, xml);
  xml->Close();
}

void Write(const CorsRule& rule, XmlWriter* xml) {
  xml->Open("CorsRule");
  xml->Leaf("AllowedOrigins", absl::StrJoin(rule.origins, ","));
  xml->Leaf("AllowedMethods", absl::StrJoin(rule.methods, ","));
  xml->Leaf("MaxAgeInSeconds", absl::StrCat(rule.max_age_seconds));
  xml->Leaf("ExposedHeaders", absl::StrJoin(rule.exposed_headers, ","));
  xml->Leaf("AllowedHeaders", absl::StrJoin(rule.allowed_headers, ","));
  xml->Close();
}

}  // namespace

absl::StatusOr<ServiceProperties> ParseProperties(absl::string_view document,
                                                  ServiceProperties before) {
  MUSTER_ASSIGN_OR_RETURN(const XmlElement root, protocol::ParseXml(document));
  if (root.name != kRoot) {
    return absl::InvalidArgumentError(absl::StrCat("it is no <", kRoot, ">"));
  }
  ServiceProperties properties = std::move(before);
  for (const XmlElement& child : root.children) {
    if (child.name == "Logging") {
      MUSTER_ASSIGN_OR_RETURN(properties.logging, LoggingOf(child));
    } else if (child.name == "HourMetrics") {
      MUSTER_ASSIGN_OR_RETURN(properties.hour_metrics, MetricsOf(child));
    } else if (child.name == "MinuteMetrics") {
      MUSTER_ASSIGN_OR_RETURN(properties.minute_metrics, MetricsOf(child));
    } else if (child.name == "Cors") {
      MUSTER_ASSIGN_OR_RETURN(properties.cors, CorsOf(child));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("<", child.name, "> is no property"));
    }
  }
  return properties;
}

std::string WriteProperties(const ServiceProperties& properties) {
  XmlWriter xml;
  xml.Open(kRoot).Open("Logging").Leaf("Version", properties.logging.version);
  xml.Leaf("Delete", BoolText(properties.logging.deletes));
  xml.Leaf("Read", BoolText(properties.logging.reads));
  xml.Leaf("Write", BoolText(properties.logging.writes));
  Write(properties.logging.retention, &xml);
  xml.Close();
  Write("HourMetrics", properties.hour_metrics, &xml);
  Write("MinuteMetrics", properties.minute_metrics, &xml);
  xml.Open("Cors");
  for (const CorsRule& rule : properties.cors) Write(rule, &xml);
  xml.Close().Close();
  return std::move(xml).Finish();
}

namespace {

absl::StatusOr<ServiceProperties> PropertiesIn(const sync::VersionedData& record,
                                               const std::string& account) {
  if (record.version == sync::kAbsent) return ServiceProperties();
  absl::StatusOr<ServiceProperties> properties = ParseProperties(record.data, ServiceProperties());
  if (properties.ok()) return properties;
  return absl::DataLossError(absl::StrCat("the service properties of account '", account,
                                          "': ", properties.status().message()));
}

}  // namespace

absl::StatusOr<ServiceProperties> ReadProperties(const std::string& account, const Stores& stores) {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData record, stores.records->Get(KeyOf(account)));
  return PropertiesIn(record, account);
}

absl::Status StoreProperties(const std::string& account, absl::string_view document,
                             const Stores& stores) {
  return WriteRecord(stores.records, KeyOf(account),
                     [&](const sync::VersionedData& record) -> absl::StatusOr<std::string> {
                       MUSTER_ASSIGN_OR_RETURN(ServiceProperties before,
                                               PropertiesIn(record, account));
                       MUSTER_ASSIGN_OR_RETURN(const ServiceProperties properties,
                                               ParseProperties(document, std::move(before)));
                       return WriteProperties(properties);
                     });
}

}  // namespace muster::queue_gateway::operations
