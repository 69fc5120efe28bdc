#include "policy/file/cluster_file.hpp"

#include <algorithm>
#include <charconv>

#include "policy/file/table_reader.hpp"
#include "policy/printable.hpp"
#include "policy/tenant.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint64_t most_in_range = 100'000;

bool is_node_name(std::string_view name) {
    const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'; };
    return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), fits);
}

// "n[2-4]" as n2, n3, n4; a name without a range as itself. Empty where it is neither.
std::vector<std::string> expand(std::string_view text) {
    const auto open = text.find('['), dash = text.find('-', open == text.npos ? 0 : open), close = text.find(']');
    if (open == text.npos) return is_node_name(text) ? std::vector{std::string(text)} : std::vector<std::string>();
    if (close == text.npos || dash == text.npos || dash > close) return {};
    const auto first_digits = text.substr(open + 1, dash - open - 1), last_digits = text.substr(dash + 1, close - dash - 1);
    std::uint64_t first = 0, last = 0;
    const auto read = [](std::string_view digits, std::uint64_t& number) {
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        return result.ec == std::errc() && result.ptr == digits.data() + digits.size();
    };
    if (!read(first_digits, first) || !read(last_digits, last) || last < first || last - first >= most_in_range) return {};
    std::vector<std::string> names;
    const auto width = first_digits.size() > 1 && first_digits[0] == '0' ? first_digits.size() : 0;
    for (auto number = first; number <= last; ++number) {
        auto name = fmt::format("{}{:0{}}{}", text.substr(0, open), number, width, text.substr(close + 1));
        if (!is_node_name(name)) return {};
        names.push_back(std::move(name));
    }
    return names;
}

class ClusterReader {
public:
    ClusterReader(TableReader& reader, ClusterFile& file) : reader_(reader), file_(file) {}

    void entry(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 3> known{"version", "tenant", "node"};
        if (key == "version") {
            if (node.value_or(0) != 1) reader_.fail(node, "this rdmaquota reads version = 1");
        } else if (key == "tenant") {
            tenants(key, node);
        } else if (key == "node") {
            nodes(key, node);
        } else {
            reader_.unknown("key", key, known);
        }
    }

private:
    void amounts(const toml::key& tenant, const toml::node& node, std::map<ClusterFile::Pool, std::uint64_t>& into) {
        const auto* table = reader_.as_table(tenant, node);
        if (table == nullptr) return;
        if (auto good = check_tenant_name(tenant.str()); !good) return reader_.fail(tenant, good.error());
        for (const auto& [key, value] : *table) {
            const auto resource = find_resource(key.str());
            if (!resource) {
                reader_.unknown("resource", key, TableReader::resource_list());
                continue;
            }
            std::uint64_t amount = unset;
            reader_.amount(*resource, value, amount);
            if (is_percentage(amount) || amount == unlimited) reader_.fail(value, "an amount over nodes is a number, not a percentage and not \"max\"");
            else if (amount != unset) into[{std::string(tenant.str()), *resource}] = amount;
        }
    }

    void tenants(const toml::key& key, const toml::node& node) {
        const auto* table = reader_.as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [name, value] : *table) amounts(name, value, file_.limits);
    }

    void nodes(const toml::key& key, const toml::node& node) {
        const auto* table = reader_.as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [names, value] : *table) {
            const auto all = expand(names.str());
            if (all.empty()) {
                reader_.fail(names, fmt::format("'{}' is not the name of a node, or a range such as \"n[001-100]\"", printable(names.str())));
                continue;
            }
            ClusterFile::Node entry;
            this->node(names, value, entry);
            for (const auto& name : all)
                if (!file_.nodes.emplace(name, entry).second) reader_.fail(names, fmt::format("node {} is named twice", name));
        }
    }

    void node(const toml::key& name, const toml::node& node, ClusterFile::Node& entry) {
        static constexpr std::array<std::string_view, 2> known{"weight", "floor"};
        const auto* table = reader_.as_table(name, node);
        if (table == nullptr) return;
        for (const auto& [key, value] : *table) {
            if (key == "weight") reader_.whole(key, value, 1, 10'000, entry.weight);
            else if (key == "floor") floors(key, value, entry);
            else reader_.unknown(fmt::format("key in [node.{}]", name.str()), key, known);
        }
    }

    void floors(const toml::key& key, const toml::node& node, ClusterFile::Node& entry) {
        const auto* table = reader_.as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [tenant, value] : *table) amounts(tenant, value, entry.floors);
    }

    TableReader& reader_;
    ClusterFile& file_;
};

}  // namespace

Result<ClusterFile> parse_cluster_file(const std::string& text, const std::string& file) {
    const auto table = parse_toml(text, file);
    if (!table) return Error{table.error()};
    ClusterFile cluster;
    TableReader reader(file);
    ClusterReader cluster_reader(reader, cluster);
    for (const auto& [key, node] : *table) cluster_reader.entry(key, node);
    if (auto good = reader.verdict(); !good) return Error{good.error()};
    for (const auto& [name, node] : cluster.nodes)
        for (const auto& [pool, amount] : node.floors)
            if (!cluster.limits.contains(pool))
                return Error{fmt::format("{}: node {} has a floor for {} of tenant {}, which has no limit there", file, name, info(pool.second).name, pool.first)};
    return cluster;
}

Result<ClusterFile> read_cluster_file(const std::string& path) {
    const auto text = read_text(path);
    if (!text) return Error{text.error()};
    return parse_cluster_file(*text, path);
}

}  // namespace rdmaquota
