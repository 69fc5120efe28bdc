#include "tools/rdmaquota/complete.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "policy/policy.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/events/event_kinds.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/terminal.hpp"

namespace rdmaquota {
namespace {

using Words = std::vector<std::string>;

Words resources() {
    Words words{fmt::format("{}=", all_resources)};
    for (const auto& row : limit_table) words.push_back(fmt::format("{}=", row.name));
    return words;
}

Words devices() {
    auto words = machine_devices();
    words.insert(words.end(), {std::string(any_device), std::string(total_device)});
    return words;
}

Words tenants(const std::string& directory) {
    Words words;
    for (const auto& place : tenant_places(directory))
        if (const auto limits = LimitsSegment::open(limits_path(place.here))) words.push_back(limits->tenant());
    return words;
}

Words kinds() {
    Words words(ledger_kinds.begin(), ledger_kinds.end());
    words.insert(words.end(), sidecar_kinds.begin(), sidecar_kinds.end());
    return words;
}

// The values of the option `name`; nothing where only the user knows.
Words values(const std::string& name, const std::string& directory) {
    if (name == "--kind") return kinds();
    if (name == "--tenant") return tenants(directory);
    if (name == "--device") return machine_devices();
    if (name == "--limit" || name == "--tenant-limit" || name == "--process-limit" || name == "--rdma") return resources();
    if (name == "--by") return {"tenant", "user", "process", "device"};
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

// [TENANT] DEVICE, then resources.
Words names_or(Words resources, const Words& before, const std::string& directory) {
    const auto named = tenants(directory);
    if (before.size() >= 2) return resources;
    if (before.size() == 1)
        return std::find(named.begin(), named.end(), before[0]) == named.end() ? resources : devices();
    auto words = devices();
    words.insert(words.end(), named.begin(), named.end());
    return words;
}

Words resource_words() {
    Words words{std::string(all_resources)};
    for (const auto& row : limit_table) words.emplace_back(row.name);
    return words;
}

// Candidates for the next positional word of a command that has those `before` it.
Words arguments(const std::string& command, const Words& before, const std::string& directory) {
    const bool first = before.empty();
    if ((command == "show" || command == "repair" || command == "cdi") && first) return tenants(directory);
    if (command == "guard" && first) return {"off"};
    if (command == "completion" && first) return {"bash", "zsh", "fish"};
    if (command == "slurm" && first) return {"begin", "end", "limits"};
    if (command == "tenant") return first ? Words{"add", "remove", "list", "bind"} : before[0] == "remove" || before[0] == "bind" ? tenants(directory) : Words{};
    if (command == "set") return names_or(resources(), before, directory);
    if (command == "unset") return names_or(resource_words(), before, directory);
    return {};
}

// The command among the words, or "".
std::string chosen(const CommandLine& line, const Words& words) {
    const auto found = positionals(line, "", words);
    const auto commands = line.commands();
    if (found.empty() || std::find(commands.begin(), commands.end(), found.front()) == commands.end()) return "";
    return found.front();
}

Words candidates(const CommandLine& line, const Words& words, const std::string& directory) {
    const auto command = chosen(line, words);
    if (words.size() > 1 && (line.takes_value(command, words.end()[-2]) || line.takes_value("", words.end()[-2])))
        return values(words.end()[-2], directory);
    if (words.back().starts_with('-')) return line.options(command);
    if (command.empty()) return line.commands();
    auto before = positionals(line, command, words);
    before.erase(before.begin(), std::find(before.begin(), before.end(), command) + 1);
    return arguments(command, before, directory);
}

}  // namespace

int complete(const CommandLine& line, const std::vector<std::string>& words, const std::string& directory) {
    if (words.empty()) return 0;
    for (const auto& word : candidates(line, words, directory))
        if (word.starts_with(words.back())) fmt::print("{}\n", printable(word));
    return 0;
}

}  // namespace rdmaquota
