#include <cairo.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "microscope/figures/figure.h"

namespace heed {
namespace {

constexpr double pixels_a_point = 2;
constexpr double max_side = 32767;  // pixels, a limit of cairo

struct Release {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};

void set_colour(cairo_t* context, Rgb colour) {
  cairo_set_source_rgb(context, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0);
}

void draw(cairo_t* context, const DrawnRectangle& shape) {
  set_colour(context, shape.fill);
  cairo_rectangle(context, shape.x, shape.y, shape.width, shape.height);
  cairo_fill(context);
}

void draw(cairo_t* context, const DrawnLine& line) {
  set_colour(context, line.colour);
  cairo_set_line_width(context, line.width);
  cairo_move_to(context, line.x1, line.y1);
  cairo_line_to(context, line.x2, line.y2);
  cairo_stroke(context);
}

void draw(cairo_t* context, const DrawnText& text) {
  const std::string safe = is_valid_utf8(text.text) ? text.text : printable(text.text);
  cairo_select_font_face(context, "monospace", CAIRO_FONT_SLANT_NORMAL,
                         text.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context, text.size);
  cairo_text_extents_t extents;
  cairo_text_extents(context, safe.c_str(), &extents);
  const double share = text.anchor == TextAnchor::start    ? 0.0
                       : text.anchor == TextAnchor::middle ? 0.5
                                                           : 1.0;
  set_colour(context, text.colour);
  cairo_save(context);
  cairo_translate(context, text.x, text.y);
  cairo_rotate(context, text.angle * std::numbers::pi / 180);
  cairo_move_to(context, -share * extents.x_advance, 0);
  cairo_show_text(context, safe.c_str());
  cairo_restore(context);
}

cairo_status_t append_bytes(void* to, const unsigned char* bytes, unsigned int count) {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

std::string png_bytes(const Figure& figure) {
  const Drawing& drawing = figure.drawing;
  const double width = drawing.width * pixels_a_point;
  const double height = drawing.height * pixels_a_point;
  require(width <= max_side && height <= max_side, ErrorCode::unsupported,
          "a figure of {:.0f} x {:.0f} pixels exceeds the limit for PNG; write it "
          "as .svg",
          width, height);
  const std::unique_ptr<cairo_surface_t, Release> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::lround(width)),
                                 static_cast<int>(std::lround(height))));
  const std::unique_ptr<cairo_t, Release> context(cairo_create(surface.get()));
  cairo_scale(context.get(), pixels_a_point, pixels_a_point);
  cairo_set_source_rgb(context.get(), 1, 1, 1);
  cairo_paint(context.get());
  cairo_set_antialias(context.get(), CAIRO_ANTIALIAS_NONE);  // no seams between neighbouring cells
  for (const DrawnRectangle& shape : drawing.rectangles) draw(context.get(), shape);
  cairo_set_antialias(context.get(), CAIRO_ANTIALIAS_DEFAULT);
  for (const DrawnLine& line : drawing.lines) draw(context.get(), line);
  for (const DrawnText& text : drawing.texts) draw(context.get(), text);
  std::string bytes;
  const cairo_status_t status =
      cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes);
  require(status == CAIRO_STATUS_SUCCESS, ErrorCode::out_of_memory, "cannot draw a PNG: {}",
          cairo_status_to_string(status));
  return bytes;
}

}  // namespace heed
