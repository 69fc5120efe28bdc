#include "tools/rdmaquotad/metrics/exposition.hpp"

#include <fmt/format.h>

#include "policy/printable.hpp"

namespace rdmaquota {

void Exposition::begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    head_ = fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

void Exposition::sample(Labels labels, std::uint64_t value) { write(labels, std::to_string(value)); }

void Exposition::sample_seconds(Labels labels, std::uint64_t ms) { write(labels, fmt::format("{}.{:03}", ms / 1000, ms % 1000)); }

void Exposition::write(Labels labels, const std::string& value) {
    text_ += std::exchange(head_, {}) + name_;
    for (const char* before = "{"; const auto& [label, content] : labels) {
        // Tenants can write any device name into the ledger.
        text_ += fmt::format("{}{}={}", before, label, in_quotes(printable(content)));
        before = ",";
    }
    text_ += fmt::format("{} {}\n", labels.size() == 0 ? "" : "}", value);
}

}  // namespace rdmaquota
