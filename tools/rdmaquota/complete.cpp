#include "tools/rdmaquota/complete.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "policy/policy.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {
namespace {

using Words = std::vector<std::string>;

Words resources() {
    Words words;
    for (const auto& row : resource_table) words.push_back(fmt::format("{}=", row.name));
    return words;
}

Words devices() {
    auto words = machine_devices();
    words.insert(words.end(), {std::string(any_device), std::string(total_device)});
    return words;
}

// The values of the option `name`; nothing where only the user knows.
Words values(const std::string& name) {
    if (name == "--limit" || name == "--tenant-limit") return resources();
    if (name == "--by") return {"tenant", "device", "process"};
    if (name == "--mode") return {"enforce", "audit", "off"};
    if (name == "--deny-errno") return {"EDQUOT", "EAGAIN", "ENOMEM"};
    return {};
}

// The words that are neither options nor their values; the last word is still being typed.
Words positionals(const CommandLine& line, const std::string& command, const Words& words) {
    Words found;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (line.takes_value(command, words[i]))
            ++i;
        else if (!words[i].starts_with('-'))
            found.push_back(words[i]);
    return found;
}

// Candidates for the next positional word of a command that has those `before` it.
Words arguments(const std::string& command, const Words& before) {
    if (command == "show" && before.empty()) return {std::string(default_tenant)};
    if (command == "completion" && before.empty()) return {"bash", "zsh", "fish"};
    if (command != "set") return {};
    return before.empty() || (before.size() == 1 && before[0] == default_tenant) ? devices() : resources();
}

// The command among the words, or "".
std::string chosen(const CommandLine& line, const Words& words) {
    const auto found = positionals(line, "", words);
    const auto commands = line.commands();
    if (found.empty() || std::find(commands.begin(), commands.end(), found.front()) == commands.end()) return "";
    return found.front();
}

Words candidates(const CommandLine& line, const Words& words) {
    const auto command = chosen(line, words);
    if (words.size() > 1 && (line.takes_value(command, words.end()[-2]) || line.takes_value("", words.end()[-2])))
        return values(words.end()[-2]);
    if (words.back().starts_with('-')) return line.options(command);
    if (command.empty()) return line.commands();
    auto before = positionals(line, command, words);
    before.erase(before.begin(), std::find(before.begin(), before.end(), command) + 1);
    return arguments(command, before);
}

}  // namespace

int complete(const CommandLine& line, const std::vector<std::string>& words) {
    if (words.empty()) return 0;
    for (const auto& word : candidates(line, words))
        if (word.starts_with(words.back())) fmt::print("{}\n", printable(word));
    return 0;
}

}  // namespace rdmaquota
