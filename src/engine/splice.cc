// Sparse dictionaries in passes, as hooks at the points that they read and write.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "engine/facade.h"
#include "engine/hooks.h"
#include "heed/features.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microscope/features/dictionary.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

using enum ErrorCode;

using Extents = std::vector<std::int64_t>;

// The rows that a dictionary reads or writes of values (B, T, C) or (B, T, H, D).
class SplicedRows {
 public:
  SplicedRows(const Array& values, std::int64_t head) : head_(head), shape_(values.shape()) {
    rows_ = shape_[0] * shape_[1];
    row_ = rows_ == 0 ? 0 : static_cast<std::int64_t>(values.size()) / rows_;
    width_ = head < 0 ? row_ : shape_.back();
  }

  Tensor<float> read(const Array& values) const {
    Tensor<float> rows(Shape{rows_, width_});
    for (std::int64_t n = 0; n < rows_; ++n) {
      std::copy_n(values.data() + begin(n), width_, rows.data() + n * width_);
    }
    return rows;
  }
  void write(View<const float> rows, Array& values) const {
    for (std::int64_t n = 0; n < rows_; ++n) {
      std::copy_n(rows.data() + n * width_, width_, values.data() + begin(n));
    }
  }
  void add(View<const float> rows, Array& values) const {
    for (std::int64_t n = 0; n < rows_; ++n) {
      float* const to = values.data() + begin(n);
      for (std::int64_t c = 0; c < width_; ++c) to[c] += rows(n, c);
    }
  }
  std::int64_t batch() const { return shape_[0]; }
  std::int64_t positions() const { return shape_[1]; }

 private:
  std::int64_t begin(std::int64_t row) const {
    return row * row_ + (head_ < 0 ? 0 : head_ * width_);
  }

  std::int64_t head_;
  Extents shape_;
  std::int64_t rows_ = 0, row_ = 0, width_ = 0;
};

}  // namespace

struct Splice::Parts {
  // A dictionary in one text of a pass.
  struct ReadText {
    std::int64_t batch = 0, positions = 0;
    Tensor<float> x;  // (N, I), as a hook at its input left it
    InputScales scales;
    FeatureRows own;     // activations without hooks
    FeatureRows active;  // as hooks at acts_pre left them
    FeatureRows acts;    // and those at acts_post
    bool acts_changed = false;
    std::string changed_at;  // the first point that a hook changed, whose derivative nobody knows
    Tensor<float> d_acts;    // (N, F), in backward
    Tensor<float> d_x;       // (N, I), what goes past the features at first

    void begin_backward(std::int64_t features) {
      if (d_acts.present()) return;
      d_acts = Tensor<float>(Shape{x.shape()[0], features});
      d_x = Tensor<float>(x.shape());
    }
  };

  struct WrittenText {
    Tensor<float> recons;  // (N, O), of autoencoders that normalise
  };

  struct Writer {
    std::size_t dictionary;
    std::int64_t point;  // of its output points
  };

  std::vector<SparseDictionary> dictionaries;
  ErrorTerm error = ErrorTerm::none;
  std::vector<std::string> inputs;  // full names of the points that they read
  std::map<std::string, std::size_t> readers;
  std::map<std::string, std::vector<Writer>> writers;
  std::vector<std::string> order;    // the model's points that are hooked
  std::set<std::string> uneditable;  // gradients there can only be read
  std::vector<std::string> names;
  std::vector<Hook> user, user_gradients;
  std::set<std::string, std::less<>> wanted;
  // By dictionary, or output point, and text.
  std::map<std::pair<std::size_t, std::int64_t>, ReadText> read;
  std::map<std::pair<std::string, std::int64_t>, WrittenText> written;
  std::map<std::string, std::map<std::int64_t, Array>, std::less<>> kept;

  const Dictionary& of(std::size_t index) const { return dictionaries[index].dictionary(); }

  static bool selects(const Hook& hook, const std::string& name) {
    return hook.where == name || matches_glob(name, hook.where) || name.ends_with("." + hook.where);
  }
  static bool any_at(const std::vector<Hook>& hooks, const std::string& name) {
    return std::ranges::any_of(hooks, [&](const Hook& hook) { return selects(hook, name); });
  }
  bool looks_at(const std::string& name) const {
    return wanted.contains(name) || any_at(user, name);
  }
  bool looks_at_gradient(const std::string& name) const {
    return wanted.contains(name + std::string(gradient_suffix)) || any_at(user_gradients, name);
  }

  // Shows rows (N, W) to the hooks at a point, and keeps what they leave. Whether they changed it.
  bool show(const std::vector<Hook>& hooks, const std::string& name, const std::string& kept_name,
            const HookedPoint& at, Extents shape, View<float> rows) {
    if (!wanted.contains(kept_name) && !any_at(hooks, name)) return false;
    Array values = dense_copy(rows).reshaped(shape);
    for (const Hook& hook : hooks) {
      if (!selects(hook, name)) continue;
      hook.call({.name = name, .first_position = at.first_position, .text = at.text}, values);
      require(values.shape() == shape, invalid_argument,
              "the hook at '{}' left values of shape ({}), expected ({})", name,
              fmt::join(values.shape(), ", "), fmt::join(shape, ", "));
    }
    const View<const float> left(values.data(), rows.shape());
    const bool changed = !kernels::equal_bits(rows, left);
    if (changed) kernels::copy(left, rows);
    if (wanted.contains(kept_name)) {
      std::map<std::int64_t, Array>& texts = kept[kept_name];
      if (at.text == 0) texts.clear();  // of the pass before
      texts[at.text] = values;
    }
    return changed;
  }
  bool show_values(const std::string& name, const HookedPoint& at, Extents shape,
                   View<float> rows) {
    return show(user, name, name, at, std::move(shape), rows);
  }
  void show_gradient(const std::string& name, const HookedPoint& at, Extents shape,
                     View<float> rows) {
    show(user_gradients, name, name + std::string(gradient_suffix), at, std::move(shape), rows);
  }

  void forward(const std::string& point, const HookedPoint& at, Array& values) {
    if (const auto reader = readers.find(point); reader != readers.end()) {
      read_point(reader->second, at, values);
    }
    if (const auto found = writers.find(point); found != writers.end()) {
      write_point(point, found->second, at, values);
    }
  }

  void read_point(std::size_t index, const HookedPoint& at, const Array& values) {
    const Dictionary& dictionary = of(index);
    const DictionarySpecification& own = dictionary.specification();
    const std::string prefix = inputs[index] + ".hook_sae_";
    const SplicedRows rows(values, own.input_head);
    ReadText& text = read[{index, at.text}];
    text = {};
    text.batch = rows.batch();
    text.positions = rows.positions();
    text.x = rows.read(values);
    const auto note = [&](bool changed, const std::string& name) {
      if (changed && !any_at(user_gradients, name) && text.changed_at.empty()) {
        text.changed_at = name;
      }
      return changed;
    };
    const auto shape = [&](std::int64_t width) {
      return Extents{text.batch, text.positions, width};
    };
    note(show_values(prefix + "input", at, shape(own.inputs), text.x), prefix + "input");
    Dictionary::Encoding encoding = dictionary.read(text.x);
    text.scales = std::move(encoding.scales);
    if (looks_at(prefix + "acts_pre")) {
      Dictionary::PreActivations pre = dictionary.pre_activations(encoding.input);
      // What stays of the error term is what no hook changed.
      text.own = dictionary.activate(pre.values, pre.gate);
      const bool changed =
          note(show_values(prefix + "acts_pre", at, shape(own.features), pre.values),
               prefix + "acts_pre");
      text.active = changed ? dictionary.activate(pre.values, pre.gate) : text.own;
      text.acts_changed = changed;
    } else {
      text.own = dictionary.encode_input(encoding.input);
      text.active = text.own;
    }
    text.acts = text.active;
    if (!looks_at(prefix + "acts_post")) return;
    Tensor<float> dense(Shape{text.x.shape()[0], own.features});
    text.acts.copy_to(dense);
    if (note(show_values(prefix + "acts_post", at, shape(own.features), dense),
             prefix + "acts_post")) {
      text.acts_changed = true;
      text.acts = FeatureRows::of(dense);
    }
  }

  enum class Features { clean, changed };

  // The sum of what all of them write: of one that normalises before its norm is undone.
  Tensor<float> reconstruction(const std::vector<Writer>& all, std::int64_t text_index,
                               Features features) {
    Tensor<float> sum;
    for (const Writer& writer : all) {
      const ReadText& text = read.at({writer.dictionary, text_index});
      const Dictionary& dictionary = of(writer.dictionary);
      Tensor<float> part(Shape{text.x.shape()[0], dictionary.specification().outputs});
      dictionary.reconstruct(features == Features::clean ? text.own : text.acts, part,
                             writer.point);
      if (!sum.present()) {
        sum = std::move(part);
      } else {
        kernels::add(sum, part, sum);
      }
    }
    return sum;
  }
  void finish(const std::vector<Writer>& all, std::int64_t text_index, View<float> out) {
    for (const Writer& writer : all) {
      const ReadText& text = read.at({writer.dictionary, text_index});
      of(writer.dictionary).finish(out, text.x, text.scales, writer.point);
    }
  }

  void write_point(const std::string& point, const std::vector<Writer>& all, const HookedPoint& at,
                   Array& values) {
    const DictionarySpecification& own = of(all.front().dictionary).specification();
    const std::string prefix = point + ".hook_sae_";
    const SplicedRows rows(values, own.output_head);
    for (const Writer& writer : all) {
      require(read.contains({writer.dictionary, at.text}), unsupported,
              "'{}' is written before '{}' is read", point, inputs[writer.dictionary]);
    }
    const Extents shape{rows.batch(), rows.positions(), own.outputs};
    Tensor<float> out = reconstruction(all, at.text, Features::changed);
    ReadText& first = read.at({all.front().dictionary, at.text});
    const auto show_part = [&](const std::string& name, View<float> part) {
      const bool changed = show_values(name, at, shape, part);
      if (changed && !any_at(user_gradients, name) && first.changed_at.empty()) {
        first.changed_at = name;
      }
      return changed;
    };
    const bool changed = show_part(prefix + "recons", out);
    if (!first.scales.scale.empty()) {
      Tensor<float> recons(out.shape());
      std::ranges::copy(out.span(), recons.data());
      written[{point, at.text}].recons = std::move(recons);
    }
    finish(all, at.text, out);
    if (error == ErrorTerm::added) {
      const bool is_clean = !changed && std::ranges::none_of(all, [&](const Writer& writer) {
        return read.at({writer.dictionary, at.text}).acts_changed;
      });
      Tensor<float> rest = rows.read(values);
      if (is_clean) {
        kernels::subtract(rest, out, rest);
      } else {
        Tensor<float> clean = reconstruction(all, at.text, Features::clean);
        finish(all, at.text, clean);
        kernels::subtract(rest, clean, rest);
      }
      show_values(prefix + "error", at, shape, rest);
      kernels::add(out, rest, out);
    }
    show_part(prefix + "output", out);
    rows.write(out, values);
  }

  void backward(const std::string& point, const HookedPoint& at, Array& gradient) {
    if (const auto found = writers.find(point); found != writers.end()) {
      write_backward(point, found->second, at, gradient);
    }
    if (const auto reader = readers.find(point); reader != readers.end()) {
      read_backward(reader->second, at, gradient);
    }
  }

  // What stood there before was replaced, or is a part of the error term, a constant.
  void write_backward(const std::string& point, const std::vector<Writer>& all,
                      const HookedPoint& at, Array& gradient) {
    const DictionarySpecification& own = of(all.front().dictionary).specification();
    const std::string prefix = point + ".hook_sae_";
    const SplicedRows rows(gradient, own.output_head);
    const Extents shape{rows.batch(), rows.positions(), own.outputs};
    Tensor<float> d_out = rows.read(gradient);
    show_gradient(prefix + "output", at, shape, d_out);
    Tensor<float> zeros(d_out.shape());
    rows.write(zeros, gradient);
    for (const Writer& writer : all) {
      ReadText& text = read.at({writer.dictionary, at.text});
      const Dictionary& dictionary = of(writer.dictionary);
      text.begin_backward(dictionary.specification().features);
      const auto saved = written.find({point, at.text});
      const View<const float> recons =
          saved == written.end() ? View<const float>{} : saved->second.recons.view();
      dictionary.finish_backward(recons, text.x, text.scales, d_out, text.d_x, writer.point);
    }
    show_gradient(prefix + "recons", at, shape, d_out);
    for (const Writer& writer : all) {
      ReadText& text = read.at({writer.dictionary, at.text});
      of(writer.dictionary).reconstruct_backward(d_out, text.d_acts, writer.point);
    }
  }

  void read_backward(std::size_t index, const HookedPoint& at, Array& gradient) {
    const Dictionary& dictionary = of(index);
    const DictionarySpecification& own = dictionary.specification();
    const std::string prefix = inputs[index] + ".hook_sae_";
    ReadText& text = read.at({index, at.text});
    require(text.changed_at.empty(), unsupported,
            "the gradient before '{}' would have to pass through the hook there, which changed "
            "values: add a gradient hook at the same point, which turns the gradient of what was "
            "left into that of what was given",
            text.changed_at);
    const auto shape = [&](std::int64_t width) {
      return Extents{text.batch, text.positions, width};
    };
    text.begin_backward(own.features);
    show_gradient(prefix + "acts_post", at, shape(own.features), text.d_acts);
    // An activation is its pre-activation where it is active.
    const FeatureRows& active = text.active;
    std::vector<float> d_pre(static_cast<std::size_t>(active.entries()));
    for (std::int64_t n = 0; n < active.rows(); ++n) {
      for (auto e = static_cast<std::size_t>(active.begins[static_cast<std::size_t>(n)]);
           e < static_cast<std::size_t>(active.begins[static_cast<std::size_t>(n) + 1]); ++e) {
        d_pre[e] = text.d_acts.view()(n, active.features[e]);
      }
    }
    FeatureRows used = active;
    if (looks_at_gradient(prefix + "acts_pre")) {
      Tensor<float> dense(text.d_acts.shape());
      FeatureRows gradients = active;
      gradients.values = d_pre;
      gradients.copy_to(dense);
      show_gradient(prefix + "acts_pre", at, shape(own.features), dense);
      used = FeatureRows::of(dense);
      d_pre = used.values;
    }
    Tensor<float> d_input(text.x.shape());
    dictionary.encode_backward(used, d_pre, d_input);
    dictionary.read_backward(text.x, text.scales, d_input, text.d_x);
    show_gradient(prefix + "input", at, shape(own.inputs), text.d_x);
    SplicedRows(gradient, own.input_head).add(text.d_x, gradient);
    text.d_acts = {};
    text.d_x = {};
  }
};

Splice::Splice(const Model& model, std::vector<SparseDictionary> dictionaries, ErrorTerm error)
    : parts_(std::make_shared<Parts>()) {
  const Architecture& architecture = ModelAccess::loaded(model).architecture();
  Parts& parts = *parts_;
  parts.dictionaries = std::move(dictionaries);
  parts.error = error;
  require(!parts.dictionaries.empty(), invalid_argument,
          "there are no dictionaries, expected at least one");
  std::map<std::string, std::size_t> place;
  std::vector<Point> points = all_points(architecture);
  for (std::size_t i = 0; i < points.size(); ++i) place[point_name(points[i])] = i;
  for (std::size_t d = 0; d < parts.dictionaries.size(); ++d) {
    const Dictionary& dictionary = parts.of(d);
    require_fits(dictionary, architecture);
    const DictionarySpecification& own = dictionary.specification();
    const auto full_name = [&](const std::string& name) {
      return point_name(points_named(name, architecture).front());
    };
    const std::string input = full_name(own.input_point);
    require(parts.readers.emplace(input, d).second, invalid_argument,
            "two dictionaries read '{}': their points would have one name", input);
    parts.inputs.push_back(input);
    for (std::int64_t p = 0; p < own.points(); ++p) {
      const std::string output = full_name(own.output_points[static_cast<std::size_t>(p)]);
      require(place.at(output) >= place.at(input), invalid_argument,
              "a dictionary reads '{}' and writes '{}', which comes before it in a pass", input,
              output);
      std::vector<Parts::Writer>& all = parts.writers[output];
      const bool is_alone = all.empty();
      all.push_back({d, p});
      if (is_alone) continue;
      for (const Parts::Writer& writer : all) {
        require(parts.of(writer.dictionary).specification().is_transcoder(), invalid_argument,
                "two dictionaries write '{}', one of which is an autoencoder", output);
      }
    }
  }
  for (const Point& point : points) {
    const std::string name = point_name(point);
    const bool reads = parts.readers.contains(name), writes = parts.writers.contains(name);
    if (!reads && !writes) continue;
    parts.order.push_back(name);
    if (!gradient_is_editable(point.kind)) parts.uneditable.insert(name);
    if (reads) {
      for (const char* step : {"input", "acts_pre", "acts_post"}) {
        parts.names.push_back(name + ".hook_sae_" + step);
      }
    }
    if (!writes) continue;
    parts.names.push_back(name + ".hook_sae_recons");
    if (error == ErrorTerm::added) parts.names.push_back(name + ".hook_sae_error");
    parts.names.push_back(name + ".hook_sae_output");
  }
}

const std::vector<std::string>& Splice::names() const { return parts_->names; }

std::vector<std::string> Splice::names_like(std::string_view name) const {
  std::vector<std::string> found;
  for (const std::string& own : parts_->names) {
    if (Parts::selects({.where = std::string(name), .call = {}}, own)) found.push_back(own);
  }
  require(!found.empty(), invalid_argument, "no point of the features is named '{}', expected {}",
          name, fmt::join(parts_->names, ", "));
  return found;
}

void Splice::hook(std::vector<Hook> hooks) {
  for (const Hook& hook : hooks) names_like(hook.where);
  parts_->user = std::move(hooks);
}

void Splice::hook_gradients(std::vector<Hook> gradient_hooks) {
  for (const Hook& hook : gradient_hooks) names_like(hook.where);
  parts_->user_gradients = std::move(gradient_hooks);
}

void Splice::keep(const std::vector<std::string>& names) {
  parts_->wanted.clear();
  parts_->kept.clear();
  for (std::string name : names) {
    const bool is_gradient = name.ends_with(gradient_suffix);
    if (is_gradient) name.resize(name.size() - gradient_suffix.size());
    for (const std::string& full : names_like(name)) {
      parts_->wanted.insert(is_gradient ? full + std::string(gradient_suffix) : full);
    }
  }
}

Array Splice::kept(std::string_view name) const {
  const auto found = parts_->kept.find(name);
  require(found != parts_->kept.end(), not_found, "'{}' was not kept", name);
  const std::map<std::int64_t, Array>& texts = found->second;
  if (texts.size() == 1) return texts.begin()->second;
  std::int64_t longest = 0;
  const std::int64_t width = texts.begin()->second.shape().back();
  for (const auto& [text, values] : texts) longest = std::max(longest, values.shape()[1]);
  Tensor<float> all(Shape{std::ssize(texts), longest, width});
  std::int64_t row = 0;
  for (const auto& [text, values] : texts) {
    std::ranges::copy(values, all.data() + row++ * longest * width);
  }
  return make_array(std::move(all));
}

std::vector<Hook> Splice::hooks() const {
  std::vector<Hook> all;
  for (const std::string& name : parts_->order) {
    all.push_back({name, [parts = parts_, name](const HookedPoint& at, Array& values) {
                     parts->forward(name, at, values);
                   }});
  }
  return all;
}

std::vector<Hook> Splice::gradient_hooks() const {
  for (const std::string& name : parts_->order) {
    require(
        !parts_->uneditable.contains(name), unsupported,
        "gradients cannot pass through the dictionary at '{}', whose gradient is computed for "
        "reading alone: expected one at the stream, an input or output of a branch, q, k, v, z or "
        "neurons",
        name);
  }
  std::vector<Hook> all;
  for (const std::string& name : parts_->order) {
    all.push_back({name, [parts = parts_, name](const HookedPoint& at, Array& gradient) {
                     parts->backward(name, at, gradient);
                   }});
  }
  return all;
}

}  // namespace heed
