#include <fmt/format.h>

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

}  // namespace heed
