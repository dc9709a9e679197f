// umbra: shows, runs and checks generated kernels.
// Exit codes: 0 done, 1 an error of the input or the machine, 2 wrong usage, 3 a defect of Umbra.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "runtime/environment.h"
#include "tools/umbra/commands.h"
#include "umbra/error.h"

namespace {

int Fail(const char* what, int code) {
  const bool colour = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  std::fprintf(stderr, colour ? "\033[1mumbra: \033[31merror:\033[0m %s\n" : "umbra: error: %s\n",
               what);
  return code;
}

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
  const auto targets = CLI::IsMember({"plain", "sse2", "avx2", "avx512"});

  umbra::tools::EmitOptions emit;
  auto* emit_command = app.add_subcommand("emit", "Print a kernel at one of its stages");
  emit_command
      ->add_option("input", emit.input,
                   "A .umb file, or an expression such as "
                   "\"gelu(x + broadcast<1>(bias))\"")
      ->required();
  emit_command
      ->add_option("--target", emit.target, "Instruction set (default: the best of this CPU)")
      ->check(targets);
  emit_command->add_option("--as", emit.form, "Stage to print (default: source)")
      ->check(CLI::IsMember({"text", "graph", "dot", "plan", "source", "llvm", "asm"}));
  emit_command
      ->add_option("--spelling", emit.spelling, "How packets are written (default: packets)")
      ->check(CLI::IsMember({"packets", "intrinsics"}));
  emit_command->add_option("--kernel", emit.kernel, "Which kernel of the file");
  emit_command->add_option("--scalar", emit.scalars, "A name in the expression that is a number");
  emit_command->add_option("-o,--output", emit.output, "File to write (default: standard output)");

  umbra::tools::RunOptions run;
  auto* run_command = app.add_subcommand("run", "Run a kernel on .npy files");
  run_command->add_option("input", run.input, "A .umb file, or an expression")->required();
  run_command->add_option("--in", run.in, "name=file.npy, for every input");
  run_command->add_option("--out", run.out, "name=file.npy, for every output");
  run_command->add_option("--scalar", run.scalars, "name=number, for every scalar");
  run_command->add_option("--kernel", run.kernel, "Which kernel of the file");
  run_command->add_option("--target", run.target, "Instruction set (default: the best of this CPU)")
      ->check(targets);
  run_command->add_option("--compiler", run.compiler, "Who compiles (default: clang)")
      ->check(CLI::IsMember({"clang", "system", "interpreter"}));
  run_command->add_option("--threads", run.threads, "At most this many threads (default: all)")
      ->check(CLI::NonNegativeNumber);
  run_command->add_flag("--time", run.time,
                        "Run 21 times; print compile time, run time and bytes moved");

  bool markdown = false;
  auto* ops_command = app.add_subcommand("ops", "List the elementwise operators");
  ops_command->add_flag("--markdown", markdown, "As docs/operators.md has them");

  auto* doctor_command =
      app.add_subcommand("doctor", "Say what this machine has and what is missing");
  std::string cache_action = "usage";
  auto* cache_command = app.add_subcommand("cache", "Look at the kernel cache");
  cache_command->add_option("action", cache_action, "folder, usage or clear (default: usage)")
      ->check(CLI::IsMember({"folder", "usage", "clear"}));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    Fail(error.what(), 2);
    std::fprintf(stderr, "Run with --help for more information.\n");
    return 2;
  }
  try {
    if (*emit_command) umbra::tools::Emit(emit);
    if (*run_command) umbra::tools::Run(run);
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
