#include "cli/command.h"

#include <map>

#include "base/error.h"
#include "base/threads.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/terminal/terminal.h"
#include "heed/f32_products.h"
#include "tensor/device.h"

namespace heed::cli {
namespace {

// What was taken is said where the user left it open.
void choose_device(const std::string& name) {
  set_default_device(name);
  const Device device = default_device();
  if (name == "auto") {
    say(fmt::format("computing on {} ({})", device_name(device), device_description(device)));
  }
}

}  // namespace

Command add_command(Command parent, const std::string& name, const std::string& description) {
  Command command = parent.add_subcommand(name, description);
  command
      ->add_option_function<int>(
          "-t,--threads", [](int count) { set_thread_count(count); },
          "Compute with N threads [one a core, or HEED_THREADS]")
      ->check(between(1, 4096))
      ->type_name("N")
      ->group("General");
  command
      ->add_option_function<std::string>(
          "--device", choose_device, "Compute on cpu, cuda, cuda:N or auto [cpu, or HEED_DEVICE]")
      ->type_name("DEVICE")
      ->group("General");
  command
      ->add_option_function<std::string>(
          "--f32-products",
          [](const std::string& products) { set_f32_products(parse_f32_products(products)); },
          "Multiply f32 in f32 or, on a GPU only, tf32 [f32, or HEED_F32_PRODUCTS]")
      ->check(one_of({"f32", "tf32"}))
      ->type_name("TYPE")
      ->group("General");
  command
      ->add_option_function<std::string>(
          "--color", [](const std::string& when) { set_colour_choice(when); },
          "Use colour: auto, always or never [auto]")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group("General");
  command->help_option()->group("General");
  return command;
}

void add_json_option(Command command, bool& json) {
  command.add_flag("--json", json, "Print one JSON document");
}

void fail_usage(const std::string& message) { fail(ErrorCode::invalid_argument, "{}", message); }

}  // namespace heed::cli
