#include "microscope/figures/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<float> map_numbers{0.5F, -1, NAN, 0.25F, 2, 0};

HeatMapFigure small_map(FigureScale scale) {
  return {.values = View<const float>(map_numbers.data(), {2, 3}),
          .row_labels = {"L0", "L1"},
          .column_labels = {"<|endoftext|>", "&\"'", "\xff\x01"},
          .row_axis = "layer",
          .column_axis = "token",
          .value_name = "logits",
          .scale = scale};
}

const FigureText figure_text{.title = "A <title> & more",
                             .caption = "Model m. Text: \"a\x02\xfe\"."};

std::size_t count(const std::string& page, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = page.find(piece); at != std::string::npos; at = page.find(piece, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Figure, HeatMapHasCellsLabelsAndAScale) {
  const Figure figure = draw_heat_map(small_map(FigureScale::diverging), figure_text);
  const std::string svg = svg_text(figure);
  for (const char* label : {">L0<", ">L1<", "layer", "token", "logits", ">0<", ">2<", ">-2<"}) {
    EXPECT_THAT(svg, HasSubstr(label));
  }
  EXPECT_EQ(count(svg, "</title></rect>"), 5U);  // one number is none
  EXPECT_THAT(svg, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
}

TEST(Figure, TextIsEscapedWhateverItsBytes) {
  for (const std::string& page :
       {svg_text(draw_heat_map(small_map(FigureScale::sequential), figure_text)),
        html_text(draw_bars({{"<b>", "\xff"}, {1, -2}, "logits"}, figure_text))}) {
    EXPECT_THAT(page, Not(HasSubstr("<|")));
    EXPECT_THAT(page, Not(HasSubstr("<b>")));
    EXPECT_THAT(page, HasSubstr("A &lt;title&gt; &amp; more"));
    EXPECT_THAT(page, HasSubstr("\\xFF"));
    EXPECT_THAT(page, HasSubstr("\\xFE"));
    for (const char c : page) {
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
    }
  }
}

TEST(Figure, HtmlStandsAlone) {
  const std::string page = html_text(draw_bars({{"a"}, {1}, "logits"}, figure_text));
  for (const char* reference : {"src=", "href=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
  EXPECT_EQ(count(page, "http"), 1U);  // the name space of SVG, which nobody fetches
}

TEST(Figure, LargeMapsAreReducedAndSaySo) {
  std::vector<float> many(600 * 1000, 0.1F);
  many[599 * 1000 + 999] = -3;
  HeatMapFigure map{.values = View<const float>(many.data(), {600, 1000}),
                    .row_labels = std::vector<std::string>(600, "r"),
                    .column_labels = std::vector<std::string>(1000, "c"),
                    .row_axis = "query",
                    .column_axis = "key",
                    .value_name = "score",
                    .scale = FigureScale::diverging};
  const Figure figure = draw_heat_map(map, figure_text);
  EXPECT_LT(figure.drawing.rectangles.size(), 256U * 256U + 100);
  EXPECT_THAT(figure.text.caption, HasSubstr("Reduced"));
  EXPECT_LT(figure.drawing.width, 1500);
}

TEST(Figure, ColoursArePerceptuallyOrdered) {
  const auto luminance = [](Rgb c) { return 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue; };
  for (int i = 1; i <= 20; ++i) {
    EXPECT_LT(luminance(paper_sequential_colour(i / 20.0)),
              luminance(paper_sequential_colour((i - 1) / 20.0)));
    for (const double sign : {-1.0, 1.0}) {
      EXPECT_LT(luminance(paper_diverging_colour(sign * i / 20.0)),
                luminance(paper_diverging_colour(sign * (i - 1) / 20.0)));
    }
  }
}

TEST(Figure, IsWrittenByItsExtension) {
  const testing::TemporaryDirectory directory;
  const Figure figure = draw_heat_map(small_map(FigureScale::share), figure_text);
  for (const char* name : {"map.svg", "map.png", "map.html"}) {
    write_figure(directory / name, figure);
  }
  EXPECT_EQ(read_text_file(directory / "map.svg"), svg_text(figure));
  EXPECT_EQ(read_text_file(directory / "map.png").substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_THROW(write_figure(directory / "map.pdf", figure), Error);
  EXPECT_EQ(directory.entries(), 3U);
}

TEST(Figure, RefusesWhatDoesNotFit) {
  HeatMapFigure map = small_map(FigureScale::sequential);
  map.row_labels.pop_back();
  EXPECT_THROW(draw_heat_map(map, figure_text), Error);
  map = small_map(FigureScale::sequential);
  map.cell_texts = {"one"};
  EXPECT_THROW(draw_heat_map(map, figure_text), Error);
  EXPECT_THROW(draw_bars({{"a"}, {1, 2}, ""}, figure_text), Error);
  EXPECT_THROW(draw_bars({{"a"}, {std::numeric_limits<double>::infinity()}, ""}, figure_text),
               Error);
  EXPECT_THROW(draw_bars({}, figure_text), Error);
}

}  // namespace
}  // namespace heed
