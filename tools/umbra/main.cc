// umbra: shows, runs and checks generated kernels.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/environment.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/fields.h"
#include "tools/umbra/usage.h"

namespace {

using umbra::tools::Fields;

int Fail(const std::string& what, int code) { return umbra::tools::Fail("umbra", what, code); }

constexpr const char* kOutputLost = "cannot write to standard output: is it a full device, or closed?";

int Run(int argc, char** argv) {
  CLI::App app("Umbra turns tensor expressions into fused kernels that a person can read.");
  app.set_version_flag("--version", "umbra " UMBRA_VERSION);
  app.require_subcommand(1);
  app.footer("umbra --help lists the environment variables and the exit codes.");  // what the commands take over
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

  umbra::tools::OpsOptions ops;
  auto* ops_command = app.add_subcommand("ops", "List the operators, reductions and index maps");
  Fields ops_fields(ops_command, umbra::tools::OpsOptions::__FIELDS__());

  auto* doctor_command = app.add_subcommand("doctor", "Say what this machine has and what is missing");
  umbra::tools::CacheOptions cache;
  auto* cache_command = app.add_subcommand("cache", "Look at the kernel cache");
  Fields cache_fields(cache_command, umbra::tools::CacheOptions::__FIELDS__(), "action");

  app.footer(
      "umbra COMMAND --help has the options of a command, docs/text-form.md what a kernel is written in.\n\n"
      "Environment:\n" +
      umbra::runtime::EnvironmentHelp() +
      "  NO_COLOR\n      Turns colour off.\n"
      "Exit codes: 0 done, 1 an error of the input or the machine, 2 wrong usage, 3 a defect\n"
      "of Umbra.");

  std::string commands;
  bool known = argc < 2 || app.get_option_no_throw(argv[1]) != nullptr;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    commands += (commands.empty() ? "" : ", ") + command->get_name();
    known = known || command->get_name() == argv[1];
  }
  if (!known) return Fail("unknown command '" + std::string(argv[1]) + "'; the commands are " + commands, 2);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      std::cout.flush();
      return std::cout ? 0 : Fail(kOutputLost, 1);
    }
    throw umbra::ParamError(argc > 1 ? error.what() : "a command is missing; the commands are " + commands);
  }
  if (*emit_command) emit.Init(emit_fields.Given());
  if (*explain_command) explain.Init(explain_fields.Given());
  if (*run_command) {
    run.Init(run_fields.Given());
    compile.Init(compile_fields.Given());
  }
  if (*aot_command) aot.Init(aot_fields.Given());
  if (*ops_command) ops.Init(ops_fields.Given());
  if (*cache_command) cache.Init(cache_fields.Given());
  try {
    if (!*doctor_command) umbra::runtime::ReadEnvironment();  // what is malformed is said before anything is done
  } catch (const umbra::ParamError& error) {  // of the machine, and not of the options
    throw umbra::Error(error.what());
  }
  if (*emit_command) umbra::tools::Emit(emit);
  if (*explain_command) umbra::tools::Explain(explain);
  if (*run_command) umbra::tools::Run(run, compile);
  if (*aot_command) umbra::tools::Aot(aot);
  if (*ops_command) umbra::tools::Operators(ops);
  if (*doctor_command) umbra::tools::Doctor();
  if (*cache_command) umbra::tools::Cache(cache);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0 : Fail(kOutputLost, 1);
}

}  // namespace

int main(int argc, char** argv) {
  return umbra::tools::RunTool("umbra", [&] { return Run(argc, argv); });
}
