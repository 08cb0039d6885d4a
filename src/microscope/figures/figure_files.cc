#include <cairo.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>

#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "microscope/figures/figure.h"

namespace heed {
namespace {

// Escapes text and attributes for XML and HTML. Control characters, which XML forbids, and invalid
// UTF-8 are escaped by printable() first.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : is_valid_utf8(text) ? std::string(text) : printable(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) safe += c;
    }
  }
  return safe;
}

std::string hex(Rgb colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

void append_rectangle(const DrawnRectangle& shape, std::string& svg) {
  svg += fmt::format(R"(<rect x="{:.6g}" y="{:.6g}" width="{:.6g}" height="{:.6g}" fill="{}")",
                     shape.x, shape.y, shape.width, shape.height, hex(shape.fill));
  svg += shape.hint.empty() ? "/>\n" : "><title>" + escaped(shape.hint) + "</title></rect>\n";
}

void append_line(const DrawnLine& line, std::string& svg) {
  svg += fmt::format(
      "<line x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\" stroke=\"{}\" "
      "stroke-width=\"{:.3g}\"/>\n",
      line.x1, line.y1, line.x2, line.y2, hex(line.colour), line.width);
}

void append_text(const DrawnText& text, std::string& svg) {
  const char* anchor = text.anchor == TextAnchor::start    ? "start"
                       : text.anchor == TextAnchor::middle ? "middle"
                                                           : "end";
  svg += fmt::format(R"(<text x="{:.6g}" y="{:.6g}" font-size="{:.3g}" text-anchor="{}" fill="{}")",
                     text.x, text.y, text.size, anchor, hex(text.colour));
  if (text.angle != 0) {
    svg += fmt::format(" transform=\"rotate({:.4g} {:.6g} {:.6g})\"", text.angle, text.x, text.y);
  }
  if (text.bold) svg += " font-weight=\"bold\"";
  svg += fmt::format(">{}</text>\n", escaped(text.text));
}

constexpr double pixels_a_point = 2;
constexpr double largest_side = 32767;  // pixels, a limit of cairo

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

std::string svg_text(const Figure& figure) {
  const Drawing& drawing = figure.drawing;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
      "font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n",
      drawing.width, drawing.height);
  svg += "<title>" + escaped(figure.text.title) + "</title>\n";
  svg += "<desc>" + escaped(figure.text.caption) + "</desc>\n";
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  svg += "<g shape-rendering=\"crispEdges\">\n";
  for (const DrawnRectangle& shape : drawing.rectangles) append_rectangle(shape, svg);
  svg += "</g>\n";
  for (const DrawnLine& line : drawing.lines) append_line(line, svg);
  svg += "<g xml:space=\"preserve\">\n";
  for (const DrawnText& text : drawing.texts) append_text(text, svg);
  return svg + "</g>\n</svg>\n";
}

std::string html_text(const Figure& figure) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(figure.text.title) +
         "</title>\n<style>\n"
         "body { margin: 1.5rem; background: #fff; color: #202124; }\n"
         "svg { max-width: 100%; height: auto; }\n"
         "rect:hover { stroke: #202124; stroke-width: 1; }\n"
         "@media print { body { margin: 0; } }\n"
         "</style>\n</head>\n<body>\n" +
         svg_text(figure) + "</body>\n</html>\n";
}

bool is_figure_file(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".svg" || extension == ".png" || extension == ".html";
}

void write_figure(const std::filesystem::path& path, const Figure& figure) {
  const std::string extension = path.extension().string();
  require(is_figure_file(path), ErrorCode::invalid_argument,
          "'{}' is not a figure file: expected the extension .svg, .png or .html", path.string());
  if (extension == ".svg") return write_text_file(path, svg_text(figure));
  if (extension == ".png") return write_text_file(path, png_bytes(figure));
  write_text_file(path, html_text(figure));
}

std::string png_bytes(const Figure& figure) {
  const Drawing& drawing = figure.drawing;
  const double width = drawing.width * pixels_a_point;
  const double height = drawing.height * pixels_a_point;
  require(width <= largest_side && height <= largest_side, ErrorCode::unsupported,
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
