#include "policy/file/slurm_tables.hpp"

#include <algorithm>
#include <array>

#include "policy/file/limit_tables.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

using ByName = std::map<std::string, ScopeLimits, std::less<>>;

// Names are written into a file again, in quotes.
bool valid_slurm_name(std::string_view name) {
    const auto unfit = [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '"' || c == '\\';
    };
    return !name.empty() && std::none_of(name.begin(), name.end(), unfit);
}

class SlurmReader {
public:
    SlurmReader(TableReader& reader, SlurmPolicy& policy) : reader_(reader), policy_(policy) {}

    void entry(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 4> known{"job", "partition", "account", "qos"};
        if (key == "job") return LimitTables(reader_, "slurm.job").devices(key, node, policy_.job);
        if (key == "partition") return named(key, node, policy_.partitions);
        if (key == "account") return named(key, node, policy_.accounts);
        if (key == "qos") return named(key, node, policy_.qos);
        reader_.unknown("key in [slurm]", key, known);
    }

private:
    void named(const toml::key& key, const toml::node& node, ByName& into) {
        const auto* table = reader_.as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [name, tables] : *table) {
            if (!valid_slurm_name(name.str()))
                return reader_.fail(name, fmt::format("'{}' is no name of Slurm's", printable(name.str())));
            LimitTables(reader_, fmt::format("slurm.{}.{}", key.str(), name.str()))
                .devices(name, tables, into[std::string(name.str())]);
        }
    }

    TableReader& reader_;
    SlurmPolicy& policy_;
};

void add_tables(std::string& text, const std::string& header, const ScopeLimits& limits) {
    for (const auto& [device, row] : limits) {
        text += fmt::format("[{}.\"{}\"]\n", header, device);
        for (std::size_t i = 0; i < row.size(); ++i)
            if (const auto resource = static_cast<Resource>(i); row[i] != unset)
                text += fmt::format("{} = \"{}\"\n", info(resource).name, format_limit(resource, row[i]));
    }
}

void add_named(std::string& text, std::string_view kind, const ByName& by_name) {
    for (const auto& [name, limits] : by_name) add_tables(text, fmt::format("slurm.{}.\"{}\"", kind, name), limits);
}

}  // namespace

void read_slurm(TableReader& reader, const toml::key& key, const toml::node& node, SlurmPolicy& into) {
    const auto* table = reader.as_table(key, node);
    if (table == nullptr) return;
    SlurmReader tables(reader, into);
    for (const auto& [name, entry] : *table) tables.entry(name, entry);
}

std::string slurm_text(const SlurmPolicy& policy) {
    std::string text = "version = 1\n[slurm]\n";
    add_tables(text, "slurm.job", policy.job);
    add_named(text, "partition", policy.partitions);
    add_named(text, "account", policy.accounts);
    add_named(text, "qos", policy.qos);
    return text;
}

}  // namespace rdmaquota
