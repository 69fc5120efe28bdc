// rdmaquota completion: the script that makes a shell complete our command lines.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/completions.hpp"

namespace rdmaquota {
namespace {

int completion(const std::string& shell) {
    if (shell == "bash") fmt::print("{}", completions::bash);
    if (shell == "zsh") fmt::print("{}", completions::zsh);
    if (shell == "fish") fmt::print("{}", completions::fish);
    if (shell == "bash" || shell == "zsh" || shell == "fish") return status_done;
    return wrong_usage(fmt::format("no completion for '{}': choose one of bash, zsh, fish", shell));
}

}  // namespace

void add_completion(CommandLine& line) {
    const auto shell = std::make_shared<std::string>();
    auto command = line.command("completion", "Print the completion script of a shell");
    command.word("SHELL", *shell, "bash, zsh or fish");
    command.footer("For this session of bash: eval \"$(rdmaquota completion bash)\"");
    command.action([shell] { return completion(*shell); });
}

}  // namespace rdmaquota
