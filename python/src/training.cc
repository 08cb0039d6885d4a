// Training as steps that Python takes, evaluation, tokenizers, the microworld.
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "bindings.h"
#include "heed/evaluate.h"
#include "heed/microworld.h"
#include "heed/tokenizer.h"
#include "heed/train.h"

namespace heed::python {
namespace {

// A training run on a thread of its own, which waits after each step until the next one is asked
// for.
class TrainingRun {
 public:
  explicit TrainingRun(TrainingOptions options) : options_(std::move(options)) {
    options_.stop = &stop_;
    options_.learning_rate_factor = &rate_factor;
    options_.progress = [this](const TrainingProgress& now) { hand_over(now); };
    options_.sampled = [this](std::int64_t step, const std::string& text) {
      const std::lock_guard lock(mutex_);
      samples_.emplace_back(step, text);
    };
  }
  // A hook that still runs needs the interpreter's lock.
  ~TrainingRun() {
    const Unlocked scope;
    end();
  }
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // The next step; nothing at the end. Throws what train_model() threw.
  std::optional<TrainingProgress> next() {
    if (is_elsewhere()) {
      throw Error(ErrorCode::unsupported,
                  "this training run goes on in the process that began it, not in a fork of it");
    }
    std::unique_lock lock(mutex_);
    if (thread_.get_id() == std::this_thread::get_id()) {
      throw Error(ErrorCode::invalid_argument,
                  "the training run is being advanced by one of its own hooks");
    }
    if (!thread_.joinable() && !finished_) thread_ = std::thread([this] { run(); });
    asked_ = true;
    changed_.notify_all();
    SignalPoll poll;
    while (!step_ && !finished_) {
      changed_.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();
      poll();
      lock.lock();
    }
    if (step_) return std::exchange(step_, std::nullopt);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return std::nullopt;
  }

  void stop() {
    stop_ = true;
    const std::lock_guard lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }

  std::vector<std::pair<std::int64_t, std::string>> samples() const {
    const std::lock_guard lock(mutex_);
    return samples_;
  }
  std::optional<TrainingResult> result() const {
    const std::lock_guard lock(mutex_);
    return result_;
  }

  // Stops and waits. A fork of the process has no such thread, and may have its lock without an
  // owner.
  void end() {
    if (is_elsewhere()) {
      if (thread_.joinable()) thread_.detach();
      return;
    }
    stop();
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<double> rate_factor{1.0};  // of the learning rate

 private:
  bool is_elsewhere() const { return process_ != ::getpid(); }

  void run() {
    std::optional<TrainingResult> result;
    std::exception_ptr error;
    try {
      result = train_model(options_);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    error_ = error;
    finished_ = true;
    changed_.notify_all();
  }

  void hand_over(const TrainingProgress& now) {
    std::unique_lock lock(mutex_);
    if (stop_) return;
    step_ = now;
    asked_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return asked_ || stop_.load(); });
  }

  TrainingOptions options_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;  // for a step
  bool finished_ = false;
  std::optional<TrainingProgress> step_;
  std::optional<TrainingResult> result_;
  std::exception_ptr error_;
  std::vector<std::pair<std::int64_t, std::string>> samples_;
  const pid_t process_ = ::getpid();
  std::thread thread_;
};

std::vector<std::filesystem::path> paths_of(const py::dict& options, const char* name) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& path : options[name].cast<std::vector<std::string>>()) {
    paths.emplace_back(path);
  }
  return paths;
}

std::unique_ptr<TrainingRun> train(const py::dict& options) {
  const auto text = [&](const char* name) { return options[name].cast<std::string>(); };
  return std::make_unique<TrainingRun>(TrainingOptions{
      .files = paths_of(options, "files"),
      .text = text("text"),
      .validation = text("validation"),
      .pairs = paths_of(options, "pairs"),
      .validation_pairs = paths_of(options, "validation_pairs"),
      .out = text("out"),
      .resume = options["resume"].cast<bool>(),
      .preset = text("preset"),
      .settings = options["settings"].cast<std::vector<std::pair<std::string, std::string>>>(),
      .from = text("from"),
      .hooks = hooks_of(options["hooks"].cast<PythonHooks>()),
      .gradient_hooks = hooks_of(options["gradient_hooks"].cast<PythonHooks>())});
}

py::object next_step(TrainingRun& run) {
  const std::optional<TrainingProgress> step = unlocked([&] { return run.next(); });
  if (!step) return py::none();
  return py::make_tuple(step->step, step->steps, step->loss, step->learning_rate,
                        step->tokens_per_second, step->seconds_left, step->validation_loss);
}

py::object result_of(const TrainingRun& run) {
  const std::optional<TrainingResult> found = run.result();
  if (!found) return py::none();
  const auto pairs = [](const std::vector<TrainingLoss>& losses) {
    std::vector<std::pair<std::int64_t, double>> all;
    for (const TrainingLoss& loss : losses) all.emplace_back(loss.step, loss.loss);
    return all;
  };
  py::dict result;
  result["steps"] = found->steps;
  result["losses"] = pairs(found->losses);
  result["validation"] = pairs(found->validation);
  result["validation_loss"] = found->validation_loss;
  result["validation_error"] = found->validation_error;
  result["bleu"] = found->bleu;
  result["seconds"] = found->seconds;
  result["checkpoint"] = found->checkpoint.string();
  result["interrupted"] = found->interrupted;
  return result;
}

py::dict evaluated(const TextEvaluation& found) {
  py::dict all;
  all["tokens"] = found.tokens;
  all["loss"] = found.loss;
  all["standard_error"] = found.standard_error;
  all["perplexity"] = found.perplexity;
  all["bits_per_byte"] = found.bits_per_byte;
  all["losses"] = array_of(found.losses);
  return all;
}

// Options whose progress handles signals.
EvaluateOptions evaluate_options(std::int64_t window, std::int64_t stride, std::int64_t batch) {
  return {.window = window,
          .stride = stride,
          .batch = batch,
          .progress = [poll = SignalPoll{}](std::int64_t, std::int64_t) mutable { poll(); }};
}

py::dict share_of(const TaskEvaluation::Share& share) {
  py::dict found;
  found["mean"] = share.mean;
  found["standard_error"] = share.standard_error;
  return found;
}

py::object share_of(const std::optional<TaskEvaluation::Share>& share) {
  if (!share) return py::none();
  return share_of(*share);
}

py::dict task_evaluated(const TaskEvaluation& found) {
  py::dict all;
  all["layout"] = found.layout;
  all["questions"] = found.questions;
  all["shortened"] = found.shortened;
  all["accuracy"] = share_of(found.accuracy);
  all["accuracy_by_length"] = share_of(found.accuracy_by_length);
  all["chance"] = found.chance;
  all["perplexity"] = share_of(found.perplexity);
  py::list answers;
  for (const TaskEvaluation::Answer& each : found.answers) {
    py::dict answer;
    answer["log_likelihoods"] = each.log_likelihoods;
    answer["chosen"] = each.chosen;
    answer["chosen_by_length"] = each.chosen_by_length;
    answer["right"] = each.right;
    answer["is_right"] = each.is_right;
    answers.append(answer);
  }
  all["answers"] = answers;
  return all;
}

}  // namespace

void bind_training(py::module_& module) {
  py::class_<TrainingRun>(module, "TrainingRun")
      .def("next", &next_step)
      .def("stop", [](TrainingRun& run) { unlocked([&] { run.stop(); }); })
      .def("end", [](TrainingRun& run) { unlocked([&] { run.end(); }); })
      .def_property(
          "learning_rate_factor", [](const TrainingRun& run) { return run.rate_factor.load(); },
          [](TrainingRun& run, double factor) { run.rate_factor = factor; })
      .def_property_readonly("samples", &TrainingRun::samples)
      .def_property_readonly("result", &result_of);
  module.def("train", &train);

  module.def("evaluate_text", [](const ModelHandle& handle, const std::string& text,
                                 std::int64_t window, std::int64_t stride, std::int64_t batch) {
    const auto model = handle.get();
    return evaluated(unlocked(
        [&] { return evaluate_text(*model, text, evaluate_options(window, stride, batch)); }));
  });
  module.def("evaluate_file", [](const ModelHandle& handle, const std::string& file,
                                 std::int64_t window, std::int64_t stride, std::int64_t batch) {
    const auto model = handle.get();
    return evaluated(unlocked(
        [&] { return evaluate_file(*model, file, evaluate_options(window, stride, batch)); }));
  });
  module.def("evaluate_tokens", [](const ModelHandle& handle, const TokenArray& tokens,
                                   std::int64_t window, std::int64_t stride, std::int64_t batch) {
    const auto model = handle.get();
    const std::vector<std::int32_t> all = vector_of(tokens);
    return evaluated(unlocked(
        [&] { return evaluate_tokens(*model, all, evaluate_options(window, stride, batch)); }));
  });

  module.def(
      "evaluate_task", [](const ModelHandle& handle, const std::string& file, std::int64_t limit) {
        const auto model = handle.get();
        return task_evaluated(unlocked([&] {
          return evaluate_task(
              *model, file,
              {.limit = limit,
               .progress = [poll = SignalPoll{}](std::int64_t, std::int64_t) mutable { poll(); }});
        }));
      });

  py::class_<TextTokenizer>(module, "Tokenizer")
      .def_static("load", &TextTokenizer::load)
      .def_static("learn",
                  [](const std::vector<std::string>& texts, std::int32_t vocabulary_size) {
                    return unlocked([&] { return TextTokenizer::learn(texts, vocabulary_size); });
                  })
      .def_property_readonly("kind", &TextTokenizer::kind)
      .def_property_readonly("vocabulary_size", &TextTokenizer::vocabulary_size)
      .def("encode", &TextTokenizer::encode)
      .def("decode",
           [](const TextTokenizer& tokenizer, const TokenArray& tokens) {
             return py::bytes(tokenizer.decode(vector_of(tokens)));
           })
      .def("token_texts",
           [](const TextTokenizer& tokenizer, const TokenArray& tokens) {
             const std::vector<std::string> texts = tokenizer.token_texts(vector_of(tokens));
             return std::vector<py::bytes>(texts.begin(), texts.end());
           })
      .def("save", &TextTokenizer::save);

  module.def("microworld_kinds", &microworld_kinds);
  module.def("microworld_story", &microworld_story);
  module.def("microworld_log_probability", &microworld_log_probability);
}

}  // namespace heed::python
