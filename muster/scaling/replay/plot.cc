// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/plot.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace muster::scaling::replay {
namespace {

constexpr int kLeft = 90;
constexpr int kPanelHeight = 130;
constexpr int kPanelGap = 34;
constexpr int kLegendLine = 18;
constexpr int kTop = 40;
constexpr int kWidth = kLeft + Plot::kColumns + 30;
constexpr int kTimeTicks = 6;

// Line styles that differ without colours.
constexpr std::array<absl::string_view, 6> kDashes = {"none",     "7 3", "2 2",
                                                      "12 3 2 3", "1 4", "16 4"};

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

std::string StrokeOf(size_t line) {
  return absl::StrCat("fill=\"none\" stroke=\"black\" stroke-dasharray=\"",
                      kDashes[line % kDashes.size()], "\" stroke-width=\"",
                      line / kDashes.size() % 2 == 0 ? 1.3 : 2.4, "\"");
}

void AddText(double x, double y, absl::string_view anchor, absl::string_view text,
             std::string* svg) {
  absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y,
                        anchor, Escaped(text));
}

// "1.2 M" for a scale.
std::string Short(double number) {
  if (number >= 1e6) return absl::StrFormat("%.3g M", number / 1e6);
  return number >= 1e4 ? absl::StrFormat("%.3g k", number / 1e3) : absl::StrFormat("%.4g", number);
}

// One of the four panels: a frame, a scale, and lines.
class Panel {
 public:
  Panel(int top, absl::string_view title, double most, std::string* svg)
      : top_(top), most_(most > 0 ? most : 1), svg_(svg) {
    absl::StrAppendFormat(svg_,
                          "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                          "stroke=\"gray\" stroke-width=\"0.5\"/>\n",
                          kLeft, top_, Plot::kColumns, kPanelHeight);
    AddText(kLeft, top_ - 5, "start", title, svg_);
    AddText(kLeft - 6, top_ + 10, "end", Short(most_), svg_);
    AddText(kLeft - 6, top_ + kPanelHeight, "end", "0", svg_);
  }

  void Draw(const std::vector<double>& values, const std::string& stroke) {
    absl::StrAppend(svg_, "<polyline ", stroke, " points=\"");
    for (size_t column = 0; column < values.size(); ++column) {
      const double y = top_ + kPanelHeight * (1 - values[column] / most_);
      // Draws steps, because a number of replicas changes at once.
      absl::StrAppendFormat(svg_, "%d,%.1f %d,%.1f ", kLeft + static_cast<int>(column), y,
                            kLeft + static_cast<int>(column) + 1, y);
    }
    absl::StrAppend(svg_, "\"/>\n");
  }

 private:
  const int top_;
  const double most_;
  std::string* const svg_;
};

double MostOf(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace

struct Plot::Line {
  std::string name;
  std::vector<double> backlog;
  std::vector<double> replicas;
  std::vector<double> violations;
};

Plot::Plot(const Trace& trace, int64_t tail_seconds)
    : start_(trace.start),
      seconds_(std::max<int64_t>(1, trace.seconds + tail_seconds)),
      arrivals_(kColumns) {
  const double per_column = static_cast<double>(seconds_) / kColumns;
  for (const SecondOfTrace& second : BySecond(trace)) {
    arrivals_[ColumnOf(second.second)] += static_cast<double>(second.items) / per_column;
  }
}

Plot::~Plot() = default;

size_t Plot::ColumnOf(int64_t second) const {
  const int64_t column = second * kColumns / seconds_;
  return static_cast<size_t>(std::clamp<int64_t>(column, 0, kColumns - 1));
}

SeriesSink Plot::AddPolicy(absl::string_view name) {
  Line* const line = lines_.emplace_back(std::make_unique<Line>()).get();
  line->name = std::string(name);
  for (std::vector<double>* values : {&line->backlog, &line->replicas, &line->violations}) {
    values->resize(kColumns);
  }
  return [this, line](const SeriesPoint& point) {
    if (point.second >= seconds_) return;
    // A second of a short trace is several columns wide.
    const size_t end = std::max(ColumnOf(point.second) + 1, ColumnOf(point.second + 1));
    for (size_t column = ColumnOf(point.second); column < end; ++column) {
      double& backlog = line->backlog[column];
      backlog = std::max(backlog, static_cast<double>(point.outstanding));
      line->replicas[column] = std::max(line->replicas[column], point.replicas);
    }
    line->violations[ColumnOf(point.second)] += static_cast<double>(point.violations);
  };
}

std::string Plot::ToSvg() const {
  const int panels_top = kTop + kLegendLine * static_cast<int>(lines_.size());
  const int height = panels_top + 4 * (kPanelHeight + kPanelGap) + 10;
  std::string svg = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, height, kWidth, height);
  std::array<double, 3> most = {};
  for (size_t i = 0; i < lines_.size(); ++i) {
    const double y = kTop - 14 + kLegendLine * static_cast<double>(i);
    absl::StrAppendFormat(&svg, "<path d=\"M %d %.1f H %d\" %s/>\n", kLeft, y - 4, kLeft + 60,
                          StrokeOf(i));
    AddText(kLeft + 70, y, "start", lines_[i]->name, &svg);
    most = {std::max(most[0], MostOf(lines_[i]->backlog)),
            std::max(most[1], MostOf(lines_[i]->replicas)),
            std::max(most[2], MostOf(lines_[i]->violations))};
  }
  const auto top = [panels_top](int panel) {
    return panels_top + panel * (kPanelHeight + kPanelGap);
  };
  Panel(top(0), "arrivals: items per second", MostOf(arrivals_), &svg).Draw(arrivals_, StrokeOf(0));
  Panel backlog(top(1), "backlog: items", most[0], &svg);
  Panel replicas(top(2), "replicas, ready and starting", most[1], &svg);
  Panel violations(top(3), "violations: items", most[2], &svg);
  for (size_t i = 0; i < lines_.size(); ++i) {
    backlog.Draw(lines_[i]->backlog, StrokeOf(i));
    replicas.Draw(lines_[i]->replicas, StrokeOf(i));
    violations.Draw(lines_[i]->violations, StrokeOf(i));
  }
  for (int tick = 0; tick <= kTimeTicks; ++tick) {
    const absl::Time at = start_ + absl::Seconds(seconds_ * tick / kTimeTicks);
    AddText(kLeft + Plot::kColumns * tick / static_cast<double>(kTimeTicks),
            top(3) + kPanelHeight + 14, "middle",
            absl::FormatTime(seconds_ > int64_t{2} * 86400 ? "%m-%d %H:%M" : "%H:%M:%S", at,
                             absl::UTCTimeZone()),
            &svg);
  }
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace muster::scaling::replay
