// umbra: shows, runs and checks generated kernels.
// Exit codes: 0 done, 1 an error of the input or the machine, 2 wrong usage, 3 a defect of Umbra.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/environment.h"
#include "tools/umbra/commands.h"
#include "umbra/error.h"

namespace {

int Fail(const std::string& what, int code) {
  const bool colour = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  std::fprintf(stderr, colour ? "\033[1mumbra: \033[31merror:\033[0m %s\n" : "umbra: error: %s\n",
               what.c_str());
  return code;
}

// The fields of a Parameter, with their aliases and help, as options of a command. A required field stands
// without a name; a tuple has an element an option.
class Fields {
 public:
  Fields(CLI::App* command, const std::vector<umbra::ParamFieldInfo>& fields) {
    for (const umbra::ParamFieldInfo& field : fields) {
      const std::string& info = field.type_info_str;
      const bool required = info.size() > 8 && info.substr(info.size() - 8) == "required";
      std::string names = required ? field.name : Flag(field.name);
      for (const std::string& alias : field.aliases) names += "," + Flag(alias);
      if (field.type == "boolean" && info.find("default=True") != std::string::npos) names += ",!" + Flag("no_" + field.name);
      const std::string help = field.description + (required ? "" : " (" + info + ")");
      const bool tuple = field.type.rfind("tuple of ", 0) == 0;
      auto* option = field.type == "boolean" ? command->add_flag(names, help) : command->add_option(names, help);
      if (tuple) option->expected(CLI::detail::expected_max_vector_size);
      option->required(required)->type_name("");
      options_.push_back({field.name, option, tuple});
    }
  }
  /// What was given, for Init.
  std::vector<std::pair<std::string, std::string>> Given() const {
    std::vector<std::pair<std::string, std::string>> given;
    for (const auto& [name, option, tuple] : options_)
      if (option->count() > 0)
        given.emplace_back(name, tuple ? umbra::parameter::ToText(option->results()) : option->results().back());
    return given;
  }

 private:
  struct Option {
    std::string field;
    CLI::Option* option;
    bool tuple;
  };
  static std::string Flag(std::string name) {
    for (char& c : name) c = c == '_' ? '-' : c;
    return (name.size() == 1 ? "-" : "--") + name;
  }
  std::vector<Option> options_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Umbra turns tensor expressions into fused kernels that a person can read.");
  app.set_version_flag("--version", "umbra " UMBRA_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Environment:\n" + umbra::runtime::EnvironmentHelp() +
      "  NO_COLOR\n      Turns colour off.\n"
      "Exit codes: 0 done, 1 an error of the input or the machine, 2 wrong usage, 3 a defect\n"
      "of Umbra.");
  umbra::tools::EmitOptions emit;
  auto* emit_command = app.add_subcommand("emit", "Print a kernel at one of its stages");
  Fields emit_fields(emit_command, umbra::tools::EmitOptions::__FIELDS__());

  umbra::tools::ExplainOptions explain;
  auto* explain_command = app.add_subcommand("explain", "Say what is computed where, and why");
  Fields explain_fields(explain_command, umbra::tools::ExplainOptions::__FIELDS__());

  umbra::tools::RunOptions run;
  auto* run_command = app.add_subcommand("run", "Run a kernel on .npy files");
  Fields run_fields(run_command, umbra::tools::RunOptions::__FIELDS__());
  umbra::CompileOptions compile;
  Fields compile_fields(run_command, umbra::CompileOptions::__FIELDS__());

  umbra::tools::AotOptions aot;
  auto* aot_command = app.add_subcommand("aot", "Generate a library of kernels: sources or objects");
  Fields aot_fields(aot_command, umbra::tools::AotOptions::__FIELDS__());

  bool markdown = false;
  auto* ops_command = app.add_subcommand("ops", "List the elementwise operators and the index maps");
  ops_command->add_flag("--markdown", markdown, "As docs/operators.md has them");

  auto* doctor_command =
      app.add_subcommand("doctor", "Say what this machine has and what is missing");
  std::string cache_action = "usage";
  auto* cache_command = app.add_subcommand("cache", "Look at the kernel cache");
  cache_command->add_option("action", cache_action, "folder, usage or clear (default: usage)")
      ->check(CLI::IsMember({"folder", "usage", "clear"}));

  std::string commands;
  bool known = argc < 2 || app.get_option_no_throw(argv[1]) != nullptr;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    commands += (commands.empty() ? "" : ", ") + command->get_name();
    known = known || command->get_name() == argv[1];
  }
  if (!known) return Fail("unknown command '" + std::string(argv[1]) + "'; the commands are " + commands, 2);
  try {
    app.parse(argc, argv);
    if (*emit_command) emit.Init(emit_fields.Given());
    if (*explain_command) explain.Init(explain_fields.Given());
    if (*run_command) {
      run.Init(run_fields.Given());
      compile.Init(compile_fields.Given());
    }
    if (*aot_command) aot.Init(aot_fields.Given());
  } catch (const umbra::ParamError& error) {
    Fail(error.what(), 2);
    std::fprintf(stderr, "Run with --help for more information.\n");
    return 2;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    Fail(argc > 1 ? error.what() : "a command is missing; the commands are " + commands, 2);
    std::fprintf(stderr, "Run with --help for more information.\n");
    return 2;
  }
  try {
    if (!*doctor_command) umbra::runtime::ReadEnvironment();  // what is malformed is said before anything is done
    if (*emit_command) umbra::tools::Emit(emit);
    if (*explain_command) umbra::tools::Explain(explain);
    if (*run_command) umbra::tools::Run(run, compile);
    if (*aot_command) umbra::tools::Aot(aot);
    if (*ops_command) umbra::tools::Operators(markdown);
    if (*doctor_command) umbra::tools::Doctor();
    if (*cache_command) umbra::tools::Cache(cache_action);
  } catch (const umbra::InternalError& error) {
    return Fail(error.what(), 3);
  } catch (const std::bad_alloc&) {
    return Fail("out of memory", 1);
  } catch (const std::exception& error) {
    return Fail(error.what(), 1);
  }
  return 0;
}
